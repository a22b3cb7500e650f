# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sockets, cores and threads of a guest, as Nova chooses them (nova/virt/hardware.py). Pure.

A flavor's `hw:cpu_sockets`, `hw:cpu_cores`, `hw:cpu_threads` are wishes, its `hw:cpu_max_sockets` and siblings bounds.
An image's `hw_cpu_sockets` and siblings go before the wishes, and may lower the bounds.
"""

from __future__ import annotations

import itertools
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping
from .maxima import max_vcpus

PARTS = ("sockets", "cores", "threads")
PROPERTIES = tuple(f"hw_cpu_{bound}{part}" for bound in ("", "max_") for part in PARTS)
EXTRA_SPECS = tuple(name.replace("_", ":", 1) for name in PROPERTIES)
_MOST = 65536


class Topology(t.NamedTuple):
    sockets: int
    cores: int
    threads: int


def check_number(what: str, name: str, value: object) -> None:
    """Raise NovaliteError for a value that the property or extra spec `name` of `what` cannot have."""
    text, kind = str(value), "its property" if name in PROPERTIES else "extra spec"
    if name in (*PROPERTIES, *EXTRA_SPECS) and not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= _MOST):
        raise NovaliteError(f"{what}: {kind} {name} is {text[:40]!r}; use a number from 1 to {_MOST}")


def topology_of(flavor: JsonMapping, image: JsonMapping) -> Topology | None:
    """The topology that flavor and image ask for; None where they say nothing. Raises NovaliteError."""
    specs: JsonMapping = flavor.get("extra_specs") or {}
    properties: JsonMapping = image.get("properties") or {}
    if not any(name in specs for name in EXTRA_SPECS) and not any(name in properties for name in PROPERTIES):
        return None
    names = f"flavor '{flavor.get('name')}'", f"image '{image.get('name')}'"
    of_flavor, of_image = _numbers(names[0], specs, "hw:cpu_"), _numbers(names[1], properties, "hw_cpu_")
    bounds = _numbers(names[0], specs, "hw:cpu_max_"), _numbers(names[1], properties, "hw_cpu_max_")
    for part, flavors, images in zip(PARTS, *bounds):
        if flavors and images > flavors:
            raise NovaliteError(f"{names[1]} has hw_cpu_max_{part}={images}, above {names[0]}'s {flavors}: lower it")
    most = [images or flavors or _MOST for flavors, images in zip(*bounds)]
    for part, images, bound in zip(PARTS, of_image, most):
        if images > bound:
            raise NovaliteError(f"{names[1]} has hw_cpu_{part}={images}, above the {bound} that it may have: lower it")
    if any(wish > bound for wish, bound in zip(of_flavor, most)):
        of_flavor = [0, 0, 0]  # the image's bounds undid the flavor's wishes
    wishes = of_image if any(of_image) else of_flavor
    vcpus = max_vcpus(flavor) or int(flavor["vcpus"])
    possible = [
        Topology(sockets, cores, vcpus // (sockets * cores))
        for sockets, cores in itertools.product(_divisors(vcpus), repeat=2)
        if vcpus % (sockets * cores) == 0
    ]
    fitting = [topology for topology in possible if all(part <= bound for part, bound in zip(topology, most))]
    if not fitting:
        raise NovaliteError(
            f"{names[0]} has {vcpus} vCPUs, which {most[0]} sockets, {most[1]} cores and {most[2]} threads at most "
            "cannot be: raise hw:cpu_max_sockets and its siblings"
        )

    def rank(topology: Topology) -> tuple[int, int, int, int]:
        """Count the wishes that are met; then few threads win, then sockets before cores."""
        met = sum(wish == part for wish, part in zip(wishes, topology) if wish)
        return met, topology.sockets * topology.cores, topology.sockets, topology.threads

    return max(fitting, key=rank)


def _numbers(what: str, values: JsonMapping, prefix: str) -> list[int]:
    for part in PARTS:
        if prefix + part in values:
            check_number(what, prefix + part, values[prefix + part])
    return [int(values.get(prefix + part) or 0) for part in PARTS]


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]
