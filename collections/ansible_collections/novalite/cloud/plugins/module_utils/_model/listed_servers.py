# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers as lists show them, put together from rows of the ledger, whoever reads those: SQLAlchemy, or the driver
alone for a look that is to be quick."""

from __future__ import annotations

import functools
import json
import typing as t

from .._json import JsonMapping, JsonObject

Record = JsonObject
# Name of a statement (of _ledger/queries/compute/server_listing.py), and its values; the rows by the names of columns
Read = t.Callable[[str, JsonMapping], t.Iterable[JsonMapping]]

BATCH = 1000


def records(read: Read, ids: t.Sequence[int]) -> list[Record]:
    """The records of the servers with these numbers, in this order, in a few queries for each BATCH of them: SQLite
    takes 32766 values in one, and what SQLAlchemy does for each value grows with their number."""
    batches = (ids[begin : begin + BATCH] for begin in range(0, len(ids), BATCH))
    return [record for batch in batches for record in _records(read, batch)]


def placement(read: Read, uuid: str) -> tuple[Record, Record] | None:
    """The row of a server, by which it is told whether its run is dead, and its host with the scheduler's record of its
    last placement (`explanation`; None: it was not placed yet). None for a server that is not there."""
    rows = list(read("placed_server", {"uuid": uuid}))
    if not rows:
        return None
    decisions = list(read("decisions", {"uuid": uuid}))
    explanation = decisions[0]["explanation"] if decisions else None
    row: Record = {**rows[0]}
    return row, {
        **{field: row[field] for field in ("uuid", "name", "host", "attempts")},
        "silent_for": None,
        "decided_at": None if explanation is None else decisions[0]["started_at"],
        "explanation": explanation,
    }


def _records(read: Read, ids: t.Sequence[int]) -> list[Record]:
    rows = {row["id"]: row for row in read("servers", {"ids": list(ids)})}
    uuids = [row["uuid"] for row in rows.values()]
    nics = nics_of(read, uuids)
    volumes: dict[str, list[Record]] = {}
    for attachment in read("volumes", {"uuids": uuids}):
        volumes.setdefault(attachment["instance_uuid"], []).append(dict(attachment))
    groups: dict[int, list[str]] = {}
    for group in read("groups", {"ids": list(ids)}):
        groups.setdefault(group["instance_id"], []).append(group["name"])
    names = sorted({row["host"] for row in rows.values() if row["host"] is not None})
    hosts = {row["name"]: row for row in read("hosts", {"names": names})} if names else {}
    zones = zones_by_aggregates(hosts.values(), read("zones_of_hosts", {"names": names})) if names else {}
    ids_of_flavors = _flavorids(read, rows.values())
    listed = []
    for number in ids:
        row = rows.get(number)
        if row is None:  # deleted from the ledger between two statements
            continue
        record = dict(row)
        kept = _parsed(record.pop("flavor_text"))
        record["flavor"] = kept if "flavorid" in kept else {**kept, "flavorid": ids_of_flavors[kept["name"]]}
        record["nics"] = nics.get(record["uuid"], [])
        record["security_groups"] = groups.get(number, [])
        record["volumes"] = volumes.get(record["uuid"], [])
        host = hosts.get(record["host"])
        record["host_up"], record["host_enabled"] = (host["up"], host["enabled"]) if host else (None, None)
        # one that is on no host is shown where it was asked for; of "zone:host", that is a zone
        asked_for = (record["availability_zone"] or "").partition(":")[0] or None
        record["zone"] = zones.get(record["host"], host["zone"]) if host else asked_for
        listed.append(record)
    return listed


def nics_of(read: Read, uuids: t.Sequence[str]) -> dict[str, list[Record]]:
    """UUID of a server -> its interfaces, in order."""
    nics_by_server: dict[str, list[Record]] = {}
    floating: dict[str, list[tuple[str, str | None]]] = {}  # each with the further address that it leads to
    for row in read("floating_ips", {"uuids": list(uuids)}):
        leads_to = None if row["further_ip"] is None else dotted(row["further_ip"])
        floating.setdefault(row["vif_id"], []).append((dotted(row["address"]), leads_to))
    further: dict[str, list[str]] = {}
    for row in read("further_ips", {"ids": list(uuids)}):
        further.setdefault(row["further_of"], []).append(dotted(row["ip"]))
    for row in read("nics", {"uuids": list(uuids)}):
        ips = [] if row["ip"] is None else [dotted(row["ip"]), *further.get(row["id"], [])]
        first, leading = ips[0] if ips else None, floating.get(row["id"], [])
        nic = {**row, "ip": first, "ips": ips, "floating_ips": [address for address, _leads_to in leading]}
        # of several to one address, of several pools, the first
        nic["floating_by_ip"] = {leads_to or first or "": address for address, leads_to in reversed(leading)}
        nics_by_server.setdefault(nic.pop("instance_uuid"), []).append(nic)
    return nics_by_server


def dotted(number: int) -> str:
    """Return an IPv4 address as people write it."""
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> Record:
    """Shared by all who have this flavor: read it, do not change it."""
    return t.cast(Record, json.loads(text))


def _flavorids(read: Read, rows: t.Iterable[JsonMapping]) -> dict[str, str]:
    """The ids of flavors that were recorded without, by name; one that is gone is known by its name."""
    names = {kept["name"] for kept in (_parsed(row["flavor_text"]) for row in rows) if "flavorid" not in kept}
    if not names:
        return {}
    flavorid_by_name = {
        row["name"]: row["flavorid"] or str(row["id"]) for row in read("flavors", {"names": sorted(names)})
    }
    return {name: flavorid_by_name.get(name, name) for name in names}


def zones_by_aggregates(
    hosts: t.Iterable[t.Mapping[t.Any, t.Any]], zoned: t.Iterable[t.Mapping[t.Any, t.Any]]
) -> dict[str, str]:
    """The zones of those of `hosts` (`name`, `aggregates` of their inventory) that are in an aggregate with one, by
    name. `zoned` are those aggregates: `name`, `zone`, and a `host` in them."""
    zones: dict[str, str] = {}
    aggregates_by_host: dict[str, list[str]] = {}
    for row in zoned:
        zones[row["name"]] = row["zone"]
        aggregates_by_host.setdefault(row["host"], []).append(row["name"])
    chosen = {}
    for host in hosts:
        names = [*aggregates_by_host.get(host["name"], ()), *(name for name in host["aggregates"] if name in zones)]
        if names:
            chosen[host["name"]] = zones[min(names)]
    return chosen
