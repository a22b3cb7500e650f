# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports that were made by themselves: they, their addresses and floating IPs outlive the servers that have them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..db.tables import vif
from ..db.tables_networking import port

KEPT = sa.select(port.c.vif_id).where(port.c.kept.is_(True))


def interfaces_to_release(connection: sa.Connection, uuids: t.Collection[str]) -> list[str]:
    """The interfaces of these instances whose addresses go with them."""
    query = sa.select(vif.c.id).where(vif.c.instance_uuid.in_(list(uuids)), vif.c.id.not_in(KEPT))
    return list(connection.execute(query).scalars())


def let_go(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> None:
    """Take from their instances those kept ports that meet `condition`: it says which instances are deleted."""
    mine = sa.and_(condition, vif.c.id.in_(KEPT))
    connection.execute(sa.update(vif).where(mine).values(instance_uuid=None, position=None, status=None))


def give(connection: sa.Connection, number: str, instance_uuid: str, position: int) -> None:
    """Give the port to a server. Raises ConflictError if somebody was faster: the write decides."""
    done = connection.execute(
        sa.update(vif)
        .where(vif.c.id == number, vif.c.instance_uuid.is_(None))
        .values(instance_uuid=instance_uuid, position=position)
    )
    if done.rowcount != 1:
        raise ConflictError(f"Port {number} is still in use.")
