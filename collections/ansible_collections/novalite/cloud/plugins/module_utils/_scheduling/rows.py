# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Input of the scheduler: compute hosts and requests as plain values."""

from __future__ import annotations

import collections
import dataclasses
import functools
import operator
import types
import typing as t

from .._addressing.places import Use, uses
from .._json import Json, JsonMapping
from .._model import host_numa, pci
from .._model.instance import Instance
from .._model.numa import Claim, Topology, recorded_numa_of
from . import numa_fit, pci_fit

GIB = 1024**3
_NOTHING: t.Mapping[str, t.Any] = types.MappingProxyType({})
AMOUNTS = ("vcpus", "memory_mb", "disk_gb")  # what an instance takes of its host: cores, MiB, GiB


@dataclasses.dataclass(frozen=True)
class Aggregate:
    """A named set of hosts. `zone` is the availability zone that it makes of them, if any; metadata is text."""

    name: str
    zone: str | None = None
    metadata: t.Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Group:
    """A server group with those of its members that have a host already.

    `policy` is affinity, anti-affinity, soft-affinity or soft-anti-affinity; `max_server_per_host` belongs to
    anti-affinity. A member that moves is one of the host that it comes to (`members`) and has a claim on another one,
    where it still is, or may come back to (`also_on`).
    """

    id: str
    policy: str
    max_server_per_host: int = 1
    members: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # instance UUID -> host name
    also_on: t.Mapping[str, str] = dataclasses.field(default_factory=dict)  # likewise

    @functools.cached_property
    def members_on(self) -> t.Mapping[str, int]:
        """Number of members on each host; 0 for a host that has none."""
        return collections.Counter(self.members.values())

    @functools.cached_property
    def claims_on(self) -> t.Mapping[str, int]:
        """Number of members that are on each host, or may be at the end of their moves."""
        return collections.Counter([*self.members.values(), *self.also_on.values()])

    def with_member(self, uuid: str, host: str) -> Group:
        """The same group once this instance has got this host."""
        return dataclasses.replace(self, members={**self.members, uuid: host})

    def without(self, uuids: t.Container[str] = (), host: str | None = None) -> Group:
        """The same group without these instances, and without what is on `host`."""
        return dataclasses.replace(
            self,
            members={uuid: at for uuid, at in self.members.items() if uuid not in uuids and at != host},
            also_on={uuid: at for uuid, at in self.also_on.items() if uuid not in uuids and at != host},
        )


class HostState(t.NamedTuple):
    """Compute host as the ledger and its facts know it. Memory is in MiB, disk in GiB.

    A tuple, since each choice makes one of every host there is, which takes a frozen dataclass seven times as long.
    """

    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    enabled: bool = True
    disabled_reason: str | None = None
    vcpus_used: int = 0
    memory_mb_used: int = 0
    disk_gb_used: int = 0
    vcpus_others: int = 0  # part of what is used: by guests that are not novalite's
    memory_mb_others: int = 0
    disk_gb_others: int = 0
    reserved_vcpus: int = 0
    reserved_memory_mb: int = 0
    reserved_disk_gb: int = 0
    cpu_ratio: float = 1.0
    ram_ratio: float = 1.0
    disk_ratio: float = 1.0
    failed_builds: int = 0  # since the last one that succeeded
    num_instances: int = 0  # that have a claim
    # up to here: as the ledger's row has it
    up: bool = True
    down_reason: str | None = None
    zone: str = "nova"
    aggregates: t.Sequence[Aggregate] = ()
    traits: t.Sequence[str] = ()
    num_io_ops: int = 0  # builds and other work on disks that is under way
    instances: t.Mapping[str, t.Mapping[str, str | None]] = _NOTHING
    """By UUID: {"project_id": ..., "group_id": ... or None}."""
    metrics: t.Mapping[str, float] = _NOTHING
    address: str | None = None
    facts: JsonMapping = _NOTHING
    """hypervisor_type, hypervisor_version (a whole number: 7.2.0 is 7002000), arch, cpu_model,
    supported_instances ([[arch, hypervisor type, vm mode], ...]), and whatever else the host reports."""
    claims: t.Mapping[str, Claim] = _NOTHING
    """By UUID: the CPUs, NUMA nodes, pages and devices that instances hold; of requests that ask for such, and of hosts
    that hand out devices."""

    @property
    def vcpus_room(self) -> float:
        """The most that one more instance may ask for. However much is promised twice, one instance alone never gets
        more than the machine has."""
        return min((self.vcpus - self.reserved_vcpus) * self.cpu_ratio - self.vcpus_used, self.vcpus)

    @property
    def memory_mb_room(self) -> float:
        return min((self.memory_mb - self.reserved_memory_mb) * self.ram_ratio - self.memory_mb_used, self.memory_mb)

    @property
    def disk_gb_room(self) -> float:
        return min((self.disk_gb - self.reserved_disk_gb) * self.disk_ratio - self.disk_gb_used, self.disk_gb)

    @property
    def free_devices(self) -> int:
        """Number of PCI devices that nobody has."""
        return self._shelf(self.claims).count if self.facts.get(pci.DEVICES) else 0

    def after(self, request: Request) -> HostState:
        """The same host once it has claimed what `request` asks for. A build is work on its disk."""
        group_id = request.group.id if request.group else None
        instances = {**self.instances, request.uuid: {"project_id": request.project_id, "group_id": group_id}}
        return self.with_more(request, num_io_ops=self.num_io_ops + 1, instances=instances)

    def with_more(self, request: Request, count: int = 1, **changes: Json) -> HostState:
        """The same host with `count` more (below zero: less) of what `request` asks for, and with these `changes`."""
        used = {f"{name}_used": getattr(self, f"{name}_used") + count * getattr(request, name) for name in AMOUNTS}
        if request.asks_own:
            changes["claims"] = self._claims_with(request, count)
        return self._replace(num_instances=self.num_instances + count, **used, **changes)

    def own_fit(
        self, numa: Topology | None, devices: pci.Asked | None, claims: t.Mapping[str, Claim] | None = None
    ) -> Claim | str:
        """Claim of an instance that asks for this topology and these devices here, beside `claims` (None: those that
        there are); or why it gets none."""
        held = self.claims if claims is None else claims
        there, shelf = held.values(), self._shelf(held)
        if numa is not None:
            ratios = numa_fit.Ratios(self.cpu_ratio, self.ram_ratio)
            return numa_fit.fit(host_numa.cells_of(self.facts), there, numa, ratios, shelf, devices)
        picked = shelf.pick(devices) if devices is not None else ()
        return picked if isinstance(picked, str) else Claim((), devices=picked)

    def _shelf(self, claims: t.Mapping[str, Claim]) -> pci_fit.Shelf:
        return pci_fit.Shelf(self.facts, (device for claim in claims.values() for device in claim.devices))

    def _claims_with(self, request: Request, count: int) -> dict[str, Claim]:
        if count < 0:
            return {uuid: claim for uuid, claim in self.claims.items() if uuid != request.uuid}
        claims = dict(self.claims)
        for number in range(count):
            claim = self.own_fit(request.numa, request.devices, claims)
            if isinstance(claim, str):
                break  # what is short stays short
            claims[f"{request.uuid}-{number}" if number else request.uuid] = claim
        return claims

    @property
    def used_by_others(self) -> dict[str, int]:
        """vCPUs, MiB and GiB that guests take that are not novalite's; all of it is part of what is used."""
        return {name: getattr(self, f"{name}_others") for name in AMOUNTS}

    @property
    def others_in_words(self) -> str:
        """The same for a line that a person reads; empty where nobody else has guests."""
        if not any(self.used_by_others.values()):
            return ""
        return f"{self.vcpus_others} vCPUs, {self.memory_mb_others} MiB, {self.disk_gb_others} GiB"


@dataclasses.dataclass(frozen=True)
class Request:
    """Request for a host for one instance. Memory is in MiB, disk in GiB."""

    uuid: str
    name: str
    vcpus: int  # that it shares with others
    memory_mb: int
    disk_gb: int  # all that it takes: root, ephemeral and swap
    root_gb: int = 0  # of the flavor; 0: as large as the image
    project_id: str | None = None
    flavor_name: str | None = None
    image_id: str | None = None
    availability_zone: str | None = None
    requested_host: str | None = None
    ignore_hosts: t.Sequence[str] = ()
    image_min_ram_mb: int = 0
    image_min_disk_gb: int = 0
    image_properties: JsonMapping = dataclasses.field(default_factory=dict)
    extra_specs: JsonMapping = dataclasses.field(default_factory=dict)
    hints: JsonMapping = dataclasses.field(default_factory=dict)
    group: Group | None = None
    requirements: str | None = None  # an expression: which hosts
    rank: str | None = None  # an expression: which of them first
    ranges: tuple[Use, ...] = ()  # of its networks: what its host does with them
    numa: Topology | None = None  # NUMA nodes, with CPUs and pages of its own
    devices: pci.Asked | None = None  # of its host's, for itself

    @property
    def asks_own(self) -> bool:
        """Tell whether it asks for NUMA nodes, CPUs, pages or devices that nobody else gets."""
        return self.numa is not None or self.devices is not None

    def likeness(self) -> t.Hashable:
        """Equal for requests that differ in nothing but who asks: one examination of the hosts serves them all."""
        group = self.group
        return (
            _ALIKE(self),
            tuple(self.ignore_hosts),
            # a member that has a host already is asked about with that host in mind: like no other
            (group.id, group.policy, self.uuid if self.uuid in group.members else None) if group else None,
            *(repr(sorted(mapping.items())) if mapping else None for mapping in _MAPPINGS(self)),
        )

    def hint(self, name: str) -> Json:
        """A scheduler hint; of a list of one, as the API's clients send them, that one. None when not given."""
        value = self.hints.get(name)
        if isinstance(value, (list, tuple)) and len(value) == 1:
            return value[0]
        return value


_MAPPINGS = operator.attrgetter("image_properties", "extra_specs", "hints")
_ALIKE = operator.attrgetter(
    *("vcpus", "memory_mb", "disk_gb", "root_gb", "project_id", "flavor_name", "image_id", "availability_zone"),
    *("requested_host", "image_min_ram_mb", "image_min_disk_gb", "requirements", "rank", "ranges", "numa"),
    "devices",
)


def unpinned(instance: Instance, host: str | None = None) -> Instance:
    """The instance without the host that was asked for at its launch, or with another one in its place."""
    hints = {name: value for name, value in (instance.get("request") or {}).items() if name != "host"}
    zone = (instance.get("availability_zone") or "").partition(":")[0] or None
    return {**instance, "request": {**hints, **({"host": host} if host else {})}, "availability_zone": zone}


def request_of(instance: JsonMapping, group: Group | None = None) -> Request:
    """Return what an Instance (the dict that the modules pass along) asks of a host; `group` is its server group.

    Disk is Nova's sum: root, ephemeral and swap, the last rounded up to GiB. A flavor without a root size takes the
    image's own, and that is counted, which Nova forgot to do. As in Nova, a zone written as `zone:host` asks for
    that host.
    """
    flavor, image = instance["flavor"], instance["image"]
    volumes = instance.get("volumes") or ()
    # as in Nova, one that starts from a volume takes no room for a root disk
    own_root = all(volume["boot_index"] != 0 for volume in volumes)
    root_gb = (flavor["root_gb"] or -(-image.get("virtual_size", 0) // GIB)) if own_root else 0
    # what is in one host's storage cannot be reached from another
    there = next((volume["host"] for volume in volumes if volume["host"] is not None), None)
    zone, _colon, host = (instance.get("availability_zone") or "").partition(":")
    hints = dict(instance.get("request") or {})
    hinted = hints.pop("host", None)
    numa = recorded_numa_of(flavor, image)
    return Request(
        uuid=instance["uuid"],
        name=instance["name"],
        # CPUs of its own are of another kind, as in Placement (PCPU)
        vcpus=0 if numa and numa.dedicated else flavor["vcpus"],
        memory_mb=flavor["memory_mb"],
        disk_gb=root_gb + flavor.get("ephemeral_gb", 0) + -(-flavor.get("swap_mb", 0) // 1024),
        root_gb=flavor["root_gb"] if own_root else 0,
        project_id=(instance.get("project") or {}).get("id"),
        flavor_name=flavor.get("name"),
        image_id=image.get("id"),
        availability_zone=zone or None,
        requested_host=there or hinted or host or None,
        ignore_hosts=tuple(instance.get("attempts") or ()),
        image_min_ram_mb=image.get("min_ram_mb", 0),
        image_min_disk_gb=image.get("min_disk_gb", 0),
        image_properties=image.get("properties") or {},
        extra_specs=flavor.get("extra_specs") or {},
        requirements=hints.pop("requirements", None),
        rank=hints.pop("rank", None),
        ranges=tuple(dict.fromkeys(use for nic in instance.get("nics") or () for use in uses(nic["network"]))),
        hints=hints,
        group=group,
        numa=numa,
        devices=pci.recorded_asked_of(flavor, image),
    )
