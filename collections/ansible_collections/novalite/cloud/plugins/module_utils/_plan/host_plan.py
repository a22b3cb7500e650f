# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plan of each compute host: the arguments of every host module, as data.

Computed once, on the controller, so that a playbook only hands a key of the plan to the module of the same name and
no decision is left to Jinja. What a host gets is `HostPlan`; what each part of it is made of stands here, and who
knows the rest completes it (_ledger/compute/plans.py). It is rendered once, for the playbooks.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._domain.compare import OPEN_FILTER
from .._domain.guest import FILTER_PREFIX, disk_backend
from .._guest import image_properties
from .._guest.config_drive import config_drive
from .._guest.network_data import interfaces_of
from .._json import JsonMapping, JsonObject
from .._model.instance import AttachedVolume, GuestRecord, Instance, drives, is_iso, is_secured
from . import networks, targets
from .firewall import allowed_pairs, firewall_plan

Plan = JsonObject
Renderer = t.Callable[[Instance, JsonMapping], str]

GIB = 1 << 30
PREALLOCATION = "novalite:preallocation"  # extra spec of a flavor: none (the default) or space


def plan_by_host(
    instances: t.Iterable[Instance],
    facts: t.Mapping[str, JsonMapping],
    render: Renderer,
    tunnels: networks.TunnelMap | None = None,
) -> dict[str, ServersPlan]:
    """`{host: plan}` for `instances`, all of which have a host.

    `facts` maps a host to its compute_host facts, `render(instance, facts of its host)` makes the domain XML,
    `tunnels` says for each VXLAN network (by its id) which hosts it spans, and the tunnel end of each.
    """
    by_host: dict[str, list[Instance]] = {}
    for instance in instances:
        by_host.setdefault(str(instance["host"]), []).append(instance)
    return {
        host: servers_plan(members, facts.get(host, {}), render, tunnels or {})
        for host, members in sorted(by_host.items())
    }


@dataclasses.dataclass(frozen=True)
class ServersPlan:
    """Work of one host for some of its instances, to build, keep or remove them: each list is what the host module of
    that name takes."""

    names: list[str]
    uuids: list[str]
    bridges: list[Plan]
    dhcp_networks: list[Plan]
    routers: list[Plan]
    metadata_networks: list[Plan]
    images: list[Plan]
    disks: list[Plan]
    injections: list[Plan]
    config_drives: list[Plan]
    filters: list[Plan]
    firewall_instances: list[Plan]
    firewall_zones: list[Plan]
    firewall_serving: list[str]
    security_groups: list[Plan]
    domains: list[Plan]
    guests: list[Plan]
    secret: bool  # whether something in it may be known to the guests only
    # of the instances' volumes: what has to be made for them, and what goes with them (server_volumes.py)
    volumes: list[Plan] = dataclasses.field(default_factory=list)
    volumes_gone: list[Plan] = dataclasses.field(default_factory=list)
    # what goes with the last instance of the host that used it, and the floating IPs that go from networks which stay
    last_bridges: list[Plan] = dataclasses.field(default_factory=list)
    last_routers: list[Plan] = dataclasses.field(default_factory=list)
    last_metadata_networks: list[Plan] = dataclasses.field(default_factory=list)
    staying_routers: list[Plan] = dataclasses.field(default_factory=list)
    room: JsonObject | None = None  # that the ledger counts on, where the host was not asked what it offers


@dataclasses.dataclass(frozen=True)
class NetworksPlan:
    """Needs of one host's networks, beside those of instances."""

    bridges: list[Plan] = dataclasses.field(default_factory=list)
    dhcp_networks: list[Plan] = dataclasses.field(default_factory=list)
    routers: list[Plan] | None = None  # None: they stay as they are


@dataclasses.dataclass(frozen=True)
class GroupsPlan:
    """The security groups that rules of one host name, with the members that they gain and lose."""

    security_groups: list[Plan]


@dataclasses.dataclass(frozen=True)
class HostPlan:
    """Plan of one host, whole; a part that is None gives it nothing to do. A play carries out each (targets.py)."""

    ledger: str  # UUID that the host's modules mark their work with
    state_dir: str
    build: ServersPlan | None = None
    keep: ServersPlan | None = None
    remove: ServersPlan | None = None
    vacate: ServersPlan | None = None  # disks of instances that leave for good, on the other host of their moves
    peers: NetworksPlan | None = None  # where VXLAN tunnels lead, and which names are known here
    network: NetworksPlan | None = None  # of the host's networks, by the ledger alone
    groups: GroupsPlan | None = None

    def rendered(self) -> dict[str, Plan]:
        """`{part: plan}` for playbooks; each has `ledger`, and those with disks `state_dir`."""
        parts = {name: getattr(self, name) for name in targets.PARTS}
        return {name: self._rendered(part) for name, part in parts.items() if part is not None}

    def _rendered(self, part: ServersPlan | NetworksPlan | GroupsPlan) -> Plan:
        values = ((field.name, getattr(part, field.name)) for field in dataclasses.fields(part))
        place = {"state_dir": self.state_dir} if isinstance(part, ServersPlan) else {}
        return {**{name: value for name, value in values if value is not None}, "ledger": self.ledger, **place}


def servers_plan(
    instances: t.Sequence[Instance], facts: JsonMapping, render: Renderer, tunnels: networks.TunnelMap
) -> ServersPlan:
    """Return the plan of one host's instances.

    An instance that is to be built has `guest`: what only the guest may know, `user_data`, `files`, `password_hash`.
    One that is to be rescued has `rescue`, and the image of the rescue in the place of its own one.
    """
    own_chains = facts.get("antispoof") == "chains"  # instead of libvirt's network filters
    firewall = firewall_plan(instances, facts)
    return ServersPlan(
        names=[instance["name"] for instance in instances],
        uuids=[instance["uuid"] for instance in instances],
        bridges=networks.bridges(instances, tunnels, facts.get("shared_routes") or ()),
        dhcp_networks=networks.dhcp_networks(instances),
        routers=networks.routers(instances),
        metadata_networks=networks.metadata_networks(instances),
        images=_images(instances),
        disks=[_disk(instance) for instance in instances],
        # what goes, or runs already, is told nothing
        injections=[
            _injection(instance, instance["guest"])
            for instance in instances
            if instance.get("guest") is not None and _to_be_injected(instance)
        ],
        config_drives=[
            {**config_drive(instance, instance["guest"]), **({"rescue": True} if instance.get("rescue") else {})}
            for instance in instances
            if instance.get("guest") is not None and _to_have_config_drive(instance)
        ],
        filters=[] if own_chains else [_filter(instance) for instance in instances],
        firewall_instances=firewall["instances"],
        firewall_zones=firewall["zones"],
        firewall_serving=firewall["serving"],
        security_groups=firewall["security_groups"],
        domains=[
            {"uuid": instance["uuid"], "name": instance["domain_name"], "xml": render(instance, facts)}
            for instance in instances
        ],
        guests=networks.guests(instances),
        secret=any(any((instance.get("guest") or {}).values()) for instance in instances),
    )


def _images(instances: t.Iterable[Instance]) -> list[Plan]:
    images: dict[str, Plan] = {}
    for instance in instances:
        for file in _files(instance):
            known = images.setdefault(file["checksum"], file)
            if file["kind"] == "disk":
                # the largest flavor's limit; a flavor of 0 GiB takes the image's own size and sets none
                limits = [record.get("max_virtual_size", 0) for record in (known, file)]
                known["max_virtual_size"] = max(limits) if all(limits) else 0
    return list(images.values())


def _files(instance: Instance) -> t.Iterator[Plan]:
    """The files that the instance needs in the cache of its host."""
    for file in image_files(instance["image"], 0 if instance.get("rescue") else instance["flavor"]["root_gb"]):
        if file["kind"] != "disk" or (boot_volume(instance) is None and not _is_installed(instance)):
            yield file
    for cdrom in drives(instance):
        if cdrom is not None:
            yield image_files({**cdrom, "kernel": None, "ramdisk": None})[0]


def _is_installed(instance: Instance) -> bool:
    """Tell whether the root disk begins empty, for the system that a CD installs. The disk of one that was shelved is
    an image by itself."""
    return is_iso(instance["image"]) and not instance.get("rescue")


def image_files(image: JsonMapping, root_gb: int = 0) -> list[Plan]:
    """The files of an image record, as image_cache takes them; for a root disk of `root_gb` GiB (0: of any size)."""
    keys = ("checksum", "source", "size", "disk_format", "virtual_size")
    disk = {**{key: image[key] for key in keys}, "kind": "disk", "max_virtual_size": root_gb * GIB}
    boot = [
        {**{key: image[kind][key] for key in ("checksum", "source", "size")}, "kind": kind}
        for kind in ("kernel", "ramdisk")
        if image[kind]
    ]
    return [disk, *boot]


def _disk(instance: Instance) -> Plan:
    image, flavor = instance["image"], instance["flavor"]
    cdroms = [cdrom["checksum"] if cdrom else "" for cdrom in drives(instance)]
    files = {
        "uuid": instance["uuid"],
        "base": None if _is_installed(instance) else image["checksum"],
        "kernel": image["kernel"]["checksum"] if image["kernel"] else None,
        "ramdisk": image["ramdisk"]["checksum"] if image["ramdisk"] else None,
    }
    if instance.get("rescue"):
        return {**files, "rescue": True}
    return {
        **files,
        "root": boot_volume(instance) is None,
        "virtual_size_gb": flavor["root_gb"],
        "backend": disk_backend(flavor),
        "preallocation": (flavor.get("extra_specs") or {}).get(PREALLOCATION, "none"),
        "ephemeral_gb": flavor.get("ephemeral_gb", 0),
        "swap_mb": flavor.get("swap_mb", 0),
        **({"cdroms": cdroms} if cdroms else {}),
    }


def boot_volume(instance: Instance) -> AttachedVolume | None:
    """The volume that an instance starts from, instead of a disk of its own; one that is rescued has one."""
    if instance.get("rescue"):
        return None
    return next((volume for volume in instance.get("volumes") or () if volume["boot_index"] == 0), None)


def _to_be_injected(instance: Instance) -> bool:
    """Tell whether the host writes into the root disk, for which its kernel mounts it.

    Only where the operator says so of the image, and only into a fresh copy of that: a guest may have written anything
    to a volume that it has had, to a copy of such a one, or to a disk (hosts know of these: _disk/records.py).
    """
    image, root = instance["image"], boot_volume(instance)
    if root is not None and (root["made_at"] is not None or root.get("copied") or root["image"] != image["id"]):
        return False
    allowed = image_properties.host_mount(image) and image_properties.partition(image) is not None
    return allowed and not _is_installed(instance)


def _to_have_config_drive(instance: Instance) -> bool:
    """Tell whether a config drive is written now. In a rescue, only where hosts may not mount its image: else the
    instance's own one stays."""
    if instance.get("rescue"):
        return not image_properties.host_mount(instance["image"])
    return bool(instance["config_drive"])


def _injection(instance: Instance, guest: GuestRecord) -> Plan:
    root = boot_volume(instance)
    return {
        "uuid": instance["uuid"],
        **({"disk": "disk.rescue"} if instance.get("rescue") else {}),
        "keys": [instance["key"]["public_key"]] if instance["key"] else [],
        "user": image_properties.admin_user(instance["image"]),
        "hostname": instance["hostname"],
        "partition": image_properties.partition(instance["image"]),
        "files": [{"path": file["path"], "content": file["content"]} for file in guest.get("files") or []],
        "network": _guest_network(instance),
        "password_hash": guest.get("password_hash"),
        "password_optional": bool(guest.get("password_optional")),
        "volume": root and {"id": root["volume_id"], **{key: root[key] for key in ("backend", "options", "format")}},
    }


def _guest_network(instance: Instance) -> Plan | None:
    """The interfaces that the guest must be told of: none where DHCP tells it all, otherwise all of them, for what is
    written replaces the guest's own configuration."""
    if all(nic["network"]["dhcp"] for nic in instance["nics"]):
        return None
    return {"nics": interfaces_of(instance)}


def _filter(instance: Instance) -> Plan:
    secured = [nic for nic in instance["nics"] if is_secured(nic)]
    references = ["nova-base", *(["nova-ipv6"] if any(nic["ipv6"] for nic in secured) else [])]
    pairs = [pair for nic in secured for pair in allowed_pairs(nic)]
    beside = {"beside": [OPEN_FILTER]} if len(secured) < len(instance["nics"]) else {}
    name = f"{FILTER_PREFIX}{instance['domain_name']}"
    return {"name": name, "uuid": instance["uuid"], "references": references, "allowed_pairs": pairs, **beside}
