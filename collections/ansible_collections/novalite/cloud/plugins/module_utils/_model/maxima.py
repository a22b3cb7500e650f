# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The most CPUs and memory that a guest can have without a restart, as its flavor's extra specs say, and what a change
of its flavor needs a restart for. Pure.

A guest gets places for all these CPUs when it starts, and a balloon as large as the memory that it does not have.
"""

from __future__ import annotations

import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping

MAX_VCPUS, MAX_RAM = "novalite:max_vcpus", "novalite:max_ram"  # extra specs of a flavor; memory in MiB
_SIZES: t.Mapping[str, tuple[str, str]] = {MAX_VCPUS: ("vcpus", "vCPUs"), MAX_RAM: ("memory_mb", "MiB of memory")}
_DISKS = ("root_gb", "ephemeral_gb", "swap_mb")
_MOST = {MAX_VCPUS: 1024, MAX_RAM: 1 << 26}
# Extra specs with these prefixes say how the guest is made; others choose its host
_OF_THE_GUEST = ("hw:", "os:", "quota:", "novalite:", "pci_passthrough:")
# CPUs that have places of their own, and memory that is taken for good, cannot change
_FIXED = ("hw:cpu_policy", "hw:numa_nodes", "hw:mem_page_size", "hw:locked_memory")
_EMULATED = "qemu"  # the domain type of a guest whose CPUs QEMU emulates


def check_number(what: str, name: str, value: object) -> None:
    """Raise NovaliteError for a value that the extra spec `name` of `what` cannot have."""
    text = str(value)
    if name in _SIZES and not (text.isascii() and text.isdigit() and 0 < int(text[:12]) <= _MOST[name]):
        unit = _SIZES[name][1]
        raise NovaliteError(f"{what}: extra spec {name} is {text[:40]!r}; use a number of {unit} up to {_MOST[name]}")


def check(flavor: JsonMapping) -> None:
    """Raise NovaliteError for a flavor whose maxima are below its sizes, or cannot be had beside its other specs."""
    specs, what = _specs(flavor), f"flavor '{flavor.get('name')}'"
    for name, (size, unit) in _SIZES.items():
        if name not in specs:
            continue
        check_number(what, name, specs[name])
        if int(str(specs[name])) < flavor[size]:
            raise NovaliteError(f"{what}: {name} is {specs[name]}, below its {flavor[size]} {unit}: raise it")
        if fixed := [key for key in _FIXED if key in specs]:
            raise NovaliteError(f"{what} has {name} and {fixed[0]}, which do not go together: take one out of it")


def check_fixed(flavor: JsonMapping) -> None:
    """Raise NovaliteError for a flavor with maxima beside an image that asks for a place on the host's NUMA nodes."""
    if any(name in _specs(flavor) for name in _SIZES):
        raise NovaliteError(
            f"flavor '{flavor.get('name')}' has maxima of CPUs or memory, and the image asks for CPUs, pages or NUMA "
            "nodes of its own, which do not go together: use another flavor or image"
        )


def max_vcpus(flavor: JsonMapping) -> int | None:
    """Return the most vCPUs that a guest of this flavor can have; None: it keeps those that it starts with."""
    return _maximum(flavor, MAX_VCPUS)


def max_memory_mb(flavor: JsonMapping) -> int | None:
    """Return the most memory (MiB) that a guest of this flavor can have; None: it keeps what it starts with."""
    return _maximum(flavor, MAX_RAM)


def restart_reasons(old: JsonMapping, new: JsonMapping, domain_type: str | None) -> list[str]:
    """Return why a running guest of the flavor `old` needs a restart to become one of `new`; nothing: it needs none.
    `domain_type` is the guest's: QEMU alone does not tell of emulated CPUs that the guest has let go of."""
    reasons = []
    for name, (size, unit) in _SIZES.items():
        before, after = _maximum(old, name), _maximum(new, name)
        if before != after:
            reasons.append(f"{name} changes from {_shown(before)} to {_shown(after)}")
        elif before is None and old[size] != new[size]:
            reasons.append(f"its {unit} are fixed, as its flavor has no {name}")
    reasons += [f"its {size} changes from {old[size]} to {new[size]}" for size in _DISKS if old[size] != new[size]]
    specs, more = _specs(old), _specs(new)
    for key in sorted({*specs, *more} - {*_SIZES}):
        if key.startswith(_OF_THE_GUEST) and specs.get(key) != more.get(key):
            reasons.append(f"{key} changes from {_shown(specs.get(key))} to {_shown(more.get(key))}")
    if not reasons and new["vcpus"] < old["vcpus"] and domain_type == _EMULATED:
        reasons.append("its host emulates CPUs, and QEMU cannot take those from a guest that runs")
    return reasons


def _maximum(flavor: JsonMapping, name: str) -> int | None:
    """Return the maximum; of one that was recorded before anybody judged it, the size if it is below that."""
    text = str(_specs(flavor).get(name, ""))
    return max(int(text), flavor[_SIZES[name][0]]) if text.isascii() and text.isdigit() else None


def _shown(value: object) -> str:
    return "none" if value is None else str(value)


def _specs(flavor: JsonMapping) -> JsonMapping:
    specs: JsonMapping = flavor.get("extra_specs") or {}
    return specs
