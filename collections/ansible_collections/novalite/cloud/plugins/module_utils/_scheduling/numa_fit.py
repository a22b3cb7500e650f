# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fit of a guest's NUMA nodes onto a host's: which nodes, CPUs and pages it gets.

Nova's rules (nova/virt/hardware.py, numa_fit_instance_to_host): emptier nodes first, cores with most free threads
first, no overcommit of CPUs and memory of who has CPUs of its own, none of huge pages. `tests/parity` compares them.
"""

from __future__ import annotations

import dataclasses
import itertools
import typing as t

from .._model.host_numa import HostCell
from .._model.numa import ANY, ISOLATE, LARGE, REQUIRE, SMALL, Cell, Claim, ClaimedCell, Topology


@dataclasses.dataclass(frozen=True)
class Ratios:
    """Number of times that a node's shared CPUs and its memory may be promised."""

    cpu: float = 1.0
    ram: float = 1.0


class _Node:
    """A host's node with what is left of it."""

    def __init__(self, cell: HostCell, claims: t.Iterable[Claim]) -> None:
        here = [claimed for claim in claims for claimed in claim.cells if claimed.node == cell.id]
        self.cell = cell
        self.free = cell.dedicated.difference(*(claimed.held for claimed in here))
        self.shared_used = sum(len(claimed.cpus) for claimed in here if not claimed.pins)
        self.memory_used = sum(claimed.memory_mb for claimed in here)
        self.smallest = min(cell.pages, default=0)
        self.pages_used = dict.fromkeys(cell.pages, 0)
        for claimed in here:
            size = claimed.page_kib or self.smallest
            if size in self.pages_used:
                self.pages_used[size] += claimed.memory_mb * 1024 // size

    @property
    def memory_free(self) -> int:
        return self.cell.memory_mb - self.memory_used

    def has_pages(self, size: int, memory_mb: int, of_free: bool = True) -> bool:
        """Tell whether `memory_mb` can be made of pages of `size` KiB: of the free ones, or of all there are."""
        if size not in self.cell.pages:
            return False
        pages = self.cell.pages[size]
        count = pages.total - (self.pages_used[size] + pages.reserved if of_free else 0)
        return memory_mb * 1024 <= count * size and memory_mb * 1024 % size == 0


def fit(host: t.Sequence[HostCell], claims: t.Collection[Claim], asked: Topology, ratios: Ratios) -> Claim | str:
    """Claim of an instance that asks for `asked` on a host where there are these `claims`; or why it gets none, worded
    to follow the host's name."""
    if not host:
        return "has not said which NUMA nodes it has: run compute_nodes.yml"
    if len(host) < len(asked.cells):
        return f"has {len(host)} NUMA nodes, {len(asked.cells)} are asked for"
    nodes = [_Node(cell, claims) for cell in host]
    reserved = 1 if asked.emulator == ISOLATE else 0
    if asked.dedicated:
        free, needed = sum(len(node.free) for node in nodes), asked.vcpus + reserved
        total = sum(len(node.cell.dedicated) for node in nodes)
        if not total:
            return "has no dedicated CPUs: set compute_node_cpu_dedicated_set"
        if free < needed:
            return f"{free} of {total} dedicated CPUs are free, {needed} are asked for"
    if len(nodes) > len(asked.cells):
        nodes.sort(key=lambda node: -node.memory_free)
        nodes.sort(key=lambda node: -len(node.free) if asked.dedicated else node.shared_used)
    return _Search(nodes, asked, ratios, reserved).run()


class _Search:
    """Search for a node of the host for each of the guest's, in the order of itertools.permutations()."""

    def __init__(self, nodes: t.Sequence[_Node], asked: Topology, ratios: Ratios, reserved: int) -> None:
        self.nodes, self.asked, self.ratios, self.reserved = nodes, asked, ratios, reserved
        self.results: dict[tuple[int, int], ClaimedCell | str] = {}
        self.dead: set[frozenset[int]] = set()  # nodes that, once taken, leave no place for the rest

    def run(self) -> Claim | str:
        cells = self._place(frozenset())
        if cells is not None:
            return Claim(cells, self.asked.emulator)
        reasons = [reason for reason in self.results.values() if isinstance(reason, str)]
        return reasons[0] if reasons else f"has no room for {len(self.asked.cells)} NUMA nodes side by side"

    def _place(self, taken: frozenset[int]) -> tuple[ClaimedCell, ...] | None:
        if len(taken) == len(self.asked.cells):
            return ()
        if taken in self.dead:
            return None
        for number in range(len(self.nodes)):
            if number in taken:
                continue
            result = self._result(number, len(taken))
            if isinstance(result, ClaimedCell):
                rest = self._place(taken | {number})
                if rest is not None:
                    return (result, *rest)
        self.dead.add(taken)
        return None

    def _result(self, number: int, guest_node: int) -> ClaimedCell | str:
        key = number, guest_node
        if key not in self.results:
            # QEMU's own threads are on the node of the guest's first
            reserved = 0 if guest_node else self.reserved
            cell = self.asked.cells[guest_node]
            self.results[key] = _fit_cell(self.nodes[number], cell, self.asked, self.ratios, reserved)
        return self.results[key]


def _fit_cell(node: _Node, cell: Cell, asked: Topology, ratios: Ratios, reserved: int) -> ClaimedCell | str:
    name = f"NUMA node {node.cell.id}"
    size = None
    if asked.page_size is not None:
        size = next((size for size in _sizes(node, asked.page_size) if node.has_pages(size, cell.memory_mb)), None)
        if size is None:
            pages = (
                f"pages of {asked.page_size} KiB" if isinstance(asked.page_size, int) else f"{asked.page_size} pages"
            )
            return f"{name} has too few free {pages} for {cell.memory_mb} MiB"
    elif not node.has_pages(node.smallest, cell.memory_mb, of_free=asked.dedicated):
        return f"{name} has too little free memory for {cell.memory_mb} MiB"
    claimed = ClaimedCell(cell.cpus, cell.memory_mb, node.cell.id, page_kib=size)
    if asked.dedicated:
        needed = len(cell.cpus) + reserved
        if needed > len(node.free):
            own = len(node.cell.dedicated)
            return f"{name}: {len(node.free)} of {own} dedicated CPUs are free, {needed} are asked for"
        packed = _pack(node, cell.cpus, asked.thread_policy, reserved)
        if isinstance(packed, str):
            return f"{name} {packed}"
        return dataclasses.replace(claimed, pins=packed[0], reserved=packed[1])
    if len(cell.cpus) > len(node.cell.shared):
        return f"{name} has {len(node.cell.shared)} shared CPUs, {len(cell.cpus)} are asked for"
    if node.shared_used + len(cell.cpus) > len(node.cell.shared) * ratios.cpu:
        return f"{name}: {node.shared_used} vCPUs are given to others, {len(cell.cpus)} more are asked for"
    if node.memory_used + cell.memory_mb > node.cell.memory_mb * ratios.ram:
        return f"{name}: {node.memory_used} MiB are given to others, {cell.memory_mb} more are asked for"
    return claimed


def _sizes(node: _Node, needed: int | str) -> list[int]:
    """List the sizes of pages that will do, the largest first."""
    there = sorted(node.cell.pages, reverse=True)
    by_word = {SMALL: there[-1:], LARGE: there[:-1], ANY: there}
    return by_word[needed] if isinstance(needed, str) else [needed]


_Packed = tuple[tuple[tuple[int, int], ...], tuple[int, ...]]


def _pack(node: _Node, vcpus: tuple[int, ...], policy: str | None, reserved: int) -> _Packed | str:
    """Pins of these vCPUs, and CPUs for QEMU's own threads: Nova's _pack_instance_onto_cores()."""
    cores = [sorted(core & node.free) for core in node.cell.siblings if core & node.free]
    threads = node.cell.threads
    if policy == ISOLATE:
        if threads > 1:
            return f"has cores of {threads} hardware threads, which hw:cpu_thread_policy={ISOLATE} is not for"
        return _pinned(cores, cores, 1, vcpus, reserved) or "has too few free cores"
    if policy == REQUIRE and threads == 1:
        return f"has no hardware threads, which hw:cpu_thread_policy={REQUIRE} asks for"
    for number in range(max(map(len, cores), default=0), 1 if policy == REQUIRE else 0, -1):
        usable = [core for core in cores if len(core) >= number]
        if packed := _pinned(usable, cores, number, vcpus, reserved):
            return packed
    if policy == REQUIRE:
        return "has too few free cores with all their hardware threads"
    single = [[cpu] for core in cores for cpu in core]
    return _pinned(single, single, 1, vcpus, reserved) or "has too few free cores"


def _pinned(
    usable: t.Sequence[t.Sequence[int]],
    cores: t.Sequence[t.Sequence[int]],
    threads: int,
    vcpus: tuple[int, ...],
    reserved: int,
) -> _Packed | None:
    """Pin to `threads` of each of the `usable` cores; None where they, or what is left of all, do not suffice."""
    if threads * len(usable) < len(vcpus):
        return None
    pins = tuple(zip(sorted(vcpus), itertools.chain.from_iterable(core[:threads] for core in usable)))
    taken = {cpu for _vcpu, cpu in pins}
    left = [cpu for core in cores for cpu in core if cpu not in taken]
    return (pins, tuple(left[:reserved])) if len(left) >= reserved else None
