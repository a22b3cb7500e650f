# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pinning, NUMA nodes and huge pages of a guest, as Nova's driver writes them (_get_guest_numa_config). Pure."""

from __future__ import annotations

import dataclasses

from .._errors import NovaliteError
from .._json import JsonMapping
from .._model import cpu_sets, host_numa
from .._model.numa import ISOLATE, SHARE, Claim


@dataclasses.dataclass(frozen=True)
class Node:
    """A NUMA node of the guest on the host's `node`. `page_kib`: of huge pages; None: of the host's usual ones."""

    cpus: str
    memory_kib: int
    node: int
    page_kib: int | None = None


@dataclasses.dataclass(frozen=True)
class Numa:
    """NUMA nodes of a guest, and where its vCPUs and QEMU's own threads run: sets of the host's CPUs."""

    nodes: tuple[Node, ...]
    pins: tuple[tuple[int, str], ...]  # by vCPU
    emulator: str

    @property
    def host_nodes(self) -> str:
        """The host's nodes that its memory is on."""
        return cpu_sets.text_of(node.node for node in self.nodes)

    @property
    def huge(self) -> bool:
        """Tell whether any of its memory is of huge pages."""
        return any(node.page_kib for node in self.nodes)


def numa_of(name: str, claim: Claim, facts: JsonMapping) -> Numa:
    """The NUMA nodes of guest `name`, which holds `claim` on the host that `facts` describe. Raises NovaliteError for a
    host that has no such node any more."""
    host = {cell.id: cell for cell in host_numa.cells_of(facts)}
    if missing := [cell.node for cell in claim.cells if cell.node not in host]:
        raise NovaliteError(
            f"{name} is on NUMA node {missing[0]}, which its host no longer has: run compute_nodes.yml, or move it"
        )
    pins: dict[int, frozenset[int]] = {}
    for cell in claim.cells:
        pins |= dict.fromkeys(cell.cpus, host[cell.node].shared) | {cpu: frozenset([own]) for cpu, own in cell.pins}
    shared = cpu_sets.parse("cpu_shared_set", facts.get("cpu_shared_set") or "")
    if claim.emulator == ISOLATE:
        emulator = frozenset(cpu for cell in claim.cells for cpu in cell.reserved)
    elif claim.emulator == SHARE and shared:
        emulator = shared
    else:
        emulator = frozenset().union(*pins.values())
    return Numa(
        nodes=tuple(
            Node(
                cpus=cpu_sets.text_of(cell.cpus),
                memory_kib=cell.memory_mb * 1024,
                node=cell.node,
                page_kib=cell.page_kib if cell.page_kib != min(host[cell.node].pages, default=None) else None,
            )
            for cell in claim.cells
        ),
        pins=tuple((vcpu, cpu_sets.text_of(cpus)) for vcpu, cpus in sorted(pins.items())),
        emulator=cpu_sets.text_of(emulator),
    )


def cpuset_of(facts: JsonMapping) -> str | None:
    """The host's CPUs that a guest without NUMA nodes of its own runs on; None: any."""
    shared = host_numa.shared_cpus(facts)
    return cpu_sets.text_of(shared) or None if shared is not None else None
