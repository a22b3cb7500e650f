# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests for libvirt, and their domain XML. Runs on the controller only: a hypervisor gets finished XML."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import string
import typing as t

import netaddr

from .._addressing.macs import LINK_LOCAL, eui64, router_link_local
from .._disk.layout import NVRAM, RESCUE, volume_path
from .._errors import ConflictError, NovaliteError
from .._guest.image_properties import LAST_DEVICES, guest_agent, video_model
from .._host.files import STATE_DIR
from .._json import JsonMapping
from .._model import maxima
from .._model.cpu_mode import CpuMode, cpu_mode_of
from .._model.cpu_topology import Topology
from .._model.devices import Devices, devices_of
from .._model.hardware import Tpm, hardware_of
from .._model.instance import AttachedVolume, Flavor, Instance, Nic, host_address, is_iso, is_secured, serves_dhcp
from .._model.instance import drives as instance_drives
from .._model.numa import Claim
from . import drives
from .compare import METADATA_NAMESPACE, OPEN_FILTER
from .guest_numa import Numa, cpuset_of, numa_of

if t.TYPE_CHECKING:
    import jinja2

DISK_BACKEND = "novalite:disk_backend"  # extra spec of a flavor: qcow2 (the default) or raw
RESCUE_FORMAT = "qcow2"  # of the disk that an instance is rescued with
FILTER_PREFIX = "nova-instance-"  # Nova's name for the nwfilter of one instance
ROOT = "vda"
SECOND = "vdb"
MOST_QUEUES = 256  # of a tap device, since Linux 4.0
ROOT_PORTS = 14  # as virt-manager gives; libvirt itself leaves one free
NAMES = tuple(f"vd{letter}" for letter in string.ascii_lowercase)  # a guest has no more PCI slots than these need
_BUILT_NEXT = ("building", "shelved_offloaded")  # vm_states of an instance that has no guest yet, or none any more
_NAME = re.compile(r"(?:/dev/)?([a-z]{1,8})")

# XML 1.0 has no way to write these, not even as an entity; CR, TAB and LF would come back changed from an attribute.
_UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@dataclasses.dataclass(frozen=True)
class Interface:
    """A network interface: one of the instance's VIFs, on its host's bridge."""

    mac: str
    bridge: str
    filter: str | None = None  # name of an nwfilter
    parameters: tuple[tuple[str, str], ...] = ()  # the filter's variables, in the order in which they are written
    mtu: int | None = None  # bytes; None leaves it to the bridge
    device: str | None = None  # the host's end of it; None leaves the name to libvirt
    model: str = "virtio"


@dataclasses.dataclass(frozen=True)
class Volume:
    """A further disk of a guest: one of its own, with the format that its record on the host has, or a volume."""

    file: str
    format: str
    target: str
    type: str = "file"  # or block
    serial: str | None = None  # the volume's id: the guest finds it by that, whatever its name
    readonly: bool = False
    cache: str | None = None  # None: as the host's other disks


@dataclasses.dataclass(frozen=True)
class Guest:
    """Contents of an instance's domain XML. Memory is in MiB; paths are those on the compute host."""

    uuid: str
    name: str  # instance-%08x
    domain_type: str  # kvm or qemu
    arch: str
    machine: str
    emulator: str
    memory_mb: int
    vcpus: int
    disk: str
    disk_format: str
    disk_cache: str
    console_log: str
    kernel: str | None = None
    ramdisk: str | None = None
    cmdline: str | None = None
    volumes: tuple[Volume, ...] = ()
    root_volume: Volume | None = None  # instead of `disk`
    interfaces: tuple[Interface, ...] = ()
    cdroms: tuple[drives.Cdrom, ...] = ()
    boot_cdrom: bool = False  # before its disk
    config_drive: drives.ConfigDrive | None = None
    agent: bool = False  # a channel for QEMU's guest agent
    uefi: bool = False
    secure_boot: bool = False
    nvram: str | None = None  # of a UEFI guest: the file of its firmware's variables
    tpm: Tpm | None = None
    watchdog: str | None = None  # what it does
    boot_menu: bool = False
    windows: bool = False
    topology: Topology | None = None
    cpu: CpuMode | None = None
    devices: Devices = dataclasses.field(default_factory=Devices)
    queues: int | None = None  # of each interface
    viommu: str | None = None
    discard: bool = False  # what the guest frees, its host's file system gets back
    numa: Numa | None = None
    cpuset: str | None = None  # the host's CPUs that it runs on, where it has no NUMA nodes; None: any
    max_vcpus: int | None = None  # that it can have without a restart; None: those that it starts with
    max_memory_mb: int | None = None
    root_ports: int = 0  # places for what is plugged in later, on PCI Express
    video: str | None = None  # the model of its display, which it shows by VNC; None: it has neither
    display_name: str = ""
    project_id: str = ""
    project_name: str = ""
    flavor: str = ""
    image_id: str = ""
    image_name: str = ""
    ledger: str = ""  # the identity of the ledger that knows it


def guest_of(
    instance: Instance, facts: JsonMapping, state_dir: str = STATE_DIR, ledger: str = "", claim: Claim | None = None
) -> Guest:
    """The guest that makes `instance` (an Instance dict) run on the compute host that `facts` describe, with its
    `state_dir`, where it holds the NUMA nodes, CPUs and pages of `claim`.

    With `rescue`, its image is that of the rescue, whose disk is the first one, and the instance's own root disk the
    second; the others stay away. Raises NovaliteError when a value cannot be written as XML, and for a host that was
    not asked what it offers since its ledger was made again.
    """
    if "domain_type" not in facts:
        raise NovaliteError(f"the ledger does not know what {instance['host']} offers: run compute_nodes.yml")
    flavor, image = instance["flavor"], instance["image"]
    directory = os.path.join(state_dir, "instances", instance["uuid"])
    rescue = bool(instance.get("rescue"))
    suffix = RESCUE if rescue else ""
    kernel = os.path.join(directory, "kernel" + suffix) if image.get("kernel") else None
    root = os.path.join(directory, "disk")
    attached = [volume_of(volume, state_dir) for volume in plugged(instance)]
    hardware, devices = hardware_of(flavor, image), devices_of(flavor, image)
    machine = hardware.machine_on(facts)
    own = list(_volumes(flavor, directory))
    if rescue:  # as Nova's, it has its old root disk then and nothing else
        roots = [dataclasses.replace(volume, target=SECOND) for volume in attached if volume.target == ROOT]
        attached, own = [], roots or [Volume(root, disk_backend(flavor), SECOND)]
    guest = Guest(
        uuid=instance["uuid"],
        name=instance["domain_name"],
        domain_type=facts["domain_type"],
        arch=facts["arch"],
        machine=machine,
        emulator=facts["emulator"],
        memory_mb=flavor["memory_mb"],
        vcpus=flavor["vcpus"],
        disk=root + suffix,
        # of what the disk module makes, whatever the image's own format
        disk_format=RESCUE_FORMAT if rescue else disk_backend(flavor),
        disk_cache=facts["disk_cache"],
        console_log=os.path.join(directory, "console.log"),
        kernel=kernel,
        # QEMU takes neither a ramdisk nor a command line without a kernel.
        ramdisk=os.path.join(directory, "ramdisk" + suffix) if kernel and image.get("ramdisk") else None,
        cmdline=(image.get("cmdline") or None) if kernel else None,
        volumes=(*own, *(volume for volume in attached if volume.target != ROOT)),
        root_volume=next((volume for volume in attached if volume.target == ROOT), None),
        interfaces=_interfaces(instance, facts.get("antispoof") == "chains", devices.vif_model),
        cdroms=tuple(drives.cdroms(instance, machine, directory)),
        boot_cdrom=is_iso(image) and bool(instance_drives(instance)),
        config_drive=drives.config_drive(instance, machine, directory),
        agent=guest_agent(image),
        uefi=hardware.uefi,
        secure_boot=hardware.secure_on(facts),
        nvram=os.path.join(directory, NVRAM + suffix) if hardware.uefi else None,
        tpm=hardware.tpm,
        watchdog=hardware.watchdog,
        boot_menu=hardware.boot_menu,
        windows=hardware.windows,
        topology=hardware.topology,
        cpu=cpu_mode_of(facts),
        devices=devices,
        # as in Nova: with KVM, one for each CPU
        queues=min(flavor["vcpus"], MOST_QUEUES) if devices.multiqueue and facts["domain_type"] == "kvm" else None,
        viommu=devices.viommu_on(facts, machine),
        discard=facts.get("disk_discard") == "unmap",
        numa=None if claim is None else numa_of(instance["domain_name"], claim, facts),
        cpuset=cpuset_of(facts) if claim is None else None,
        max_vcpus=maxima.max_vcpus(flavor),
        max_memory_mb=maxima.max_memory_mb(flavor),
        root_ports=ROOT_PORTS if "q35" in machine else 0,
        video=video_model(image) if facts.get("vnc", True) else None,
        display_name=instance["name"],
        project_id=instance["project"]["id"],
        project_name=instance["project"]["name"],
        flavor=flavor["name"],
        image_id=image["id"],
        image_name=image["name"],
        ledger=ledger,
    )
    _refuse_unwritable(guest)
    return guest


def plugged(instance: Instance) -> list[AttachedVolume]:
    """The volumes that the instance's guest has; of one that is being built, all. What is being attached to a guest
    that is there comes by itself."""
    building = instance.get("vm_state") in _BUILT_NEXT
    return [volume for volume in instance.get("volumes") or () if building or volume["attached_at"] is not None]


def volume_of(attachment: JsonMapping, state_dir: str = STATE_DIR) -> Volume:
    """The disk that an attachment (of an Instance dict's `volumes`) is to the guest."""
    return Volume(
        file=volume_path({**attachment, "id": attachment["volume_id"]}, state_dir),
        format=attachment["format"],
        target=attachment["device"].rpartition("/")[2],
        type="block" if attachment["backend"] == "lvm" else "file",
        serial=attachment["volume_id"],
        readonly=bool(attachment["readonly"]),
        # another host must find what this one wrote, whatever suits the hosts' own disks
        cache="none" if attachment["backend"] == "lvm" else None,
    )


def render_volume(volume: Volume, facts: JsonMapping, devices: Devices) -> str:
    """The XML of this disk alone, for a guest with these `devices` on the compute host that `facts` describe."""
    template = _template().environment.get_template("volume.xml.j2")
    discard = facts.get("disk_discard") == "unmap"
    return template.render(
        volume=volume, guest={"disk_cache": facts["disk_cache"], "discard": discard, "devices": devices}
    )


def disk_backend(flavor: JsonMapping) -> str:
    """Return "qcow2" or "raw", as the extra spec of the instance's copy of its flavor says, and no host: a guest must
    find its disks in the same format for as long as it lives. Raises NovaliteError."""
    backend = (flavor.get("extra_specs") or {}).get(DISK_BACKEND, "qcow2")
    if backend not in ("qcow2", "raw"):
        raise NovaliteError(f"flavor {flavor['name']}: {DISK_BACKEND} is {backend!r}: use qcow2 or raw")
    return str(backend)


def render(guest: Guest) -> str:
    """The domain XML of `guest`. Needs Jinja2, which the controller has."""
    return _template().render(guest=guest, namespace=METADATA_NAMESPACE)


@functools.lru_cache(maxsize=1)
def _template() -> jinja2.Template:
    import jinja2  # not at the top: the rest of this room is shipped to hypervisors, which have no Jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("domain.xml.j2")


def _volumes(flavor: Flavor, directory: str) -> t.Iterator[Volume]:
    """Nova's further disks in Nova's order: each takes the next name after the root disk's vda."""
    files = [file for size, file in (("ephemeral_gb", "disk.eph0"), ("swap_mb", "disk.swap")) if flavor.get(size)]
    for file, target in zip(files, ("vdb", "vdc")):
        yield Volume(os.path.join(directory, file), disk_backend(flavor), target)


def tap_device(vif_id: str) -> str:
    """Nova's name for the host's end of an interface."""
    return f"tap{vif_id[:11]}"


def _interfaces(instance: Instance, own_chains: bool, model: str) -> tuple[Interface, ...]:
    """`own_chains`: the host's firewall holds the guest to its addresses, so libvirt is to filter nothing."""
    # One filter serves all interfaces of an instance, so each needs every variable that the filter reads.
    with_ipv6 = any(nic.get("ipv6") for nic in instance["nics"] if is_secured(nic))
    own = FILTER_PREFIX + instance["domain_name"]
    return tuple(
        Interface(
            mac=nic["mac"].lower(),
            bridge=nic["network"]["bridge"],
            filter=None if own_chains else own if is_secured(nic) else OPEN_FILTER,
            parameters=tuple(_filter_parameters(nic, with_ipv6)) if is_secured(nic) and not own_chains else (),
            device=tap_device(nic["id"]),  # the firewall judges by it
            mtu=nic["network"].get("mtu"),
            model=model,
        )
        for nic in instance["nics"]
    )


def _filter_parameters(nic: Nic, with_ipv6: bool) -> t.Iterator[tuple[str, str]]:
    """The variables that nova-base's filters read (nova/virt/libvirt/designer.py), those that have a value only:
    libvirt refuses an empty one. IPV6 is for nova-ipv6, once for each address that the guest may send under."""
    network = nic["network"]
    # 0.0.0.0 stands for no address of its own: the guest then sends nothing but its DHCP request.
    for address in (nic.get("ip") or "0.0.0.0", *nic.get("more_ips", ())):
        yield "IP", address
    if with_ipv6:
        for address in (nic.get("ipv6"), eui64(LINK_LOCAL, nic["mac"])):
            if address:
                yield "IPV6", address
    # Answers to a guest that asks for a broadcast come from the host's first address.
    for server in dict.fromkeys((nic["dhcp_server"], host_address(nic))):
        if server:
            yield "DHCPSERVER", server
    if router := network["gateway_v6"] or (network["cidr_v6"] and ra_server(nic)):
        yield "RASERVER", router
    if cidr := network["cidr"]:
        v4 = netaddr.IPNetwork(cidr)
        yield "PROJNET", str(v4.network)
        yield "PROJMASK", str(v4.netmask)
    if cidr_v6 := network["cidr_v6"]:
        v6 = netaddr.IPNetwork(cidr_v6)
        yield "PROJNETV6", str(v6.network)
        yield "PROJMASKV6", str(v6.prefixlen)


def ra_server(nic: Nic) -> str | None:
    """The router of an interface on a network with IPv6: its host, by the link-local address that this advertises from,
    where it serves DHCP; None where the network names another one, whose link-local address is not known."""
    network = nic["network"]
    address = host_address(nic)
    if network["gateway_v6"] is None and serves_dhcp(network) and address:
        return router_link_local(address)
    return None


def _refuse_unwritable(guest: Guest) -> None:
    for field, value in dataclasses.asdict(guest).items():
        if isinstance(value, str) and _UNWRITABLE.search(value):
            raise NovaliteError(
                f"instance {guest.uuid}: {field} {value!r} contains a control character, which a libvirt domain "
                "cannot hold; choose another value"
            )


def own_devices(flavor: JsonMapping, config_drive: bool) -> dict[str, str]:
    """The names of the disks that an instance itself has, with this flavor: name -> what it is."""
    devices = {ROOT: "root disk"}
    for size, name in (("ephemeral_gb", "ephemeral disk"), ("swap_mb", "swap disk")):
        if flavor.get(size):
            devices[NAMES[len(devices)]] = name
    # whatever bus it is on: which of them depends on the host's machine type, and the guest may move
    if config_drive:
        devices[LAST_DEVICES["virtio"]] = "config drive"
    return devices


def next_device(taken: t.Iterable[str]) -> str:
    """The first name that is not `taken`. Raises ConflictError when there is none."""
    used = set(taken)
    for name in NAMES:
        if name not in used and name != ROOT:
            return name
    raise ConflictError(f"the instance has {len(used)} disks: there is no device name left for another one")


def choose_device(taken: t.Iterable[str], requested_name: str | None = None) -> str:
    """The name for a new disk: `requested_name` (vdb or /dev/vdb), or the first free one, also for a name of another
    bus (/dev/sdb), as in Nova's libvirt driver. Raises ConflictError for a name that is taken, NovaliteError for none.
    """
    used = set(taken)
    if requested_name is None:
        return next_device(used)
    match = _NAME.fullmatch(requested_name)
    if match is None or len(match[1]) < 3:
        raise NovaliteError(f"The supplied device path ({requested_name[:64]}) is invalid.")
    if match[1] in used:
        raise ConflictError(f"The supplied device path (/dev/{match[1]}) is in use.")
    return match[1] if match[1] in NAMES else next_device(used)
