# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of actions on adopted instances, whose guests others made: none may touch what is theirs."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._model.instance import Instance
from ..db.tables import instance

# They need only the domain as it is defined; lock and unlock are the ledger's alone
ALLOWED = frozenset({"start", "stop", "reboot", "pause", "unpause", "suspend", "resume"})


def refuse(connection: sa.Connection, uuids: t.Iterable[str], action: str) -> None:
    """Raise ConflictError for the first of these instances that was adopted, unless `action` is in ALLOWED."""
    if action in ALLOWED:
        return
    query = sa.select(instance.c.uuid, instance.c.name).where(
        instance.c.uuid.in_(sorted(set(uuids))), instance.c.adopted.is_not(None), instance.c.deleted == 0
    )
    row = connection.execute(query.order_by(instance.c.id).limit(1)).first()
    if row is not None:
        raise ConflictError(
            f"Cannot '{action}' instance {row.uuid} ('{row.name}'): it was adopted, and its disks, definition and "
            "devices are not novalite's; release it first (release.yml)"
        )


def not_adopted(instances: t.Iterable[Instance]) -> list[Instance]:
    """Those of the instances that hosts are to be made ready for: an adopted one has what it needs, made by others."""
    return [server for server in instances if server["adopted"] is None]
