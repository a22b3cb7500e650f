# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A compute host leaves the cloud, or keeps its files elsewhere: when nothing of anybody is on it, or on its way to it.

What says so is read with the host's row held: a claim is a guarded write of that row, so none comes between.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import HostInUseError
from ..._json import JsonObject
from ..db import clock
from ..db.tables import aggregate_host, allocation, compute_host, fixed_ip, instance
from ..db.tables_addresses import host_owner
from ..db.tables_migrations import OPEN, departure, host_watch, migration, rolling_host
from ..db.tables_networking import MOST_RANGES
from ..db.tables_volumes import volume
from . import replica_rows


def remove(connection: sa.Connection, host: str) -> JsonObject | None:
    """Forget the compute host, its place in aggregates and its own addresses; returns what was known of it.

    None when it was unknown. Raises HostInUseError when an instance is on it or has a claim there, when a move from or
    to it waits for its end, or when it has a volume.
    """
    row = connection.execute(sa.select(compute_host).where(compute_host.c.name == host).with_for_update()).first()
    if row is None:
        return None
    check_empty(connection, row, "cannot leave")
    owners = [host_owner(host, position) for position in range(MOST_RANGES)]
    freed = sa.update(fixed_ip).where(fixed_ip.c.owner.in_(owners))
    connection.execute(freed.values(owner=None, last_owner=fixed_ip.c.owner, released_at=clock.seconds(connection)))
    connection.execute(sa.delete(aggregate_host).where(aggregate_host.c.host == host))
    # should another machine get the name, what is there is no leftover
    connection.execute(sa.delete(departure).where(departure.c.host == host))
    connection.execute(sa.delete(host_watch).where(host_watch.c.host == host))
    connection.execute(sa.delete(rolling_host).where(rolling_host.c.host == host))
    # copies of servers' disks that it had go with it, and get another host the next time
    replica_rows.leave_host(connection, host)
    connection.execute(sa.delete(compute_host).where(compute_host.c.id == row.id))
    return {"zone": row.zone, "enabled": row.enabled, "up": row.up}


def check_empty(connection: sa.Connection, row: sa.Row[t.Any], refused: str) -> None:
    """Raise HostInUseError, which says what is `refused`, unless nothing is on the compute host `row` or claims it."""
    there = _instances(connection, row), _moves(connection, row.name), _volumes(connection, row.name)
    if any(there):
        raise HostInUseError(row.name, *there, refused)


def _instances(connection: sa.Connection, row: sa.Row[t.Any]) -> list[str]:
    """List the instances that are there or have a claim; by UUID if a killed run left a claim without an instance."""
    claimed = sa.select(allocation.c.instance_uuid).where(allocation.c.compute_host_id == row.id)
    here = sa.or_(instance.c.host == row.name, instance.c.uuid.in_(claimed))
    rows = connection.execute(
        sa.select(instance.c.uuid, instance.c.name).where(instance.c.deleted == 0, here).order_by(instance.c.id)
    ).all()
    known = {server.uuid for server in rows}
    lost = sorted(uuid for uuid in connection.execute(claimed).scalars() if uuid not in known)
    return [server.name for server in rows] + lost


def _moves(connection: sa.Connection, host: str) -> list[str]:
    c = migration.c
    query = (
        sa.select(c.type, instance.c.name)
        .join(instance, instance.c.uuid == c.instance_uuid)
        .where(sa.or_(c.source_host == host, c.dest_host == host), c.status.in_(OPEN), instance.c.deleted == 0)
        .order_by(c.id)
    )
    return [f"{row.type} of {row.name}" for row in connection.execute(query)]


def _volumes(connection: sa.Connection, host: str) -> list[str]:
    query = sa.select(volume.c.name).where(volume.c.host == host).order_by(volume.c.name)
    return list(connection.execute(query).scalars())
