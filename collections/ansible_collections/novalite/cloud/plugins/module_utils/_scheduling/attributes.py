# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's attributes by name: Nova's names for those who come from there, and our own.

For extra specs (`capabilities:free_ram_mb`), JSON queries (`$free_ram_mb`), requirements and ranks. Nova's `stats` are
the facts that a host reports: `hypervisor_type`, `arch`, `cpu_model` and whatever else stands there.
"""

from __future__ import annotations

import json
import typing as t

from .._json import Json
from .rows import HostState


def _cpu_info(host: HostState) -> Json:
    facts = host.facts
    return facts.get("cpu_info") or {"arch": facts.get("arch"), "model": facts.get("cpu_model")}


# Free is what Nova calls free: of the machine itself, without overcommit, less what is reserved.
_NOVA: dict[str, t.Callable[[HostState], Json]] = {
    "host": lambda host: host.name,
    "nodename": lambda host: host.name,
    "hypervisor_hostname": lambda host: host.name,
    "host_ip": lambda host: host.address,
    "hypervisor_type": lambda host: host.facts.get("hypervisor_type"),
    "hypervisor_version": lambda host: host.facts.get("hypervisor_version"),
    "cpu_info": _cpu_info,
    "supported_instances": lambda host: host.facts.get("supported_instances"),
    "stats": lambda host: host.facts,
    "vcpus_total": lambda host: host.vcpus,
    "vcpus_used": lambda host: host.vcpus_used + host.reserved_vcpus,
    "total_usable_ram_mb": lambda host: host.memory_mb,
    "free_ram_mb": lambda host: host.memory_mb - host.reserved_memory_mb - host.memory_mb_used,
    "total_usable_disk_gb": lambda host: host.disk_gb,
    "free_disk_mb": lambda host: (host.disk_gb - host.reserved_disk_gb - host.disk_gb_used) * 1024,
    "disk_mb_used": lambda host: (host.disk_gb_used + host.reserved_disk_gb) * 1024,
    "num_instances": lambda host: host.num_instances,
    "num_io_ops": lambda host: host.num_io_ops,
    "failed_builds": lambda host: host.failed_builds,
    "cpu_allocation_ratio": lambda host: host.cpu_ratio,
    "ram_allocation_ratio": lambda host: host.ram_ratio,
    "disk_allocation_ratio": lambda host: host.disk_ratio,
}
_OURS: dict[str, t.Callable[[HostState], Json]] = {
    "name": lambda host: host.name,
    "zone": lambda host: host.zone,
    "address": lambda host: host.address,
    "vcpus": lambda host: host.vcpus,
    "memory_mb": lambda host: host.memory_mb,
    "disk_gb": lambda host: host.disk_gb,
    "memory_mb_used": lambda host: host.memory_mb_used,
    "disk_gb_used": lambda host: host.disk_gb_used,
    "vcpus_others": lambda host: host.vcpus_others,
    "memory_mb_others": lambda host: host.memory_mb_others,
    "disk_gb_others": lambda host: host.disk_gb_others,
    "free_vcpus": lambda host: (host.vcpus - host.reserved_vcpus) * host.cpu_ratio - host.vcpus_used,
    "free_disk_gb": lambda host: host.disk_gb - host.reserved_disk_gb - host.disk_gb_used,
    "aggregate": lambda host: [aggregate.name for aggregate in host.aggregates],
    "trait": lambda host: list(host.traits),
    "metrics": lambda host: host.metrics,
    "metadata": lambda host: {key: value for aggregate in host.aggregates for key, value in aggregate.metadata.items()},
}


# What a tenant sees of hosts elsewhere, too, or what its guests see of the machine. All else says who hosts are, how
# large, or how full: with a plan a request one learns any number bit by bit.
FOR_TENANTS = frozenset({"arch", "cpu_info", "cpu_model", "trait", "zone"})


def is_attribute(host: HostState, name: str) -> bool:
    """Tell whether a key of extra specs without a scope is an attribute of the host. Only Nova's names: `zone=..` may
    be meant for an aggregate."""
    return name in _NOVA or name in host.facts


def look_up(host: HostState, path: t.Sequence[str]) -> Json:
    """The value of an attribute, or of a key inside it; None when there is none.

    A text on the way is read as JSON, as Nova keeps `cpu_info`.
    """
    first, *rest = path
    getter = _NOVA.get(first) or _OURS.get(first)
    value = getter(host) if getter else None
    if value is None:
        value = host.facts.get(first)
    for key in rest:
        if isinstance(value, str):
            try:
                value = json.loads(value)
            except ValueError:
                return None
        if not isinstance(value, t.Mapping):
            return None
        value = value.get(key)
    return value
