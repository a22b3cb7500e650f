# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Replicas of servers on other hosts. Reads only."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._json import JsonObject
from ...._rules import replicas as rules
from ...db.tables import instance
from ...db.tables_images import replica as table


@dataclasses.dataclass(frozen=True)
class Replica:
    """The copy of a server's disks. Times are in seconds since the epoch, `every` in seconds, `moved` in bytes."""

    instance_uuid: str
    server: str
    project_id: str
    server_host: str | None
    every: int
    host: str | None
    next_host: str | None
    requested_host: str | None
    copy_id: str | None
    taken_at: int | None
    tried_at: int | None
    silent_since: int | None
    kind: str | None
    reason: str | None
    moved: int | None
    consistency: str | None
    fault: str | None
    created_at: int
    updated_at: int

    @property
    def target(self) -> str | None:
        """The host that gets the next copy."""
        return self.next_host or self.host

    def in_words(self, now: int) -> str:
        """Return which copy it is for a person: from where, and how old."""
        return f"the copy on {self.host}, {rules.in_words(max(0, now - (self.taken_at or now)))}"


_FIELDS = [field.name for field in dataclasses.fields(Replica)]
LOAD = {
    "uncopied": sa.select(instance.c.uuid, instance.c.name, table.c.fault)
    .join(instance, instance.c.uuid == table.c.instance_uuid)
    .where(instance.c.deleted == 0, table.c.every.is_not(None), table.c.fault.is_not(None))
    .order_by(instance.c.id)
}
_OF_SERVER = {"server": instance.c.name, "project_id": instance.c.project_id, "server_host": instance.c.host}


def replicas_by(
    connection: sa.Connection, *, servers: t.Iterable[str] | None = None, project_id: str | None = None
) -> list[Replica]:
    """The copies of these servers (UUIDs; None: of all), of this project (None: of any), oldest servers first."""
    columns = [_OF_SERVER[name].label(name) if name in _OF_SERVER else table.c[name] for name in _FIELDS]
    query = (
        sa.select(*columns)
        .join(instance, instance.c.uuid == table.c.instance_uuid)
        .where(instance.c.deleted == 0, table.c.every.is_not(None))
        .order_by(instance.c.id)
    )
    if servers is not None:
        query = query.where(table.c.instance_uuid.in_(sorted(set(servers))))
    if project_id is not None:
        query = query.where(instance.c.project_id == project_id)
    return [Replica(**row) for row in connection.execute(query).mappings()]


def uncopied(connection: sa.Connection) -> list[JsonObject]:
    """Return the servers of which the last copy failed: `uuid`, `name` and `fault`."""
    return [dict(row) for row in connection.execute(LOAD["uncopied"]).mappings()]
