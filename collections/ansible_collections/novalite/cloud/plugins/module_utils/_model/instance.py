# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The shapes of instances and of their moves on their way between modules, playbooks and rooms: JSON, with types.

Made out of rows in _ledger/queries/compute/views.py; the module `server` documents it. Times are seconds since the
epoch.
"""

from __future__ import annotations

import typing as t

from .._json import JsonObject


class Flavor(t.TypedDict):
    """Flavor as an instance keeps it. GiB and MiB; `root_gb` 0 means as large as the image."""

    name: str
    flavorid: str  # what clients know it by
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    swap_mb: int
    extra_specs: dict[str, str]


class BootFile(t.TypedDict):
    """A kernel, or a RAM disk. `size` in bytes."""

    source: str
    checksum: str
    size: int


class Image(t.TypedDict):
    """Image as an instance keeps it: all that its launch needs. `size` and `virtual_size` in bytes."""

    id: str
    name: str
    disk_format: str
    source: str
    checksum: str
    size: int
    virtual_size: int
    kernel: BootFile | None
    ramdisk: BootFile | None
    cmdline: str
    min_disk_gb: int
    min_ram_mb: int
    properties: JsonObject


class Route(t.TypedDict):
    destination: str
    nexthop: str


class Range(t.TypedDict):
    """An IPv4 range of a network that has several."""

    cidr: str
    gateway: str | None
    dhcp: bool
    dns: list[str]
    routes: list[Route]
    address: str | None  # of the instance's host; None: it has none in this range


class _Network(t.TypedDict):
    id: int
    uuid: str
    name: str
    cidr: str | None
    cidr_v6: str | None
    gateway: str | None
    gateway_v6: str | None
    bridge: str
    bridge_interface: str | None
    vlan: int | None
    dhcp: bool
    dns: list[str]
    domain: str
    mtu: int | None
    lease_seconds: int
    manager: str
    vni: int | None
    isolated: bool
    snat: bool
    ntp: list[str]
    ipv6_mode: str
    routes: list[Route]
    allow_project_net_traffic: bool


class Network(_Network, total=False):
    """A network as its interfaces show it. Where it has `ranges`, what is said of its IPv4 beside them is that of the
    range of the interface's first address."""

    admin_state_up: bool  # False: it carries nothing
    ranges: list[Range]  # all IPv4 ranges, the network's first one first, where there are several


class _FloatingAddress(t.TypedDict):
    address: str
    interface: str  # the host's, on which the address is reached


class FloatingAddress(_FloatingAddress, total=False):
    """Floating IP of an interface."""

    fixed: str  # the address that it leads to, where that is not the interface's first


class AddressPair(t.TypedDict):
    """Address pair that an interface may send from besides its own address."""

    ip_address: str  # an address or a range
    mac_address: str | None


class DhcpOption(t.TypedDict):
    """DHCP option of a port, in Neutron's words."""

    opt_name: str
    opt_value: str
    ip_version: int


class _Nic(t.TypedDict):
    id: str
    mac: str
    ip: str | None
    ipv6: str | None
    dhcp_server: str | None  # the address of the instance's host in the network
    floating_ips: list[FloatingAddress]
    allowed_address_pairs: list[AddressPair]
    network: Network


class Nic(_Nic, total=False):
    """A network interface of an instance."""

    requested_ip: str | None  # the address that it is to get
    port_security_enabled: bool  # left out: it is
    more_ips: list[str]  # IPv4 addresses besides `ip`, where it has some
    extra_dhcp_opts: list[DhcpOption]
    dns_name: str | None  # of the instance on the network; None: it has none. Left out: its host name


def name_on_network(nic: Nic, hostname: str) -> str:
    """The name of an instance in the DNS of the interface's network: its own one, or that of its address there."""
    return nic.get("dns_name", hostname) or name_by_address(nic["ip"] or nic["ipv6"])


def name_by_address(address: str | None) -> str:
    """The name, as Neutron makes it, of an instance that has none on its network: another has it, or nobody may."""
    return "host-" + (address or "").replace(".", "-").replace(":", "-")


def is_secured(nic: Nic) -> bool:
    """Tell whether port security is on: security groups, and the check of what is sent under which address."""
    return nic.get("port_security_enabled", True)


def serves_dhcp(network: Network) -> bool:
    """Tell whether the host answers DHCP in the network, or in one of its ranges."""
    ranges = network.get("ranges")
    return network["dhcp"] if ranges is None else any(each["dhcp"] and each["address"] for each in ranges)


def host_address(nic: Nic) -> str | None:
    """The host's first address in the network of an interface: what it makes its IPv6 addresses there from. It is the
    same for all guests of a host, whichever range they are in."""
    ranges = nic["network"].get("ranges", ())
    return next((each["address"] for each in ranges if each["address"]), nic["dhcp_server"])


def addresses_of(nic: Nic) -> list[str]:
    """The addresses of an interface: of IPv4, its own first; then that of IPv6."""
    return [address for address in (nic["ip"], *nic.get("more_ips", ()), nic["ipv6"]) if address]


class Rule(t.TypedDict):
    """A rule of a security group, as rows have it."""

    id: str
    direction: str
    ethertype: str
    protocol: str
    port_min: int | None
    port_max: int | None
    cidr: str | None
    remote_group_id: int | None


class SecurityGroup(t.TypedDict):
    id: int
    uuid: str
    name: str
    rules: list[Rule]


class AttachedVolume(t.TypedDict):
    """An attachment (`id`), and what the instance's host must know of the volume."""

    id: str
    volume_id: str
    device: str
    boot_index: int | None
    tag: str | None
    delete_on_termination: bool
    readonly: bool
    attached_at: int | None
    status: str
    size_gb: int
    format: str | None
    host: str | None
    made_at: int | None
    image: str | None  # its id
    copied: bool
    backend: str
    options: JsonObject


class ProjectName(t.TypedDict):
    id: str
    name: str


class Key(t.TypedDict):
    name: str | None
    public_key: str


class AdoptedDisk(t.TypedDict):
    """A disk of a guest that somebody else made. `size` in bytes."""

    dev: str
    bus: str | None
    source: str | None
    format: str
    size: int


class KeptAddress(t.TypedDict):
    network_id: int
    ip: int


class Adopted(t.TypedDict):
    """Record of a guest that somebody else made: `reserved` were the operator's addresses before."""

    domain: str
    at: int
    disks: list[AdoptedDisk]
    reserved: list[KeptAddress]


NO_HOST = "no-valid-host"


class PlainFault(t.TypedDict):
    code: int
    message: str
    created: int


class Fault(PlainFault, total=False):
    reason: str  # NO_HOST, of an instance that the scheduler found no host for


class File(t.TypedDict):
    path: str
    content: str  # base64


class GuestRecord(t.TypedDict, total=False):
    """Data for the guest alone; never in a result."""

    user_data: str | None  # base64
    files: list[File] | None
    password_hash: str | None
    password_optional: bool


class _Instance(t.TypedDict):
    id: int
    uuid: str
    name: str
    hostname: str
    domain_name: str
    project: ProjectName
    host: str | None
    alternates: list[str]
    vm_state: str
    task_state: str | None
    power_state: int
    flavor: Flavor
    image: Image
    key: Key | None
    availability_zone: str | None
    metadata: dict[str, str]
    attempts: list[str]
    request: JsonObject  # the scheduler hints that it was asked for with
    security_groups: list[SecurityGroup]
    nics: list[Nic]
    fault: Fault | None
    created_at: int
    updated_at: int
    launched_at: int | None
    terminated_at: int | None
    config_drive: bool
    adopted: Adopted | None
    volumes: list[AttachedVolume]


class Instance(_Instance, total=False):
    """An instance as the module `server` returns it."""

    guest: GuestRecord  # on the way to the host that builds it
    rescue: bool  # `image` is that of a rescue
    cdroms: list[Image | None] | None  # what is in its CD drives; None in the place of a CD: the drive is empty
    ha: bool  # it runs again on another host when its own dies; of these, the highest `ha_priority` first
    ha_priority: int
    ha_rebuild: bool  # a new disk of its image will do, where its own dies with its host
    actions: list[JsonObject]  # its history, where that was asked for


class _Move(t.TypedDict):
    uuid: str  # the instance's
    name: str
    domain_name: str
    id: str  # the move's own
    action: str
    from_host: str
    to_host: str
    from_flavor: Flavor
    to_flavor: Flavor
    same_host: bool
    starts: bool
    why: list[str]


class Move(_Move, total=False):
    """Move as playbooks pass it on (server_migration): from where the guest is now to where it is to be."""

    known: bool  # whether its guest is where it was, should it not have moved
    reason: str  # that an evacuated one runs from a copy of its disks, and how old that is, or why not


class Error(t.TypedDict):
    """Error of one of several instances, for whoever asked for it."""

    uuid: str
    name: str
    message: str


ISO = "iso"  # disk_format of an image that is a CD


def is_iso(image: Image) -> bool:
    """Tell whether the image is a CD: an instance of it gets an empty root disk, and starts from the CD."""
    return image.get("disk_format") == ISO


def drives(instance: Instance) -> list[Image | None]:
    """List the CD drives that the instance's guest has, each an image or None. In a rescue there are none."""
    return [] if instance.get("rescue") else list(instance.get("cdroms") or [])


def not_adopted(instances: t.Iterable[Instance]) -> list[Instance]:
    """List the instances that hosts are to be made ready for: an adopted one has what it needs, made by others."""
    return [server for server in instances if server["adopted"] is None]
