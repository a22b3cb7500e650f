# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""NUMA nodes of a compute host, out of its facts: which CPUs its inventory shares and which it gives out one by one.

Nova's `cpu_shared_set`, `cpu_dedicated_set` and `reserved_huge_pages`. As with Nova, a host that has a dedicated set
alone has no CPUs to share, and one without sets shares all. Unlike with Nova, one without a dedicated set has none to
give out: Nova's old way, by which each of its CPUs was both, let pinned guests and others meet on them. Pure.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping
from . import cpu_sets

SETS = ("cpu_shared_set", "cpu_dedicated_set")
RESERVED_PAGES = "reserved_huge_pages"
OPTIONS = (*SETS, RESERVED_PAGES)  # what the inventory says


@dataclasses.dataclass(frozen=True)
class Pages:
    """Pages of one size on a node: how many there are, and how many of them are the host's own."""

    total: int
    reserved: int = 0


@dataclasses.dataclass(frozen=True)
class HostCell:
    """A NUMA node of a host."""

    id: int
    shared: frozenset[int]
    dedicated: frozenset[int]
    siblings: tuple[frozenset[int], ...]  # hardware threads of one core, of those that guests may have
    memory_mb: int
    pages: t.Mapping[int, Pages] = dataclasses.field(default_factory=dict)  # by KiB

    @property
    def threads(self) -> int:
        """The most hardware threads that a core has."""
        return max(map(len, self.siblings), default=1)


def cells_of(facts: JsonMapping) -> tuple[HostCell, ...]:
    """The nodes of the host with these facts; none where it was not asked."""
    nodes = facts.get("numa") or ()
    shared, dedicated = _sets(facts)
    reserved = {(int(row["node"]), int(row["size"])): int(row["count"]) for row in facts.get(RESERVED_PAGES) or ()}
    cells = []
    for node in nodes:
        cpus = cpu_sets.parse("cpus", node["cpus"])
        of_node = cpus if shared is None else cpus & shared
        own = cpus & dedicated
        siblings = (cpu_sets.parse("siblings", text) & (of_node | own) for text in node["siblings"])
        cells.append(
            HostCell(
                id=node["id"],
                shared=of_node,
                dedicated=own,
                siblings=tuple(sorted(filter(None, siblings), key=min)),
                memory_mb=node["memory_mb"],
                pages={
                    int(size): Pages(total, reserved.get((node["id"], int(size)), 0))
                    for size, total in node["pages"].items()
                },
            )
        )
    return tuple(cells)


def shared_cpus(facts: JsonMapping) -> frozenset[int] | None:
    """The CPUs that guests without CPUs of their own run on; None: all."""
    return _sets(facts)[0]


def not_shared(facts: JsonMapping) -> int:
    """Return how many of the host's CPUs are kept from guests that share theirs."""
    shared = shared_cpus(facts)
    if shared is None:
        return 0
    nodes = facts.get("numa") or ()
    return sum(len(cpu_sets.parse("cpus", node["cpus"]) - shared) for node in nodes)


def check(name: str, facts: JsonMapping) -> None:
    """Raise NovaliteError for sets and reserved pages of host `name` that make no sense."""
    sets = [cpu_sets.parse(f"compute host '{name}': {option}", facts.get(option) or "") for option in SETS]
    if both := sets[0] & sets[1]:
        raise NovaliteError(f"compute host '{name}': CPUs {cpu_sets.text_of(both)} are in {SETS[0]} and {SETS[1]}")
    for row in facts.get(RESERVED_PAGES) or ():
        if not all(str(row.get(key, "")).isdigit() for key in ("node", "size", "count")):
            raise NovaliteError(
                f"compute host '{name}': {RESERVED_PAGES} has {row}: give node, size (KiB) and count as whole numbers"
            )


def _sets(facts: JsonMapping) -> tuple[frozenset[int] | None, frozenset[int]]:
    shared, dedicated = (facts.get(option) or "" for option in SETS)
    of_shared = cpu_sets.parse(SETS[0], shared) if shared or dedicated else None
    return of_shared, cpu_sets.parse(SETS[1], dedicated)
