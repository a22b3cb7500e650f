# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute hosts, zones and aggregates by the ids that clients of the Compute API know them by. Reads only."""

from __future__ import annotations

import time
import typing as t
import uuid

import sqlalchemy as sa

from ..db.tables import aggregate, aggregate_host, allocation, compute_host, instance
from ..queries.views import domain_name
from .compute_hosts import EVER, host_states

Record = dict[str, t.Any]

# Hosts have a name and a number; from a certain version on clients want UUIDs, which are to stay the same
HOSTS = uuid.UUID("5b1c3f52-6a0e-5d0c-9a35-7d0fd8f3c1c4")


def host_uuid(name: str) -> str:
    return str(uuid.uuid5(HOSTS, f"host {name}"))


def service_uuid(name: str) -> str:
    return str(uuid.uuid5(HOSTS, f"service {name}"))


def aggregate_uuid(number: int) -> str:
    return str(uuid.uuid5(HOSTS, f"aggregate {number}"))


def hosts(connection: sa.Connection, now: int) -> list[Record]:
    """The compute hosts in the order of their numbers: the scheduler's view of each as `state`, and what it does not
    look at (`id`, `uuid`, `service_uuid`, `last_seen_at`, `running`: how many instances are active there)."""
    states, _versions = host_states(connection, now, service_down_time=EVER)
    by_name = {state.name: state for state in states}
    running = {
        row.host: row.running
        for row in connection.execute(
            sa.select(instance.c.host, sa.func.count().label("running"))
            .where(instance.c.deleted == 0, instance.c.vm_state == "active", instance.c.host.is_not(None))
            .group_by(instance.c.host)
        )
    }
    columns = (compute_host.c.id, compute_host.c.name, compute_host.c.last_seen_at)
    return [
        {
            "id": row.id,
            "name": row.name,
            "uuid": host_uuid(row.name),
            "service_uuid": service_uuid(row.name),
            "last_seen_at": row.last_seen_at,
            "running": running.get(row.name, 0),
            "state": by_name[row.name],
        }
        for row in connection.execute(sa.select(*columns).order_by(compute_host.c.id))
        if row.name in by_name
    ]


def zones(connection: sa.Connection, now: int) -> dict[str, dict[str, Record]]:
    """The availability zones by name: in each its hosts, with `available` (it answers), `active` (it may be chosen) and
    `last_seen_at`."""
    found: dict[str, dict[str, Record]] = {}
    for host in hosts(connection, now):
        state = host["state"]
        found.setdefault(state.zone, {})[host["name"]] = {
            "available": state.up,
            "active": state.enabled,
            "last_seen_at": host["last_seen_at"],
        }
    return dict(sorted(found.items()))


def servers_on(connection: sa.Connection, names: t.Collection[str]) -> dict[str, list[Record]]:
    """The instances that have a claim on each of these hosts: uuid and name."""
    found: dict[str, list[Record]] = {name: [] for name in names}
    rows = connection.execute(
        sa.select(compute_host.c.name, instance.c.uuid, instance.c.id, instance.c.adopted)
        .select_from(
            allocation.join(compute_host, compute_host.c.id == allocation.c.compute_host_id).join(
                instance, instance.c.uuid == allocation.c.instance_uuid
            )
        )
        .where(compute_host.c.name.in_(sorted(names)), instance.c.deleted == 0)
        .order_by(instance.c.id)
    )
    for row in rows:
        found[row.name].append({"uuid": row.uuid, "name": domain_name(row.id, row.adopted)})
    return found


def aggregates(connection: sa.Connection) -> list[Record]:
    """The aggregates in the order of their numbers, each with its `hosts` and a `uuid`."""
    rows = connection.execute(sa.select(aggregate).order_by(aggregate.c.id)).mappings()
    found: dict[int, Record] = {row["id"]: {**row, "uuid": aggregate_uuid(row["id"]), "hosts": []} for row in rows}
    for number, host in connection.execute(sa.select(aggregate_host).order_by(aggregate_host.c.host)):
        found[number]["hosts"].append(host)
    return list(found.values())


def rename_aggregate(connection: sa.Connection, number: int, name: str) -> None:
    changed = {"name": name, "updated_at": int(time.time())}
    connection.execute(sa.update(aggregate).where(aggregate.c.id == number).values(**changed))
