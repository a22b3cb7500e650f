# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute hosts as lists show them, put together from rows of the ledger, whoever reads those: SQLAlchemy, or the
driver alone for a look that is to be quick."""

from __future__ import annotations

import typing as t

from .._json import JsonMapping, JsonObject
from .listed_servers import Read

AMOUNTS = {"vcpus": "cpu_ratio", "memory_mb": "ram_ratio", "disk_gb": "disk_ratio"}  # with how often each is promised
_SAME = ("name", "up", "down_reason", "enabled", "disabled_reason")
_WATCHED = ("looked_at", "differences")


class Resource(t.TypedDict):
    """A host's amounts of one resource. `limit` is what may be promised: (total - reserved) * ratio, as Placement
    counts; `others` is the part of `used` that guests take that are not novalite's."""

    total: int
    reserved: int
    ratio: float
    limit: int
    used: int
    others: int


class Host(t.TypedDict):
    """A compute host. Times are in seconds since the epoch; memory is in MiB, disk in GiB."""

    name: str
    up: bool
    down_reason: str | None
    enabled: bool
    disabled_reason: str | None
    zone: str
    aggregates: list[str]
    last_seen_at: int | None
    looked_at: int | None
    differences: int | None
    instances: int
    building: int
    failed_builds: int
    capacity: dict[str, Resource]  # vcpus, memory_mb, disk_gb
    facts: JsonObject


class Membership(t.NamedTuple):
    """Aggregate as a host sees it."""

    name: str
    zone: str | None
    metadata: dict[str, str]


def records(read: Read) -> list[Host]:
    """The hosts that `read` finds, by name."""
    rows = sorted(read("compute_hosts", {}), key=lambda row: str(row["name"]))
    building = {row["host"]: row["builds"] for row in read("builds", {})}
    aggregates = memberships(read, {row["name"]: row["aggregates"] for row in rows})
    hosts = []
    for row in rows:
        of_host = aggregates[row["name"]]
        host = {
            **{name: row[name] for name in _SAME},
            "zone": zone_of(row["zone"], of_host),
            "aggregates": [aggregate.name for aggregate in of_host],
            "last_seen_at": row["last_seen_at"] or None,
            **{name: row[name] for name in _WATCHED},
            "instances": row["num_instances"],
            "building": building.get(row["name"], 0),
            "failed_builds": row["failed_builds"],
            "capacity": {name: _resource(row, name, row[ratio]) for name, ratio in AMOUNTS.items()},
            "facts": row["facts"],
        }
        hosts.append(t.cast(Host, host))
    return hosts


def memberships(read: Read, named: t.Mapping[str, t.Sequence[str]]) -> dict[str, list[Membership]]:
    """The aggregates of each host in `named`, whose values are the names that the host's inventory gives."""
    rows = list(read("aggregates", {}))
    known = {row["name"]: Membership(row["name"], row["zone"], row["metadata"]) for row in rows}
    by_id = {row["id"]: known[row["name"]] for row in rows}
    memberships_by_host: dict[str, dict[str, Membership]] = {
        host: {name: known.get(name) or Membership(name, None, {}) for name in names} for host, names in named.items()
    }
    if by_id:
        for row in read("hosts_of_aggregates", {}):
            if row["host"] in memberships_by_host:
                member = by_id[row["aggregate_id"]]
                memberships_by_host[row["host"]][member.name] = member
    return {host: [of_host[name] for name in sorted(of_host)] for host, of_host in memberships_by_host.items()}


def zone_of(inventory_zone: str, aggregates: t.Iterable[Membership]) -> str:
    """A host's availability zone; `inventory_zone` is the inventory's."""
    return next((record.zone for record in aggregates if record.zone), inventory_zone)


def _resource(row: JsonMapping, name: str, ratio: float) -> Resource:
    total, reserved, others = row[name], row[f"reserved_{name}"], row[f"{name}_others"]
    # down, not up: half a core cannot be promised
    limit = max(0, int((total - reserved) * ratio))
    used = row[f"{name}_used"] + others
    return {"total": total, "reserved": reserved, "ratio": ratio, "limit": limit, "used": used, "others": others}
