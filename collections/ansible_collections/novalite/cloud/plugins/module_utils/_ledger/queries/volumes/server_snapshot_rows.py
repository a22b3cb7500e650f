# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of servers, out of rows. Reads only."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...db.tables import instance
from ...db.tables_images import server_snapshot as table
from ..lookups import of_project
from .volume_views import Fault

LOAD = {
    "server_snapshots": sa.select(table, instance.c.name.label("server"))
    .join(instance, instance.c.uuid == table.c.instance_uuid)
    .where(of_project(instance.c.project_id))
    .order_by(instance.c.name, table.c.created_at, table.c.id)
}


@dataclasses.dataclass(frozen=True)
class ServerSnapshot:
    """A snapshot of a server, as the ledger has it. Times are in seconds since the epoch."""

    id: str
    instance_uuid: str
    name: str
    description: str
    status: str
    host: str
    consistency: str | None  # off, frozen or crash, as step server_snapshot says
    size: int | None  # bytes that it takes on its host
    image_id: str | None  # of the image that the server had
    volumes: list[str]
    fault: Fault | None
    user_id: str | None
    created_at: int
    updated_at: int


def snapshots_of(connection: sa.Connection, uuids: t.Iterable[str], name: str | None = None) -> list[ServerSnapshot]:
    """The snapshots of these instances, oldest first; those with this name or id, if one is given."""
    query = sa.select(table).where(table.c.instance_uuid.in_(sorted(set(uuids))))
    if name is not None:
        query = query.where(sa.or_(table.c.name == name, table.c.id == name))
    rows = connection.execute(query.order_by(table.c.created_at, table.c.id)).mappings()
    return [ServerSnapshot(**row) for row in rows]


def snapshot_of(connection: sa.Connection, uuid: str, name: str) -> ServerSnapshot:
    """The snapshot of this instance with this name or id. Raises NotFoundError."""
    named = snapshots_of(connection, [uuid], name)
    if not named:
        raise NotFoundError(f"Instance {uuid} has no snapshot '{name[:255]}': see the list of its snapshots")
    return named[0]
