# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices, CPU features and limits that an image's properties and a flavor's extra specs ask for. Pure.

Names, values and what goes first are Nova's (nova/virt/hardware.py, nova/virt/libvirt/driver.py).
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping

YES, NO = ("yes", "true", "1", "on"), ("no", "false", "0", "off")
_BOOLEAN = (*YES, *NO)
VIRTIO, IDE, SCSI = "virtio", "ide", "scsi"
_X86 = ("i686", "x86_64")
_VIRTIO_IOMMU = 8003000  # libvirt's first version with it


class Range(t.NamedTuple):
    """Whole numbers that a property can have."""

    least: int
    most: int


_COUNT = Range(0, 2**31 - 1)
_OLD_SCSI_NAMES = {"lsilogicsas": "lsisas1068", "paravirtual": "vmpvscsi"}  # VMware's, which Nova takes, too
# Properties of images, with their values: of Nova's, those that libvirt has for QEMU
PROPERTIES: t.Mapping[str, tuple[str, ...] | Range] = {
    "hw_vif_multiqueue_enabled": _BOOLEAN,
    "hw_vif_model": ("e1000", "e1000e", "ne2k_pci", "pcnet", "rtl8139", VIRTIO, "vmxnet3"),
    "hw_pmu": _BOOLEAN,
    "hw_time_hpet": _BOOLEAN,
    "img_hide_hypervisor_id": _BOOLEAN,
    "hw_serial_port_count": Range(0, 4),
    "hw_input_bus": ("usb", VIRTIO),
    "hw_pointer_model": ("usbtablet",),
    "hw_rng_model": (VIRTIO,),
    "hw_video_ram": Range(0, 65535),
    "hw_disk_bus": (IDE, "sata", SCSI, VIRTIO),
    "hw_scsi_model": ("lsilogic", "lsisas1068", "lsisas1078", "virtio-scsi", "vmpvscsi", *_OLD_SCSI_NAMES),
    "hw_viommu_model": ("auto", "intel", "smmuv3", VIRTIO),
}
_DISK = tuple(f"disk_{of}_{unit}_sec" for of in ("read", "write", "total") for unit in ("bytes", "iops"))
_VIF = tuple(f"vif_{way}_{what}" for way in ("inbound", "outbound") for what in ("average", "peak", "burst"))
# Extra specs of flavors
EXTRA_SPECS: t.Mapping[str, tuple[str, ...] | Range] = {
    "hw:vif_multiqueue_enabled": _BOOLEAN,
    "hw:pmu": _BOOLEAN,
    "hw:hide_hypervisor_id": _BOOLEAN,
    "hide_hypervisor_id": _BOOLEAN,
    "hw:serial_port_count": Range(0, 4),
    "hw_rng:allowed": _BOOLEAN,
    "hw_rng:rate_bytes": _COUNT,
    "hw_rng:rate_period": _COUNT,
    "hw_video:ram_max_mb": _COUNT,
    "hw:viommu_model": PROPERTIES["hw_viommu_model"],
    "quota:cpu_shares": _COUNT,
    "quota:cpu_period": Range(0, 1000000),
    "quota:cpu_quota": Range(-(2**44), 2**44),
    **{f"quota:{name}": _COUNT for name in (*_DISK, *_VIF)},
}
_ENCRYPTION = "no guest's memory is encrypted, which few processors can, and which neither moves nor suspends"
# Properties and extra specs that Nova acts on and novalite does not, with the reason
NOT_BUILT: t.Mapping[str, str] = {
    "mem_encryption": _ENCRYPTION,
    "mem_encryption_model": _ENCRYPTION,
    "locked_memory": "no guest's memory is locked; a host without swap keeps it all the same",
    "virtio_packed_ring": "guests get split virtqueues, as libvirt has them by default",
    "sound_model": "guests have no sound card: VNC carries no sound",
    "usb_model": "libvirt chooses the USB controller for the tablet",
    "redirected_usb_ports": "only SPICE could redirect USB devices, and guests have VNC",
    "maxphysaddr_mode": "guests have the address width that QEMU gives their CPU",
    "maxphysaddr_bits": "guests have the address width that QEMU gives their CPU",
    "firmware_stateless": "what a firmware remembers is kept with the server",
    "ephemeral_encryption": "disks are not encrypted: encrypt the host's file system",
    "pmem": "hosts hand out no persistent memory",
    "emulation_architecture": "guests have their host's architecture",
}
_QUIESCE = "os_require_quiesce"
_AGREED = ("vif_multiqueue_enabled", "pmu")  # booleans in which flavor and image may not differ


@dataclasses.dataclass(frozen=True)
class Devices:
    """Devices and limits of a guest; None leaves it to libvirt. The pairs are libvirt's names and numbers."""

    multiqueue: bool = False
    vif_model: str = VIRTIO
    rng: bool = True
    rng_rate: tuple[int, int] | None = None  # bytes in milliseconds; 0 of these is libvirt's second
    input_bus: str | None = None
    pointer_bus: str | None = None
    video_model: str | None = None
    video_ram_mb: int | None = None
    disk_bus: str = VIRTIO
    scsi_model: str | None = None
    serial_ports: int = 1
    pmu: bool | None = None
    hpet: bool | None = None
    hidden: bool = False  # the hypervisor, from the guest
    viommu: str | None = None
    cputune: tuple[tuple[str, int], ...] = ()
    iotune: tuple[tuple[str, int], ...] = ()
    bandwidth: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()  # inbound and outbound

    def viommu_on(self, facts: JsonMapping, machine: str) -> str | None:
        """The model of the IOMMU of a guest of this machine type on the compute host that `facts` describe."""
        if not has_iommu(machine):
            return None
        if self.viommu != "auto":
            return self.viommu
        if int(facts.get("libvirt_version") or 0) >= _VIRTIO_IOMMU:
            return VIRTIO
        return "intel" if facts.get("arch") in _X86 else "smmuv3"


def has_iommu(machine: str) -> bool:
    return "q35" in machine or machine.startswith("virt")


def check_property(what: str, name: str, value: object) -> None:
    """Raise NovaliteError for a value that the property `name` of `what` cannot have."""
    _check(f"{what}: its property {name}", PROPERTIES.get(name), value)


def check_extra_spec(what: str, name: str, value: object) -> None:
    """Raise NovaliteError for a value that the extra spec `name` of `what` cannot have."""
    _check(f"{what}: extra spec {name}", EXTRA_SPECS.get(name), value)


def check(flavor: JsonMapping, image: JsonMapping) -> None:
    """Raise NovaliteError for a request that asks for what is not built, that contradicts itself, or that libvirt does
    not take. Its values are known to be good."""
    of = _Wanted(flavor, image)
    for prefix, values, what in (("hw:", of.specs, _flavor(flavor)), ("hw_", of.properties, _image(image))):
        for name, reason in NOT_BUILT.items():
            if str(values.get(prefix + name, "no")).lower() not in NO:
                raise NovaliteError(
                    f"{what} has {prefix}{name}={values[prefix + name]}, which novalite does not do: {reason}. Take "
                    "it out, or use another"
                )
    if str(of.properties.get(_QUIESCE, "no")).lower() not in NO:
        raise NovaliteError(
            f"{_image(image)} has {_QUIESCE}={of.properties[_QUIESCE]}, which novalite does not do: no file system is "
            "frozen for a snapshot. Take it out, and stop the server before a snapshot that must be consistent"
        )
    _check_pair(of, image)
    _check_quotas(_flavor(flavor), of.number)


def check_rescue(image: JsonMapping) -> None:
    """Raise NovaliteError for an image that wants another place than the first disk's when it rescues."""
    for name in ("hw_rescue_device", "hw_rescue_bus"):
        if name in _properties(image):
            raise NovaliteError(
                f"{_image(image)} has {name}={_properties(image)[name]}, which novalite does not do: the disk that "
                "rescues is the first, the server's own the second. Take it out, or use another"
            )


def _check_pair(of: _Wanted, image: JsonMapping) -> None:
    """Raise NovaliteError where flavor and image contradict each other, or no host could ever do it."""
    for name in _AGREED:
        if len({value in YES for value in of.both(name) if value is not None}) > 1:
            of_flavor, of_image = of.both(name)
            raise NovaliteError(
                f"{of.names} differ: hw:{name}={of_flavor}, hw_{name}={of_image}: take the one from the flavor or the "
                "other from the image"
            )
    ports, most = (int(number or 0) for number in reversed(of.both("serial_port_count")))
    if most and ports > most:
        raise NovaliteError(
            f"{of.names}: hw_serial_port_count={ports} is above the flavor's hw:serial_port_count={most}: lower it"
        )
    if of.video_ram_mb() > of.number("hw_video:ram_max_mb"):
        raise NovaliteError(
            f"{of.names}: hw_video_ram={of.video_ram_mb()} is above the flavor's hw_video:ram_max_mb="
            f"{of.number('hw_video:ram_max_mb')}: lower it, or raise that"
        )
    machine = str(of.properties.get("hw_machine_type", "")).lower()
    if of.viommu() is not None and machine == "pc":
        raise NovaliteError(f"{of.names} ask for an IOMMU, which {machine} has not: set hw_machine_type=q35")
    if machine == "q35" and of.image("hw_disk_bus") == IDE:
        raise NovaliteError(f"{_image(image)}: its property hw_disk_bus is ide, which q35 has not: use sata or virtio")


def _check_quotas(flavor: str, number: t.Callable[[str], int]) -> None:
    for unit in ("bytes", "iops"):
        total, *parts = (f"quota:disk_{of}_{unit}_sec" for of in ("total", "read", "write"))
        if number(total) and any(map(number, parts)):
            raise NovaliteError(f"{flavor} has {total} beside {' or '.join(parts)}: leave one of them out")
    for way in ("inbound", "outbound"):
        average, *more = (f"quota:vif_{way}_{what}" for what in ("average", "peak", "burst"))
        if not number(average) and any(map(number, more)):
            raise NovaliteError(f"{flavor} has {' or '.join(more)} without {average}: set that, too")
    for name in ("quota:cpu_period", "quota:cpu_quota"):
        if 0 < number(name) < 1000:
            raise NovaliteError(f"{flavor} has {name}={number(name)}: use microseconds from 1000")


def devices_of(flavor: JsonMapping, image: JsonMapping) -> Devices:
    """Return what a guest with this flavor and image asks for. Values that were recorded before anybody judged them
    count as none."""
    of = _Wanted(flavor, image)
    scsi_model, vif_model = of.image("hw_scsi_model"), of.image("hw_vif_model") or VIRTIO
    pointer = "usb" if of.image("hw_pointer_model") else None
    rate, video_ram = of.number("hw_rng:rate_bytes"), of.video_ram_mb()
    return Devices(
        # as in Nova, there is nothing to share among queues with one CPU, and no other model has several
        multiqueue=int(flavor.get("vcpus") or 1) > 1
        and vif_model == VIRTIO
        and bool(of.agreed("vif_multiqueue_enabled")),
        vif_model=vif_model,
        rng=of.flavor("hw_rng:allowed") not in NO,
        rng_rate=(rate, of.number("hw_rng:rate_period")) if rate else None,
        input_bus=of.image("hw_input_bus"),
        pointer_bus=of.image("hw_input_bus") or pointer,
        video_model=str(of.properties["hw_video_model"]).lower() if of.properties.get("hw_video_model") else None,
        video_ram_mb=video_ram if 0 < video_ram <= of.number("hw_video:ram_max_mb") else None,
        disk_bus=of.image("hw_disk_bus") or VIRTIO,
        scsi_model=_OLD_SCSI_NAMES.get(scsi_model or "", scsi_model),
        serial_ports=of.serial_ports(),
        pmu=of.agreed("pmu"),
        hpet=None if (hpet := of.image("hw_time_hpet")) is None else hpet in YES,
        hidden=any(of.flavor(name) in YES for name in ("hide_hypervisor_id", "hw:hide_hypervisor_id"))
        or of.image("img_hide_hypervisor_id") in YES,
        viommu=of.viommu(),
        cputune=of.limits("cpu_", ("shares", "period", "quota")),
        iotune=of.limits("disk_", [name[len("disk_") :] for name in _DISK]),
        bandwidth=tuple(
            (way, limits)
            for way in ("inbound", "outbound")
            if (limits := of.limits(f"vif_{way}_", ("average", "peak", "burst")))
        ),
    )


def depend_on_host(devices: Devices) -> bool:
    """Tell whether a host may lack them."""
    return devices.viommu is not None or devices.video_model is not None or devices.disk_bus != VIRTIO


def lacking(devices: Devices, machine: str, facts: JsonMapping) -> str | None:
    """Return what the compute host that `facts` describe lacks for a guest of this machine type, worded to follow its
    name; None when it has all. A host that was not asked yet is taken to have it."""
    arch = facts.get("arch")
    if devices.viommu is not None:
        if not has_iommu(machine):
            return f"gives the guest machine type {machine}, which has no IOMMU: set hw_machine_type=q35 on the image"
        model = devices.viommu_on(facts, machine)
        if model == "virtio" and int(facts.get("libvirt_version") or _VIRTIO_IOMMU) < _VIRTIO_IOMMU:
            return "has a libvirt before 8.3, which has no IOMMU of model virtio"
        if (model == "intel" and arch not in _X86) or (model == "smmuv3" and arch in _X86):
            return f"is {arch}, where no IOMMU of model {model} is"
    if devices.disk_bus == IDE and "q35" in machine:
        return "gives the guest machine type q35, which has no IDE: set hw_disk_bus=sata on the image"
    for what, value, fact in (
        ("disks on bus", devices.disk_bus, "disk_buses"),
        ("video of model", devices.video_model, "video_models"),
    ):
        offered = facts.get(fact)
        if offered and value not in (None, "none", VIRTIO) and value not in offered:
            return f"has no {what} {value}: it has {', '.join(offered)}"
    return None


def traits_of(facts: JsonMapping) -> list[str]:
    """The traits of a host by os-traits' names, for the devices that its `facts` say it has."""
    return [
        f"COMPUTE_{kind}_{name.upper()}"
        for kind, fact in (("GRAPHICS_MODEL", "video_models"), ("STORAGE_BUS", "disk_buses"))
        for name in facts.get(fact) or ()
    ]


class _Wanted:
    """Properties of an image and extra specs of a flavor, looked at together."""

    def __init__(self, flavor: JsonMapping, image: JsonMapping) -> None:
        self.names = f"{_flavor(flavor)} and {_image(image)}"
        self.specs, self.properties = _specs(flavor), _properties(image)

    def image(self, name: str) -> str | None:
        return _read(PROPERTIES[name], self.properties.get(name))

    def flavor(self, name: str) -> str | None:
        return _read(EXTRA_SPECS[name], self.specs.get(name))

    def number(self, name: str) -> int:
        return int(self.flavor(name) or 0)

    def both(self, name: str) -> tuple[str | None, str | None]:
        """Return the values of the flavor's extra spec and of the image's property."""
        return self.flavor(f"hw:{name}"), self.image(f"hw_{name}")

    def agreed(self, name: str) -> bool | None:
        """Return the boolean of both; the flavor's goes first where they came to differ."""
        value = next((value for value in self.both(name) if value is not None), None)
        return None if value is None else value in YES

    def serial_ports(self) -> int:
        """Return their number: the flavor's is the most that an image may ask for."""
        most, asked = (int(number or 0) for number in self.both("serial_port_count"))
        return min(asked or most, most or asked) or 1

    def video_ram_mb(self) -> int:
        return int(self.image("hw_video_ram") or 0)

    def viommu(self) -> str | None:
        return self.flavor("hw:viommu_model") or self.image("hw_viommu_model")

    def limits(self, prefix: str, names: t.Sequence[str]) -> tuple[tuple[str, int], ...]:
        """Return the flavor's quotas; 0 is none, as libvirt has it."""
        numbers = ((name, self.number(f"quota:{prefix}{name}")) for name in names)
        return tuple((name, number) for name, number in numbers if number)


def _read(kind: tuple[str, ...] | Range, value: object) -> str | None:
    return str(value).lower() if value is not None and _suits(kind, value) else None


def _suits(kind: tuple[str, ...] | Range, value: object) -> bool:
    text = str(value).lower()
    if isinstance(kind, Range):
        return re.fullmatch(r"-?[0-9]{1,15}", text) is not None and kind.least <= int(text) <= kind.most
    return text in kind


def _check(what: str, kind: tuple[str, ...] | Range | None, value: object) -> None:
    if kind is None or _suits(kind, value):
        return
    values = f"a number from {kind.least} to {kind.most}" if isinstance(kind, Range) else ", ".join(kind)
    raise NovaliteError(f"{what} is {str(value)[:40]!r}; use {values}")


def _specs(flavor: JsonMapping) -> JsonMapping:
    specs: JsonMapping = flavor.get("extra_specs") or {}
    return specs


def _properties(image: JsonMapping) -> JsonMapping:
    properties: JsonMapping = image.get("properties") or {}
    return properties


def _flavor(flavor: JsonMapping) -> str:
    return f"flavor '{flavor.get('name')}'"


def _image(image: JsonMapping) -> str:
    return f"image '{image.get('name')}'"
