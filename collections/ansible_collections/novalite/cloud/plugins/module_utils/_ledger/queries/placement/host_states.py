# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute hosts as the scheduler sees them. Reads only."""

from __future__ import annotations

import json
import typing as t

import sqlalchemy as sa

from ...._json import JsonMapping, JsonObject
from ...._model import listed_hosts, pci
from ...._model.listed_hosts import Membership, zone_of
from ...._model.numa import Claim
from ...._scheduling.rows import Aggregate, HostState
from ...db import tables
from ...db.tables import allocation, instance, server_group_member
from ...db.tables import compute_host as table

SERVICE_DOWN_TIME = 60  # seconds; Nova's default
EVER = 10**10  # seconds: to whom a host that nobody has asked for a while is not down
# What the host itself reports and has a column for; everything else it reports goes into `facts`.
TOTALS = ("vcpus", "memory_mb", "disk_gb")
_PLAIN = HostState._fields[: HostState._fields.index("up")]  # those that a state has as they are
_JUDGED = ("up", "down_reason", "zone", "aggregates", "traits", "facts")
STATE_COLUMNS = (*_PLAIN, *_JUDGED)
BUILDS = (
    sa.select(instance.c.host, sa.func.count().label("builds"))
    # as text, so that SQLite sees that its index of such instances is meant
    .where(sa.text("vm_state = 'building'"), instance.c.host.is_not(None), instance.c.deleted == 0)
    .group_by(instance.c.host)
)


def host_states(
    connection: sa.Connection,
    now: int,
    limit_to: t.Iterable[str] | None = None,
    service_down_time: int = SERVICE_DOWN_TIME,
    lock: bool = False,
    with_instances: bool = False,
    with_claims: bool = False,
    seen: t.Collection[str] = (),
) -> tuple[list[HostState], dict[str, tuple[int, int]]]:
    """The hosts as the scheduler sees them, and (id, generation) of each by name.

    A host last seen more than `service_down_time` seconds ago counts as down, unless it is one of those `seen` by the
    run that asks: a build that takes a minute makes no other host unfit to take over. With `lock`, other writers wait
    until this transaction ends (PostgreSQL; on SQLite they do so anyway). `with_instances` tells which instances each
    host has, which costs a row for each, and which few requests ask about; `with_claims` which CPUs, NUMA nodes,
    pages and devices they hold there.
    """
    beside = (table.c.id, table.c.generation, table.c.last_seen_at)
    # as text, parsed below: what most hosts have alike once, and the facts of all together
    read: dict[str, sa.ColumnElement[t.Any]] = {
        name: sa.cast(table.c[name], sa.Text).label(name) for name in ("aggregates", "traits", "facts")
    }
    # a scheduler sees no difference, only reasons name it
    read |= {f"{name}_used": (table.c[f"{name}_used"] + table.c[f"{name}_others"]).label(name) for name in TOTALS}
    query = sa.select(*(read.get(name, table.c[name]) for name in STATE_COLUMNS), *beside)
    if limit_to is not None:
        query = query.where(table.c.name.in_(sorted(set(limit_to))))
    if lock:
        query = query.order_by(table.c.id).with_for_update()  # in this order everywhere: no deadlock
    # The generations first: what the other queries find may then be newer than they are, and never older. A claim
    # that is decided on something older passes its guard.
    rows = connection.execute(query).all()
    building = _building(connection)
    of_hosts = _instances(connection) if with_instances else {}
    parsed = {text: json.loads(text) for text in {text for row in rows for text in (row.aggregates, row.traits)}}
    aggregates = memberships(connection, {row.name: parsed[row.aggregates] for row in rows})
    all_facts = json.loads(f"[{','.join([row.facts for row in rows])}]")
    hand_out_devices = any(facts.get(pci.DEVICES) for facts in all_facts)  # how many are free is weighed
    claims = _claims(connection) if with_claims or hand_out_devices else {}
    states, versions = [], {}
    for row, facts in zip(rows, all_facts):
        *plain, up, down_reason, zone, _names, traits, _text, host_id, generation, last_seen_at = row
        name = plain[0]
        if up and now - last_seen_at > service_down_time and name not in seen:
            up, down_reason = False, f"was last seen {now - last_seen_at} s ago"
        of_host = aggregates[name]
        states.append(
            HostState(  # type: ignore[misc]  # a list of any length, mypy thinks, may hold what is named below, too
                *plain,
                up=up,
                down_reason=down_reason,
                zone=zone_of(zone, of_host) if of_host else zone,
                aggregates=tuple(Aggregate(*known) for known in of_host) if of_host else (),
                traits=parsed[traits],
                num_io_ops=building.get(name, 0),
                instances=of_hosts.get(host_id, {}),
                metrics=facts.get("metrics") or {},
                address=facts.get("address"),
                facts=facts,
                claims=claims.get(host_id, {}),
            )
        )
        versions[name] = (host_id, generation)
    return states, versions


def _building(connection: sa.Connection) -> dict[str, int]:
    """Count the instances that each host is building, by its name: work on its disks."""
    return {row.host: row.builds for row in connection.execute(BUILDS)}


def _instances(connection: sa.Connection) -> dict[int, dict[str, JsonObject]]:
    """The instances with a claim on each host, by its id: by UUID, whose they are and their group."""
    query = (
        sa.select(allocation.c.compute_host_id, instance.c.uuid, instance.c.project_id, server_group_member.c.group_id)
        .join(instance, instance.c.uuid == allocation.c.instance_uuid)
        .outerjoin(server_group_member, server_group_member.c.instance_uuid == instance.c.uuid)
    )
    instances_by_host: dict[int, dict[str, JsonObject]] = {}
    for host_id, uuid, project_id, group_id in connection.execute(query):
        instances_by_host.setdefault(host_id, {})[uuid] = {"project_id": project_id, "group_id": group_id}
    return instances_by_host


def _claims(connection: sa.Connection) -> dict[int, dict[str, Claim]]:
    """The CPUs, NUMA nodes, pages and devices that instances hold on each host, by its id: by UUID."""
    c = allocation.c
    claims_by_host: dict[int, dict[str, Claim]] = {}
    held = sa.select(c.compute_host_id, c.instance_uuid, c.numa).where(c.numa.is_not(None))
    for host_id, uuid, row in connection.execute(held):
        claims_by_host.setdefault(host_id, {})[uuid] = Claim.of(row)
    return claims_by_host


# What listed_hosts.memberships reads. The command `novalite` has them as texts, too: operations/looks.py
LOAD: dict[str, sa.Select[t.Any]] = {
    "aggregates": sa.select(tables.aggregate).order_by(tables.aggregate.c.name),
    "hosts_of_aggregates": sa.select(tables.aggregate_host),
}


def memberships(connection: sa.Connection, named: t.Mapping[str, t.Sequence[str]]) -> dict[str, list[Membership]]:
    """The aggregates of each host in `named`, whose values are the names that the host's inventory gives."""

    def read(name: str, _values: JsonMapping) -> t.Iterable[t.Any]:
        return connection.execute(LOAD[name]).mappings()

    return listed_hosts.memberships(read, named)
