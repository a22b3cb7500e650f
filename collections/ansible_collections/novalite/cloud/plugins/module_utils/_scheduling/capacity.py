# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The words for what is used of a host and what it has too little of; the comparison itself stands in each filter."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from .rows import HostState


def shortage(unit: str, amount: int, used: int, total: int, reserved: int, ratio: float, others: int = 0) -> str:
    """Why `amount` does not fit: too big for the machine itself, or too little left of what may be claimed.

    Overcommit shares a host between instances; one instance alone never gets more than the machine has, or it would
    compete with itself (Nova's AggregateCoreFilter and its siblings had the same rule). `others` is what of `used`
    guests take that are not novalite's.
    """
    if amount > total:
        return f"has {total} {unit} in all, {amount} are asked for"
    free = max(0, int((total - reserved) * ratio - used))
    return f"{free} of {amount} {unit} free" + (f", {others} used by others" if others else "")


def used_by_others(host: HostState) -> dict[str, int]:
    """vCPUs, MiB and GiB that guests take of this host that are not novalite's; all of it is part of what is used."""
    return {"vcpus": host.vcpus_others, "memory_mb": host.memory_mb_others, "disk_gb": host.disk_gb_others}


def others_in_words(host: HostState) -> str:
    """The same for a line that a person reads; empty where nobody else has guests."""
    if not (host.vcpus_others or host.memory_mb_others or host.disk_gb_others):
        return ""
    return f"{host.vcpus_others} vCPUs, {host.memory_mb_others} MiB, {host.disk_gb_others} GiB"
