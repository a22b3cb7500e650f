# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What the scheduler decides on: compute hosts and requests as plain values."""

from __future__ import annotations

import dataclasses
import typing as t

GIB = 1024**3


@dataclasses.dataclass(frozen=True)
class HostState:
    """One compute host as the ledger and its facts know it. Memory in MiB, disk in GiB."""

    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    up: bool = True
    down_reason: str | None = None
    enabled: bool = True
    disabled_reason: str | None = None
    zone: str = "nova"
    aggregates: t.Sequence[str] = ()
    traits: t.Sequence[str] = ()
    vcpus_used: int = 0
    memory_mb_used: int = 0
    disk_gb_used: int = 0
    reserved_vcpus: int = 0
    reserved_memory_mb: int = 0
    reserved_disk_gb: int = 0
    cpu_ratio: float = 1.0
    ram_ratio: float = 1.0
    disk_ratio: float = 1.0
    num_instances: int = 0
    facts: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    def after(self, request: Request) -> HostState:
        """The same host once it has claimed what `request` asks for."""
        return dataclasses.replace(
            self,
            vcpus_used=self.vcpus_used + request.vcpus,
            memory_mb_used=self.memory_mb_used + request.memory_mb,
            disk_gb_used=self.disk_gb_used + request.disk_gb,
            num_instances=self.num_instances + 1,
        )


@dataclasses.dataclass(frozen=True)
class Request:
    """One instance that wants a host. Memory in MiB, disk in GiB."""

    uuid: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    availability_zone: str | None = None
    requested_host: str | None = None
    ignore_hosts: t.Sequence[str] = ()
    image_min_ram_mb: int = 0
    image_properties: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    extra_specs: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    hints: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)

    def likeness(self) -> t.Hashable:
        """Equal for requests that differ in nothing but who asks: one examination of the hosts serves them all."""
        return (
            self.vcpus,
            self.memory_mb,
            self.disk_gb,
            self.availability_zone,
            self.requested_host,
            tuple(self.ignore_hosts),
            self.image_min_ram_mb,
            repr(sorted(self.image_properties.items())),
            repr(sorted(self.extra_specs.items())),
            repr(sorted(self.hints.items())),
        )


def request_of(instance: t.Mapping[str, t.Any]) -> Request:
    """What an Instance (the dict that the modules pass along) asks of a host.

    Disk is Nova's sum: root, ephemeral and swap, the last rounded up to GiB. A flavor without a root size takes the
    image's own, and that is counted, which Nova forgot to do. As in Nova, a zone written as `zone:host` asks for
    that host.
    """
    flavor, image = instance["flavor"], instance["image"]
    root_gb = flavor["root_gb"] or -(-image.get("virtual_size", 0) // GIB)
    zone, _colon, host = (instance.get("availability_zone") or "").partition(":")
    hints = dict(instance.get("request") or {})
    return Request(
        uuid=instance["uuid"],
        name=instance["name"],
        vcpus=flavor["vcpus"],
        memory_mb=flavor["memory_mb"],
        disk_gb=root_gb + flavor.get("ephemeral_gb", 0) + -(-flavor.get("swap_mb", 0) // 1024),
        availability_zone=zone or None,
        requested_host=hints.pop("host", None) or host or None,
        ignore_hosts=tuple(instance.get("attempts") or ()),
        image_min_ram_mb=image.get("min_ram_mb", 0),
        image_properties=image.get("properties") or {},
        extra_specs=flavor.get("extra_specs") or {},
        hints=hints,
    )
