# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CPUs of their own, huge pages and NUMA nodes: what flavor and image ask for, and what a host gave. Pure.

Names and rules are Nova's (nova/virt/hardware.py, numa_get_constraints). An image may ask where the flavor says
nothing, or choose within what the flavor allows; it overrides no flavor.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping, JsonObject
from . import cpu_sets

SHARED, DEDICATED = "shared", "dedicated"
PREFER, ISOLATE, REQUIRE, SHARE = "prefer", "isolate", "require", "share"
SMALL, LARGE, ANY = "small", "large", "any"
_CHOICES: t.Mapping[str, tuple[str, ...]] = {
    "cpu_policy": (SHARED, DEDICATED),
    "cpu_thread_policy": (PREFER, ISOLATE, REQUIRE),
    "emulator_threads_policy": (SHARE, ISOLATE),
}
_OF_FLAVORS_ONLY = ("emulator_threads_policy",)
_SIZE = re.compile(r"(\d{1,9})(?:([KMG])(?:i?B)?)?")
_KIB = {None: 1, "K": 1, "M": 1024, "G": 1024**2}
_NODE = re.compile(r"numa_(cpus|mem)\.(\d{1,3})")


@dataclasses.dataclass(frozen=True)
class Cell:
    """A NUMA node of a guest: its vCPUs, ascending, and MiB of memory."""

    cpus: tuple[int, ...]
    memory_mb: int


@dataclasses.dataclass(frozen=True)
class Topology:
    """NUMA nodes that a guest asks for. `page_size` in KiB, or small, large, any; None: as the host likes."""

    cells: tuple[Cell, ...]
    dedicated: bool = False
    thread_policy: str | None = None
    page_size: int | str | None = None
    emulator: str | None = None  # where QEMU's own threads run: share, isolate

    @property
    def vcpus(self) -> int:
        """Number of the guest's vCPUs."""
        return sum(len(cell.cpus) for cell in self.cells)


@dataclasses.dataclass(frozen=True)
class ClaimedCell:
    """A guest's NUMA node on a host: the host's `node`, and which of its CPUs each vCPU has for itself, if any."""

    cpus: tuple[int, ...]
    memory_mb: int
    node: int
    pins: tuple[tuple[int, int], ...] = ()  # (vCPU, the host's CPU)
    reserved: tuple[int, ...] = ()  # the host's CPUs for QEMU's own threads
    page_kib: int | None = None

    @property
    def held(self) -> frozenset[int]:
        """The host's CPUs that nobody else may have."""
        return frozenset((*(cpu for _vcpu, cpu in self.pins), *self.reserved))


@dataclasses.dataclass(frozen=True)
class Claim:
    """NUMA nodes, CPUs and pages that an instance holds on its host, node by node of the guest."""

    cells: tuple[ClaimedCell, ...]
    emulator: str | None = None

    @classmethod
    def of(cls, row: JsonMapping) -> Claim:
        """Return the claim that the ledger has as `row`."""
        cells = tuple(
            ClaimedCell(
                cpus=tuple(cell["cpus"]),
                memory_mb=cell["memory_mb"],
                node=cell["node"],
                pins=tuple((vcpu, cpu) for vcpu, cpu in cell["pins"]),
                reserved=tuple(cell["reserved"]),
                page_kib=cell["page_kib"],
            )
            for cell in row["cells"]
        )
        return cls(cells, row["emulator"])

    @property
    def row(self) -> JsonObject:
        """The claim as the ledger has it."""
        return {
            "emulator": self.emulator,
            "cells": [
                {
                    "cpus": list(cell.cpus),
                    "memory_mb": cell.memory_mb,
                    "node": cell.node,
                    "pins": [list(pin) for pin in cell.pins],
                    "reserved": list(cell.reserved),
                    "page_kib": cell.page_kib,
                }
                for cell in self.cells
            ],
        }


def check_value(what: str, name: str, value: object) -> None:
    """Raise NovaliteError for a value that the property hw_... or extra spec hw:... of `what` cannot have."""
    if not name.startswith(("hw:", "hw_")):
        return
    key, text = name[3:], str(value)
    where = f"{what}: {'extra spec' if name.startswith('hw:') else 'its property'} {name}"
    if name.startswith("hw_") and key in _OF_FLAVORS_ONLY:
        return
    if key in _CHOICES and text not in _CHOICES[key]:
        raise NovaliteError(f"{where} is {text[:40]!r}; use {', '.join(_CHOICES[key])}")
    if key == "mem_page_size":
        _page_size(where, text)
    elif key == "numa_nodes":
        _whole(where, text)
    elif match := _NODE.fullmatch(key):
        if match[1] == "mem":
            _whole(where, text)
        else:
            cpu_sets.parse(where, text)


def numa_of(flavor: JsonMapping, image: JsonMapping) -> Topology | None:
    """The NUMA topology that flavor and image ask for; None where they ask for none. Raises NovaliteError where they
    contradict each other, or ask for what cannot be."""
    specs = {key[3:]: str(value) for key, value in (flavor.get("extra_specs") or {}).items() if key.startswith("hw:")}
    properties = {
        key[3:]: str(value) for key, value in (image.get("properties") or {}).items() if key.startswith("hw_")
    }
    if not any(key in (*_CHOICES, "mem_page_size") or key.startswith("numa_") for key in (*specs, *properties)):
        return None
    names = f"flavor '{flavor.get('name')}'", f"image '{image.get('name')}'"
    for what, values, prefix in zip(names, (specs, properties), ("hw:", "hw_")):
        for key, value in values.items():
            check_value(what, prefix + key, value)
    policy, image_policy = specs.get("cpu_policy"), properties.get("cpu_policy")
    if policy == SHARED and image_policy == DEDICATED:
        raise _overridden(names, "cpu_policy", policy, image_policy)
    dedicated = DEDICATED in (policy, image_policy)
    threads, image_threads = specs.get("cpu_thread_policy"), properties.get("cpu_thread_policy")
    if threads not in (None, PREFER) and image_threads not in (None, threads):
        raise _overridden(names, "cpu_thread_policy", threads, image_threads)
    thread_policy = threads or image_threads  # as with Nova, a flavor's prefer is not put aside by the image
    emulator = specs.get("emulator_threads_policy")
    if not dedicated and thread_policy is not None:
        raise NovaliteError(f"{names[0]} and {names[1]}: cpu_thread_policy needs hw:cpu_policy={DEDICATED} beside it")
    if not dedicated and emulator == ISOLATE:
        raise NovaliteError(f"{names[0]}: hw:emulator_threads_policy={ISOLATE} needs hw:cpu_policy={DEDICATED}")
    page_size = _chosen_page_size(names, specs.get("mem_page_size"), properties.get("mem_page_size"))
    nodes = [values["numa_nodes"] for values in (specs, properties) if "numa_nodes" in values]
    if len(nodes) > 1:
        raise _overridden(names, "numa_nodes", *nodes)
    if not (nodes or dedicated or page_size is not None):
        return None
    cells = _cells(names, flavor, specs, properties, int(nodes[0]) if nodes else 1)
    return Topology(cells, dedicated, thread_policy, page_size, emulator)


def recorded_numa_of(flavor: JsonMapping, image: JsonMapping) -> Topology | None:
    """numa_of(), where what was recorded before anybody judged it counts as nothing."""
    with contextlib.suppress(NovaliteError):
        return numa_of(flavor, image)
    return None


def _chosen_page_size(names: tuple[str, str], flavors: str | None, images: str | None) -> int | str | None:
    if flavors is None:
        if images is not None:
            raise NovaliteError(
                f"{names[1]} has hw_mem_page_size={images}, where {names[0]} allows none: "
                "add hw:mem_page_size=any or large to the flavor"
            )
        return None
    if images is None:
        return _page_size(names[0], flavors)
    if flavors not in (ANY, LARGE):
        raise _overridden(names, "mem_page_size", flavors, images)
    return _page_size(names[1], images)


def _cells(
    names: tuple[str, str], flavor: JsonMapping, specs: t.Mapping[str, str], properties: t.Mapping[str, str], nodes: int
) -> tuple[Cell, ...]:
    vcpus, memory_mb = int(flavor["vcpus"]), int(flavor["memory_mb"])
    by_kind = {}
    for kind in ("cpus", "mem"):
        lists = [_numbered(values, kind) for values in (specs, properties)]
        if all(lists):
            raise _overridden(names, f"numa_{kind}.0", lists[0][0], lists[1][0])
        by_kind[kind] = lists[0] or lists[1]
    if not by_kind["cpus"] and not by_kind["mem"]:
        if vcpus % nodes or memory_mb % nodes:
            raise NovaliteError(
                f"{names[0]} has {vcpus} vCPUs and {memory_mb} MiB, which {nodes} NUMA nodes cannot share evenly: "
                "say hw:numa_cpus.N and hw:numa_mem.N for each"
            )
        each = vcpus // nodes
        return tuple(Cell(tuple(range(n * each, n * each + each)), memory_mb // nodes) for n in range(nodes))
    if len(by_kind["cpus"]) != nodes or len(by_kind["mem"]) != nodes:
        raise NovaliteError(
            f"{names[0]} and {names[1]}: numa_cpus.N says {len(by_kind['cpus'])}, numa_mem.N {len(by_kind['mem'])} of "
            f"{nodes} NUMA nodes: say both for each of numa_nodes"
        )
    cpus = [sorted(cpu_sets.parse(f"numa_cpus.{node}", text)) for node, text in enumerate(by_kind["cpus"])]
    if sorted(cpu for of_node in cpus for cpu in of_node) != list(range(vcpus)):
        raise NovaliteError(
            f"{names[0]} has vCPUs 0 to {vcpus - 1}: give each of them to one of the NUMA nodes by numa_cpus.N"
        )
    memory = [int(text) for text in by_kind["mem"]]
    if sum(memory) != memory_mb:
        raise NovaliteError(f"{names[0]} has {memory_mb} MiB, and its NUMA nodes {sum(memory)}: change numa_mem.N")
    return tuple(Cell(tuple(of_node), of_memory) for of_node, of_memory in zip(cpus, memory))


def _numbered(values: t.Mapping[str, str], kind: str) -> list[str]:
    """List the values of `numa_<kind>.0` and those that follow it without a gap."""
    texts: list[str] = []
    while (value := values.get(f"numa_{kind}.{len(texts)}")) is not None:
        texts.append(value)
    return texts


def _page_size(where: str, text: str) -> int | str:
    if text in (SMALL, LARGE, ANY):
        return text
    match = _SIZE.fullmatch(text)
    if match is None or not int(match[1]):
        raise NovaliteError(
            f"{where} is {text[:40]!r}; use {SMALL}, {LARGE}, {ANY}, or a size such as 2048 (KiB) or 2MB"
        )
    return int(match[1]) * _KIB[match[2]]


def _whole(where: str, text: str) -> None:
    if not (text.isascii() and text.isdigit() and int(text[:12]) > 0):
        raise NovaliteError(f"{where} is {text[:40]!r}; use a whole number above 0")


def _overridden(names: tuple[str, str], key: str, flavors: str | None, images: str | None) -> NovaliteError:
    return NovaliteError(
        f"{names[0]} has hw:{key}={flavors}, which {names[1]} cannot override with hw_{key}={images}: "
        "take it out of the image, or use another flavor"
    )
