# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many of a thing there are, for limits and metrics. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db import tables
from ..db.tables_jobs import job

OWNED = {
    "server_groups": tables.server_group,
    "security_groups": tables.security_group,
    "floating_ips": tables.floating_ip,
}


def count(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    """Return for how many rows the conditions hold, of the table whose columns they name."""
    return int(connection.execute(sa.select(sa.func.count()).where(*conditions)).scalar_one())


def is_any(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> bool:
    """Return whether the conditions hold for any row."""
    return connection.execute(sa.select(sa.literal(1)).where(*conditions).limit(1)).first() is not None


def owned(connection: sa.Connection, project_id: str, kind: str) -> int:
    """Return how many of this kind (of OWNED) the project has."""
    return count(connection, OWNED[kind].c.project_id == project_id)


def jobs_by_state(connection: sa.Connection, since: float) -> list[tuple[str, str, int]]:
    """Return (kind, state, number) of the jobs that were made after `since`, and of all open ones."""
    recent = sa.or_(job.c.created_at > since, job.c.state.in_(["queued", "running"]))
    query = sa.select(job.c.kind, job.c.state, sa.func.count()).where(recent).group_by(job.c.kind, job.c.state)
    return [tuple(row) for row in connection.execute(query)]


def queue(connection: sa.Connection) -> tuple[int, float | None]:
    """Return how many jobs wait for a worker, and when the oldest of them was made."""
    query = sa.select(sa.func.count(), sa.func.min(job.c.created_at)).where(job.c.state == "queued")
    waiting, oldest = connection.execute(query).one()
    return waiting, oldest


def instances_by_state(connection: sa.Connection) -> list[tuple[str, int]]:
    """Return (vm_state, number) of all instances."""
    return _counted(connection, tables.instance.c.vm_state)


def guests_by_host(connection: sa.Connection) -> list[tuple[str, int, int]]:
    """Return (compute host, power_state, number) of the instances that have a host."""
    table = tables.instance
    return _counted(connection, table.c.host, table.c.power_state, condition=table.c.host.is_not(None))


def _counted(
    connection: sa.Connection, *columns: sa.ColumnElement[t.Any], condition: sa.ColumnElement[bool] | None = None
) -> list[t.Any]:
    query = sa.select(*columns, sa.func.count()).where(tables.instance.c.deleted == 0).group_by(*columns)
    return [tuple(row) for row in connection.execute(query if condition is None else query.where(condition))]
