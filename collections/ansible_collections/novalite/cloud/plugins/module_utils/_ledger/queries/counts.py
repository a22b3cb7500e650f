# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counts of records for limits and metrics, and conditions to look by. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db import tables
from ..db.tables_images import server_backup
from ..db.tables_jobs import job
from ..db.tables_networking import port, router, subnet_pool
from ..db.tables_volumes import volume_backup
from .compute.usage import usage
from .volumes.volume_views import used as used_by_volumes

MIB = 1 << 20

# by the name of the quota, the column that says whose it is
OWNERS = {
    "key_pairs": tables.keypair.c.project_id,
    "server_groups": tables.server_group.c.project_id,
    "security_groups": tables.security_group.c.project_id,
    "floating_ips": tables.floating_ip.c.project_id,
    "routers": router.c.project_id,
    "subnet_pools": subnet_pool.c.project_id,
    "images": tables.image.c.owner,
}


def equal(values: t.Mapping[sa.Column[t.Any], t.Any]) -> list[sa.ColumnElement[bool]]:
    """Return the conditions that columns have these values; None: any."""
    return [column == value for column, value in values.items() if value is not None]


def count(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    """Return for how many rows the conditions hold, of the table whose columns they name."""
    return int(connection.execute(sa.select(sa.func.count()).where(*conditions)).scalar_one())


def is_any(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> bool:
    """Return whether the conditions hold for any row."""
    return connection.execute(sa.select(sa.literal(1)).where(*conditions).limit(1)).first() is not None


def owned(connection: sa.Connection, project_id: str, kind: str) -> int:
    """Return how many of this kind (of OWNERS) the project has."""
    return count(connection, OWNERS[kind] == project_id)


def used(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """Return how many a project has of what is counted for the project as a whole, by the names of the quotas.

    Nova counts nothing for those that hold for each instance or each group: they are not in it.
    """
    return {
        **{kind: owned(connection, project_id, kind) for kind in OWNERS},
        "ports": count(connection, port.c.project_id == project_id, port.c.kept.is_(True)),
        "networks": networks(connection, project_id),
        "subnets": subnets(connection, project_id),
        "backups": backups(connection, project_id),
        "backup_gigabytes": backup_gigabytes(connection, project_id),
        "image_size_total": image_mib(connection, project_id),
        **usage(connection, project_id),
        **used_by_volumes(connection, project_id),
    }


def networks(connection: sa.Connection, project_id: str) -> int:
    """Return how many networks a project has, external ones among them."""
    external = tables.floating_pool.c.made_by == project_id
    return count(connection, tables.network.c.owner == project_id) + count(connection, external)


def subnets(connection: sa.Connection, project_id: str) -> int:
    """Return how many subnets the networks of a project have."""
    network, pool, subnet = tables.network, tables.floating_pool, tables.tables_networking.subnet
    external = count(connection, pool.c.made_by == project_id, pool.c.cidr != "")
    return count(connection, subnet.c.network_id == network.c.id, network.c.owner == project_id) + external


def backups(connection: sa.Connection, project_id: str) -> int:
    """Return how many backups of servers and of volumes a project has."""
    return sum(count(connection, table.c.project_id == project_id) for table in (server_backup, volume_backup))


def backup_gigabytes(connection: sa.Connection, project_id: str) -> int:
    """Return the size of the disks of all backups of a project, in GiB."""
    columns = server_backup.c.gigabytes, volume_backup.c.size_gb
    sizes = [
        sa.select(sa.func.coalesce(sa.func.sum(column), 0)).where(column.table.c.project_id == project_id)
        for column in columns
    ]
    return sum(int(connection.execute(size).scalar_one()) for size in sizes)


def image_bytes(connection: sa.Connection, owner: str) -> int:
    """Return the size of all images of a project."""
    size = sa.select(sa.func.coalesce(sa.func.sum(tables.image.c.size), 0)).where(tables.image.c.owner == owner)
    return int(connection.execute(size).scalar_one())


def image_mib(connection: sa.Connection, owner: str) -> int:
    """Return the same in MiB, of which a part counts as one."""
    return -(-image_bytes(connection, owner) // MIB)


def is_project(connection: sa.Connection, project_id: str) -> bool:
    return is_any(connection, tables.project.c.id == project_id)


def project_by(connection: sa.Connection, text: str) -> str | None:
    """Return the id of the project that has this id, else that alone has this name, None for no such project."""
    table = tables.project
    query = sa.select(table.c.id).where(sa.or_(table.c.id == text, table.c.name == text)).limit(3)
    ids = list(connection.execute(query).scalars())
    return text if text in ids else ids[0] if len(ids) == 1 else None


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
