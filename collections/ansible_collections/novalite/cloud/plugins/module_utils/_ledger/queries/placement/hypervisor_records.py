# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute hosts, zones and aggregates by the ids that clients of the Compute API know them by. Reads only."""

from __future__ import annotations

import collections
import dataclasses
import typing as t
import uuid

import sqlalchemy as sa

from ...._model.whole_servers import domain_name
from ...._scheduling.rows import HostState
from ...db import clock
from ...db.tables import aggregate, aggregate_host, allocation, compute_host, instance
from .host_states import EVER, host_states

# Hosts have a name and a number; from a certain version on clients want UUIDs, which are to stay the same
HOSTS = uuid.UUID("5b1c3f52-6a0e-5d0c-9a35-7d0fd8f3c1c4")


@dataclasses.dataclass(frozen=True)
class NamedHost:
    """A compute host by what clients of the Compute API know it by."""

    id: int
    name: str
    last_seen_at: int  # seconds since the epoch

    @property
    def uuid(self) -> str:
        """The host's, by which clients name it."""
        return str(uuid.uuid5(HOSTS, f"host {self.name}"))

    @property
    def service_uuid(self) -> str:
        """The one of its service."""
        return str(uuid.uuid5(HOSTS, f"service {self.name}"))


@dataclasses.dataclass(frozen=True)
class Host(NamedHost):
    """A compute host with what is shown of it, and what the scheduler does not look at."""

    running: int  # how many instances are active there; 0 where they were not counted
    state: HostState  # the scheduler's view of it


class Availability(t.TypedDict):
    """A host in its zone: whether it answers, and whether it may be chosen."""

    available: bool
    active: bool
    last_seen_at: int


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """An aggregate with its hosts. Times are in seconds since the epoch."""

    id: int
    name: str
    zone: str | None
    metadata: dict[str, str]
    created_at: int
    updated_at: int
    hosts: list[str]

    @property
    def uuid(self) -> str:
        """The one by which clients name it."""
        return str(uuid.uuid5(HOSTS, f"aggregate {self.id}"))


def named_hosts(connection: sa.Connection, names: t.Collection[str] | None = None) -> list[NamedHost]:
    """Return the compute hosts, or those of `names`, in the order of their numbers, without what they are like."""
    c = compute_host.c
    query = sa.select(c.id, c.name, c.last_seen_at).order_by(c.id)
    if names is not None:
        query = query.where(c.name.in_(sorted(names)))
    return [NamedHost(*row) for row in connection.execute(query)]


def hosts(connection: sa.Connection, names: t.Collection[str] | None = None, counted: bool = False) -> list[Host]:
    """Return named_hosts() with what is shown of them; `counted`: with how many instances run there."""
    now = clock.seconds(connection)
    states, _versions = host_states(connection, now, names, service_down_time=EVER)
    by_name = {state.name: state for state in states}
    running = _running(connection, names) if counted else {}
    return [
        Host(host.id, host.name, host.last_seen_at, running.get(host.name, 0), by_name[host.name])
        for host in named_hosts(connection, names)
        if host.name in by_name
    ]


def _running(connection: sa.Connection, names: t.Collection[str] | None) -> dict[str, int]:
    c = instance.c
    of_these = c.host.is_not(None) if names is None else c.host.in_(sorted(names))
    query = sa.select(c.host, sa.func.count().label("running")).where(c.deleted == 0, c.vm_state == "active", of_these)
    return {row.host: row.running for row in connection.execute(query.group_by(c.host))}


def zones(connection: sa.Connection) -> dict[str, dict[str, Availability]]:
    """The availability zones by name: in each its hosts."""
    hosts_by_zone: dict[str, dict[str, Availability]] = {}
    for host in hosts(connection):
        hosts_by_zone.setdefault(host.state.zone, {})[host.name] = {
            "available": host.state.up,
            "active": host.state.enabled,
            "last_seen_at": host.last_seen_at,
        }
    return dict(sorted(hosts_by_zone.items()))


def servers_on(connection: sa.Connection, names: t.Collection[str]) -> dict[str, list[dict[str, str]]]:
    """The instances that have a claim on each of these hosts: uuid and name."""
    servers_by_host: dict[str, list[dict[str, str]]] = {name: [] for name in names}
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
        servers_by_host[row.name].append({"uuid": row.uuid, "name": domain_name(row.id, row.adopted)})
    return servers_by_host


def aggregates(connection: sa.Connection) -> list[Aggregate]:
    """The aggregates in the order of their numbers."""
    hosts: collections.defaultdict[int, list[str]] = collections.defaultdict(list)
    for number, host in connection.execute(sa.select(aggregate_host).order_by(aggregate_host.c.host)):
        hosts[number].append(host)
    rows = connection.execute(sa.select(aggregate).order_by(aggregate.c.id)).mappings()
    return [Aggregate(**row, hosts=hosts[row["id"]]) for row in rows]
