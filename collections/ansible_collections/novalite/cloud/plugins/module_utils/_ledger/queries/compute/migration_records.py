# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The records of moves, as the APIs list them. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...db.tables import flavor
from ...db.tables_migrations import migration

UNDER_WAY = ("queued", "preparing", "running", "post-migrating")  # of a live migration
_EQUALS = {
    "status": migration.c.status,
    "source_compute": migration.c.source_host,
    "migration_type": migration.c.type,
    "instance_uuid": migration.c.instance_uuid,
    "user_id": migration.c.user_id,
    "project_id": migration.c.project_id,
}
_LONGEST = 255
_SHOWN = 60  # characters of a marker that is not there


def find(
    connection: sa.Connection, conditions: t.Mapping[str, str], limit: int | None = None, marker: str | None = None
) -> list[dict[str, t.Any]]:
    """The moves that meet all of `conditions` (the query parameters' names; times in seconds), newest first: at most
    `limit`, of those after the one with the UUID `marker`. Raises NotFoundError for a marker that is none of them."""
    query = sa.select(migration).order_by(migration.c.id.desc()).limit(limit)
    for name, value in conditions.items():
        if name == "host":
            query = query.where(sa.or_(migration.c.source_host == value, migration.c.dest_host == value))
        elif name == "changes-since":
            query = query.where(migration.c.updated_at >= int(float(value)))
        elif name == "changes-before":
            query = query.where(migration.c.updated_at <= int(float(value)))
        else:
            query = query.where(_EQUALS[name] == value[:_LONGEST].replace("\x00", ""))
    if marker is not None:
        first = connection.execute(query.with_only_columns(migration.c.id).where(migration.c.uuid == marker)).scalar()
        if first is None:
            raise NotFoundError(f"Marker migration {marker[:_SHOWN]} could not be found.")
        query = query.where(migration.c.id < first)
    return [dict(row) for row in connection.execute(query).mappings()]


def under_way(connection: sa.Connection, uuid: str) -> list[dict[str, t.Any]]:
    """The live migrations of an instance that have not ended."""
    query = sa.select(migration).where(
        migration.c.instance_uuid == uuid, migration.c.type == "live-migration", migration.c.status.in_(UNDER_WAY)
    )
    return [dict(row) for row in connection.execute(query.order_by(migration.c.id)).mappings()]


def flavor_ids(connection: sa.Connection) -> dict[str, int]:
    """Nova shows the numbers of flavors, which mean nothing to anybody."""
    return {row.name: row.id for row in connection.execute(sa.select(flavor.c.id, flavor.c.name))}
