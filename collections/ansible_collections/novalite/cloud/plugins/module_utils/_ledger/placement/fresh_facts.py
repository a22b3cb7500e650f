# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Facts of compute hosts that are recent enough to be believed, and what a host checks before it builds on them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model import cpu_mode, host_numa
from ..._scheduling.rows import AMOUNTS
from ..db.tables import allocation, instance
from ..db.tables import compute_host as table
from .compute_hosts import POLICY, record

_RATIOS = {"vcpus": "cpu_ratio", "memory_mb": "ram_ratio", "disk_gb": "disk_ratio"}
# facts that the inventory says, and not the host
_CONTROLLERS = (
    *("address", "tunnel_address", "antispoof", "shared_routes", "vnc", "disk_discard"),
    *cpu_mode.OPTIONS,
    *host_numa.OPTIONS,
)


def fresh_hosts(
    connection: sa.Connection, expected: t.Mapping[str, JsonMapping | None], max_age: int, now: int
) -> list[str]:
    """Return the hosts among `expected` that were up no more than `max_age` seconds before `now`, sorted.

    `expected` has what the inventory says of each today: facts, policy and `state_dir` by name. A host of which the
    ledger has anything else is not known well enough, and neither is one that failed to build the last time, or had
    guests of another ledger: what it said then may be what has been mended. Nor is one of which the inventory makes no
    sense (None).
    """
    fresh = []
    for row in connection.execute(sa.select(table).where(table.c.name.in_(sorted(expected)))):
        expected_facts = expected[row.name]
        # a last_seen_at that is yet to come is another controller's clock, or ours before it was set
        if (
            expected_facts is None
            or not row.up
            or row.failed_builds
            or "other_ledger" in row.facts
            or not 0 <= now - row.last_seen_at <= max_age
        ):
            continue
        known = {**row.facts, **{column: getattr(row, column) for column in ("state_dir", *POLICY)}}
        if all(known.get(key) == value for key, value in expected_facts.items()):
            fresh.append(row.name)
    return sorted(fresh)


def rooms(connection: sa.Connection, builds: t.Mapping[str, t.Sequence[str]]) -> dict[str, JsonObject]:
    """Return the option `room` of the module `compute_host` for each host of `builds`: name -> UUIDs to be built.

    The instances' claims are in the ledger. As there, disk is not checked where none of them asks for any.
    """
    hosts = {row.name: row for row in connection.execute(sa.select(table).where(table.c.name.in_(sorted(builds))))}
    claims: dict[int, set[str]] = {}
    of_disks: set[str] = set()
    c = allocation.c
    query = sa.select(c.compute_host_id, c.instance_uuid, c.disk_gb)
    for claim in connection.execute(query.where(c.compute_host_id.in_([host.id for host in hosts.values()]))):
        claims.setdefault(claim.compute_host_id, set()).add(claim.instance_uuid)
        if claim.disk_gb:
            of_disks.add(claim.instance_uuid)
    # what was deleted may be there for a moment longer, or be left over: it is not somebody else's (foreign.py)
    there = sa.select(instance.c.host, instance.c.uuid).where(instance.c.host.in_(sorted(hosts)))
    placed: dict[str, set[str]] = {}
    for host_name, uuid in connection.execute(there):
        placed.setdefault(host_name, set()).add(uuid)
    result: dict[str, JsonObject] = {}
    for name, host in hosts.items():
        asks_for_disk = not of_disks.isdisjoint(builds[name])
        shares = {
            amount: {
                "used": getattr(host, f"{amount}_used"),
                "reserved": getattr(host, f"reserved_{amount}")
                + (host_numa.not_shared(host.facts) if amount == "vcpus" else 0),
                "ratio": getattr(host, _RATIOS[amount]),
            }
            for amount in AMOUNTS
            if amount != "disk_gb" or asks_for_disk
        }
        uuids = claims.get(host.id, set()) | placed.get(name, set())
        result[name] = {"count_foreign": host.count_foreign, "instances": sorted(uuids), **shares}
    return result


def record_reported(connection: sa.Connection, reports: t.Sequence[JsonMapping], now: int) -> None:
    """Record what hosts said of themselves in the course of a build. One that was taken out meanwhile stays out."""
    query = sa.select(table.c.name, table.c.facts).where(table.c.name.in_([report["name"] for report in reports]))
    facts = {row.name: row.facts for row in connection.execute(query)}
    known = [report for report in reports if report["name"] in facts]
    if known:
        kept = {name: {key: value for key, value in of.items() if key in _CONTROLLERS} for name, of in facts.items()}
        record(connection, [{**report, **kept[report["name"]]} for report in known], now)
