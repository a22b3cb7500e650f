# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""State of the cloud: free room on hosts, owners of addresses, reasons for instances' hosts. Reads only."""

from __future__ import annotations

import math
import typing as t

import netaddr
import sqlalchemy as sa

from ...._addressing.pools import to_text
from ...._errors import NotFoundError
from ...._json import JsonMapping, JsonObject
from ...._model import listed_hosts, listed_networks, listed_servers
from ...._model.listed_hosts import Host
from ...._model.listed_networks import STATES, counts_of
from ...._rules.build_states import CREATE, is_troubled
from ...db import clock
from ...db.tables import compute_host, fixed_ip, instance, instance_action, network, vif
from ...db.tables_addresses import HOLDER, OF_VIF
from .. import counts
from ..identity.quota_records import quota_limits
from ..lookups import of_project
from ..network.host_networks import further_ranges
from . import host_states
from .host_states import BUILDS
from .silence import with_silence

MAP_CELLS = 256  # in the map of a network's addresses; in a larger one, each stands for several
OWNERS = 1024  # addresses of a project that a map names
_PARTS = (("", ""), ("reserved_", ""), ("", "_used"), ("", "_others"))  # what a host's columns say of each resource

# quotas, in the order in which they are shown
_COUNTED = (
    *("instances", "cores", "ram", "key_pairs", "security_groups", "server_groups", "floating_ips", "networks"),
    *("images", "volumes", "gigabytes", "snapshots"),
)


class Usage(t.TypedDict):
    """A project's use of a quota; -1: there is no limit."""

    resource: str
    used: int
    limit: int


# What listed_hosts reads. The command `novalite` has them as texts, too: operations/looks.py
LOAD_HOSTS: dict[str, sa.Select[t.Any]] = {
    "compute_hosts": sa.select(
        *(compute_host.c[name] for name in ("name", "up", "down_reason", "enabled", "disabled_reason", "zone")),
        *(compute_host.c[name] for name in ("aggregates", "last_seen_at", "looked_at", "differences")),
        *(compute_host.c[name] for name in ("num_instances", "failed_builds", "facts")),
        *(compute_host.c[f"{before}{name}{after}"] for name in listed_hosts.AMOUNTS for before, after in _PARTS),
        *(compute_host.c[name] for name in listed_hosts.AMOUNTS.values()),
    ),
    "builds": BUILDS,
    **host_states.LOAD,
}


def hosts(connection: sa.Connection, names: t.Collection[str] | None = None) -> list[Host]:
    """List every compute host, or those of `names`, by name."""

    def read(name: str, _values: JsonMapping) -> t.Iterable[t.Any]:
        query = LOAD_HOSTS[name]
        if name == "compute_hosts" and names is not None:
            query = query.where(compute_host.c.name.in_(sorted(set(names))))
        return connection.execute(query).mappings()

    return listed_hosts.records(read)


def host(connection: sa.Connection, name: str) -> Host:
    """Return one compute host. Raises NotFoundError."""
    named_hosts = hosts(connection, [name])
    if not named_hosts:
        raise NotFoundError(f"Compute host {name[:255]} could not be found.")
    return named_hosts[0]


def networks(connection: sa.Connection, project_id: str | None) -> list[JsonObject]:
    """The networks that a project sees (None: all), each with how many addresses are in which state."""
    conditions = [] if project_id is None else [network.c.owner.in_(["", project_id])]
    values = {"now": clock.seconds(connection)}

    def read(name: str, _values: JsonMapping) -> t.Iterable[t.Any]:
        return connection.execute(LOAD_ADDRESSES[name].where(*conditions), values).mappings()

    return listed_networks.with_addresses(read)


def address_map(connection: sa.Connection, uuid: str, project_id: str | None) -> JsonObject:
    """Map the addresses of a network that a project sees (None: any, and all of its users are named).

    `cells` divide the pool into at most 256 parts of `block` addresses each, in order, with the counts of each state;
    `owners` name instances of the project by address. Raises NotFoundError.
    """
    conditions: list[sa.ColumnElement[bool]] = [network.c.uuid == uuid]
    if project_id is not None:
        conditions.append(network.c.owner.in_(["", project_id]))
    row = connection.execute(sa.select(network).where(*conditions)).mappings().first()
    if row is None:
        raise NotFoundError(f"Network {uuid[:255]} could not be found.")
    further = further_ranges(connection, [row["id"]]).get(row["id"], ())
    ranges = [row["cidr"], *(each.cidr for each in further)]
    pools = [netaddr.IPNetwork(cidr) for cidr in ranges if cidr is not None]
    block = math.ceil(sum(pool.size for pool in pools) / MAP_CELLS) or 1
    cells = [cell for pool in pools for cell in _cells(connection, row["id"], pool, block)]
    owners = (
        sa.select(fixed_ip.c.ip, instance.c.uuid, instance.c.name, instance.c.display_name, vif.c.mac)
        .join(vif, sa.and_(vif.c.id == HOLDER, fixed_ip.c.owner.startswith(OF_VIF)))
        .join(instance, instance.c.uuid == vif.c.instance_uuid)
        .where(fixed_ip.c.network_id == row["id"])
        .order_by(fixed_ip.c.ip)
        .limit(OWNERS)
    )
    if project_id is not None:
        owners = owners.where(instance.c.project_id == project_id)
    totals = {state: sum(counts[state] for counts in cells) for state in (*STATES, "free")}
    return {
        **dict(row),
        "addresses": totals,
        "block": block,
        "cells": cells,
        "owners": [
            {"address": to_text(nic.ip), "uuid": nic.uuid, "name": nic.display_name or nic.name, "mac": nic.mac}
            for nic in connection.execute(owners)
        ],
    }


def _cells(connection: sa.Connection, number: int, pool: netaddr.IPNetwork, block: int) -> list[JsonObject]:
    """The parts of a range of the network, each with its first address and the counts of each state."""
    cell = (fixed_ip.c.ip - pool.first) // block
    query = (
        sa.select(cell.label("cell"), *_counts(clock.seconds(connection)))
        .join(network, network.c.id == fixed_ip.c.network_id)
        .where(fixed_ip.c.network_id == number, fixed_ip.c.ip.between(pool.first, pool.last))
        .group_by("cell")
        .order_by("cell")
    )
    return [
        {"first": to_text(pool.first + row["cell"] * block), **counts_of({**row})}
        for row in connection.execute(query).mappings()
    ]


def _counts(now: int | sa.BindParameter[int]) -> list[sa.ColumnElement[int]]:
    """Return columns that count pool rows, joined to their networks: all, of instances, of hosts, reserved, resting."""
    of_instances = fixed_ip.c.owner.startswith(OF_VIF)
    resting = sa.and_(
        fixed_ip.c.owner.is_(None),
        fixed_ip.c.reserved.is_(None),
        fixed_ip.c.released_at > 0,
        fixed_ip.c.released_at + network.c.quarantine_seconds > now,
    )
    tests = (
        of_instances,
        sa.and_(fixed_ip.c.owner.is_not(None), sa.not_(of_instances)),
        fixed_ip.c.reserved.is_not(None),
        resting,
    )
    counted = [sa.func.count(), *(sa.func.sum(sa.case((test, 1), else_=0)) for test in tests)]
    return [column.label(state) for column, state in zip(counted, STATES)]


# What listed_networks.with_addresses() reads; in looks.py, too
LOAD_ADDRESSES: dict[str, sa.Select[t.Any]] = {
    "whole_networks": sa.select(network).order_by(network.c.name, network.c.id),
    "addresses": sa.select(fixed_ip.c.network_id, *_counts(sa.bindparam("now", type_=sa.BigInteger)))
    .join(network, network.c.id == fixed_ip.c.network_id)
    .group_by(fixed_ip.c.network_id),
}


def instance_states(connection: sa.Connection, project_id: str | None) -> dict[str, int]:
    """Count the instances of the project (None: of all) by vm_state, most first."""
    count = sa.func.count()
    query = sa.select(instance.c.vm_state, count).where(instance.c.deleted == 0)
    if project_id is not None:
        query = query.where(instance.c.project_id == project_id)
    rows = connection.execute(query.group_by(instance.c.vm_state).order_by(count.desc(), instance.c.vm_state))
    return {row.vm_state: row[1] for row in rows}


def placement(connection: sa.Connection, uuid: str, project_id: str | None) -> JsonObject:
    """Return the scheduler's record of an instance of the project (None: of any), and `silent_for`, in seconds, where
    the run that is at it is dead. Raises NotFoundError."""

    def read(name: str, values: JsonMapping) -> t.Iterable[t.Any]:
        return connection.execute(LOAD_PLACEMENT[name], {"project_id": project_id, **values}).mappings()

    placed = listed_servers.placement(read, uuid)
    if placed is None:
        raise NotFoundError(f"Instance {uuid[:255]} could not be found.")
    watched, record = placed
    return {**record, "silent_for": with_silence(connection, [watched])[0]["silent_for"]}


# What listed_servers.placement() reads; in looks.py, too
LOAD_PLACEMENT: dict[str, sa.Select[t.Any]] = {
    "placed_server": sa.select(
        *(instance.c[name] for name in ("uuid", "name", "host", "attempts", "vm_state", "task_state", "updated_at"))
    ).where(instance.c.uuid == sa.bindparam("uuid"), instance.c.deleted == 0, of_project(instance.c.project_id)),
    "decisions": sa.select(instance_action.c.details["scheduler"].label("explanation"), instance_action.c.started_at)
    .where(instance_action.c.instance_uuid == sa.bindparam("uuid"), instance_action.c.action == "create")
    .order_by(instance_action.c.id.desc())
    .limit(1),
}


def troubled(connection: sa.Connection, project_id: str | None = None) -> list[JsonObject]:
    """The instances of the project (None: of all) that failed, and those at which a dead run is: uuid, name,
    display_name, vm_state, task_state, fault and `silent_for`, by name."""
    query = LOAD_SUSPECTS["suspects"]
    if project_id is not None:
        query = query.where(instance.c.project_id == project_id)
    rows = connection.execute(query).mappings()
    return list(filter(is_troubled, with_silence(connection, [dict(row) for row in rows])))


_FAILED_OR_BUSY = sa.or_(
    *(instance.c.vm_state == state for state in ("error", *CREATE.vm_states)), instance.c.task_state.is_not(None)
)
# Those that may be troubled; in looks.py, too
LOAD_SUSPECTS: dict[str, sa.Select[t.Any]] = {
    "suspects": sa.select(
        *(instance.c[name] for name in ("uuid", "name", "display_name", "vm_state", "task_state", "updated_at")),
        instance.c.fault,
    )
    .where(instance.c.deleted == 0, _FAILED_OR_BUSY)
    .order_by(instance.c.name, instance.c.id)
}


def usage(connection: sa.Connection, project_id: str) -> list[Usage]:
    """The quotas of a project that can be counted over all of it."""
    limits, used = quota_limits(connection, project_id), counts.used(connection, project_id)
    return [{"resource": resource, "used": used[resource], "limit": limits[resource]} for resource in _COUNTED]
