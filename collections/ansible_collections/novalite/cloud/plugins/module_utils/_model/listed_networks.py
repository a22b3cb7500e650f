# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks as lists show them, put together from rows of the ledger, whoever reads those: SQLAlchemy, or the driver
alone for a look that is to be quick."""

from __future__ import annotations

import ipaddress
import typing as t

from .._json import JsonMapping, JsonObject
from .listed_servers import Read, dotted

STATES = ("total", "instances", "hosts", "reserved", "resting")  # of addresses; the others are free
Ranges = list[tuple[str, str]]  # first and last address of each


def records(read: Read) -> list[JsonObject]:
    """The rows of the networks that `read` finds, each with `ranges`: what of its IPv4 pool is handed out."""
    rows = list(read("networks", {}))
    kept: dict[int, set[int]] = {row["id"]: set() for row in rows}
    for row in read("reserved_addresses", {"ids": list(kept)}):
        kept[row["network_id"]].add(row["ip"])
    return [{**row, "ranges": [] if row["cidr"] is None else _complement(row["cidr"], kept[row["id"]])} for row in rows]


def with_addresses(read: Read) -> list[JsonObject]:
    """The networks, by name, each with how many addresses are in which state."""
    counted = {row["network_id"]: counts_of(row) for row in read("addresses", {})}
    none = dict.fromkeys((*STATES, "free"), 0)
    return [{**row, "addresses": counted.get(row["id"], none)} for row in read("whole_networks", {})]


def counts_of(row: JsonMapping) -> dict[str, int]:
    """Return how many addresses are in which state, of a row that counts those of STATES."""
    counts = {state: int(row[state]) for state in STATES}
    return {**counts, "free": 2 * counts["total"] - sum(counts.values())}


def _complement(cidr: str, kept: t.Iterable[int]) -> Ranges:
    """Return the ranges of `cidr` that are not `kept`. A large pool is not walked through."""
    whole = ipaddress.IPv4Network(cidr)
    first, last = int(whole[0]), int(whole[-1])
    gaps = []
    for address in [*sorted(address for address in kept if first <= address <= last), last + 1]:
        if first < address:
            gaps.append((dotted(first), dotted(address - 1)))
        first = address + 1
    return gaps
