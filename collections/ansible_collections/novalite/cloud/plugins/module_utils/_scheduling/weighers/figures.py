# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's weighers that compare one figure of the hosts: what is free, used, under way, or how new they are."""

from __future__ import annotations

import operator
import typing as t

from ..kinds import Weigher
from ..options import Options
from ..rows import HostState, Request


def _figure(
    name: str, nova: str, figure: t.Callable[[HostState], float], minimum: float | None = None, sign: int = 1
) -> Weigher:
    def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
        return list(map(figure, hosts))

    return Weigher(name, weigh, minimum=minimum, sign=sign, nova=nova)


def _free_vcpus(host: HostState) -> float:
    """Virtual CPUs that are not in use, overcommit included; as in Nova, it applies to the reserved ones, too."""
    return host.vcpus * host.cpu_ratio - (host.vcpus_used + host.reserved_vcpus)


def _free_memory(host: HostState) -> float:
    """Unclaimed memory in MiB; as in Nova, of the machine itself, without overcommit."""
    return host.memory_mb - host.reserved_memory_mb - host.memory_mb_used


def _free_disk(host: HostState) -> float:
    """Unclaimed disk in GiB, likewise."""
    return host.disk_gb - host.reserved_disk_gb - host.disk_gb_used


def _version(host: HostState) -> float:
    """The hypervisor's version as libvirt counts it, 0 when unknown."""
    return host.facts.get("hypervisor_version") or 0


PLUGINS = (
    _figure("cpu", "CPUWeigher", _free_vcpus, minimum=0),
    _figure("ram", "RAMWeigher", _free_memory, minimum=0),
    _figure("disk", "DiskWeigher", _free_disk, minimum=0),
    # builds and other disk operations under way; the multiplier is negative
    _figure("io_ops", "IoOpsWeigher", operator.attrgetter("num_io_ops"), minimum=0),
    # off by default; a negative multiplier spreads by number of instances
    _figure("num_instances", "NumInstancesWeigher", operator.attrgetter("num_instances")),
    _figure("hypervisor_version", "HypervisorVersionWeigher", _version),
    # since the last success; counted against the host, which then comes after all others
    _figure("build_failure", "BuildFailureWeigher", operator.attrgetter("failed_builds"), sign=-1),
)
