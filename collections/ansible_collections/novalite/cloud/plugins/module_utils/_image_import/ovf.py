# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Descriptor of an appliance (DSP0243, OVF 1.1): processors, memory, interfaces, disks, firmware. Pure."""

from __future__ import annotations

import dataclasses
import re
import typing as t
from xml.etree import ElementTree

from .._errors import ImageRefusedError

MAX_OVF = 1 << 20  # bytes
MAX_ELEMENTS = 20_000
MAX_DISKS, MAX_NICS = 16, 16
MAX_CPUS, MAX_MEMORY_MIB = 1024, 64 << 20
# CIM_ResourceAllocationSettingData's ResourceType
CPU, MEMORY, NIC, DISK = "3", "4", "10", "17"
_POWERS = {"kilobytes": 10, "megabytes": 20, "gigabytes": 30, "kb": 10, "mb": 20, "gb": 30, "terabytes": 40}
_UNITS = re.compile(r"byte(?:\s*\*\s*2\s*\^\s*(\d{1,2}))?")
# by the last word of a disk's format, which is a URI of the specification of each
_FORMATS = {"vmdk": "vmdk", "vhdx": "vhdx", "vhd": "vhd", "vdi": "vdi", "qcow2": "qcow2", "raw": "raw"}


@dataclasses.dataclass(frozen=True)
class Disk:
    """Disk of an appliance: the `file` in the archive, and its declared format."""

    file: str
    disk_format: str


@dataclasses.dataclass(frozen=True)
class Appliance:
    """A virtual machine as its descriptor has it. `disks` are in the order of their controllers: it boots from the
    first one. `networks` has the name of each interface's network."""

    name: str
    vcpus: int
    memory_mib: int
    disks: tuple[Disk, ...]
    networks: tuple[str, ...]
    uefi: bool


def appliance_of(data: bytes, name: str) -> Appliance:
    """Read a descriptor, which messages call `name`. Raises ImageRefusedError."""
    root = _parsed(data, name)
    systems = _all(root, "VirtualSystem")
    if len(systems) != 1:
        raise ImageRefusedError(f"{name} describes {len(systems)} virtual systems: one is accepted")
    items = [_values(item) for item in [*_all(systems[0], "Item"), *_all(systems[0], "StorageItem")]]
    files = {_attribute(file, "id"): file for file in _all(root, "File")}
    disks = {_attribute(disk, "diskId"): disk for disk in _all(root, "Disk") if _attribute(disk, "diskId")}
    drives = sorted((item for item in items if item.get("ResourceType") == DISK), key=_place(items))
    networks = tuple(item.get("Connection", "")[:80] for item in items if item.get("ResourceType") == NIC)
    if not drives:
        raise ImageRefusedError(f"{name} describes no disk")
    if len(drives) > MAX_DISKS or len(networks) > MAX_NICS:
        raise ImageRefusedError(f"{name} describes more than {MAX_DISKS} disks or {MAX_NICS} interfaces")
    return Appliance(
        name=(_attribute(systems[0], "id") or "appliance")[:80],
        vcpus=_amount(items, CPU, 1, MAX_CPUS, name),
        memory_mib=_amount(items, MEMORY, 20, MAX_MEMORY_MIB, name),
        disks=tuple(_disk(item, disks, files, name) for item in drives),
        networks=networks,
        uefi=_is_uefi(root),
    )


def _parsed(data: bytes, name: str) -> ElementTree.Element:
    if len(data) > MAX_OVF:
        raise ImageRefusedError(f"{name} has {len(data)} bytes: at most {MAX_OVF} are accepted")
    try:
        text = re.sub(r"^\ufeff?\s*<\?xml[^>]{0,200}\?>", "", data.decode("utf-8"))
        # a document type is where entities are declared, which grow without bounds or name files (CWE-776, CWE-611)
        if "<!DOCTYPE" in text or "<!ENTITY" in text:
            raise ImageRefusedError(f"{name} has a document type: remove it")
        root = ElementTree.fromstring(text)
    except (UnicodeDecodeError, ElementTree.ParseError, RecursionError) as error:
        raise ImageRefusedError(f"{name} is no XML in UTF-8: {str(error)[:200]}") from error
    if _local(root) != "Envelope":
        raise ImageRefusedError(f"{name} is no OVF descriptor: its root is {_local(root)[:40]!r}, not 'Envelope'")
    if sum(1 for _element in root.iter()) > MAX_ELEMENTS:
        raise ImageRefusedError(f"{name} has more than {MAX_ELEMENTS} elements")
    return root


def _local(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2]


def _all(root: ElementTree.Element, local: str) -> list[ElementTree.Element]:
    return [element for element in root.iter() if _local(element) == local]


def _attribute(element: ElementTree.Element, local: str) -> str:
    return next((value for key, value in element.attrib.items() if key.rpartition("}")[2] == local), "")


def _values(item: ElementTree.Element) -> dict[str, str]:
    return {_local(child): (child.text or "").strip() for child in item}


def _place(items: t.Sequence[t.Mapping[str, str]]) -> t.Callable[[t.Mapping[str, str]], tuple[int, int]]:
    """Order of drives: their controller as it comes in the document, then their address on it."""
    order = {item.get("InstanceID", ""): number for number, item in enumerate(items)}

    def place(item: t.Mapping[str, str]) -> tuple[int, int]:
        address = item.get("AddressOnParent", "0")
        return order.get(item.get("Parent", ""), 0), int(address) if re.fullmatch(r"\d{1,6}", address) else 0

    return place


def _amount(items: t.Sequence[t.Mapping[str, str]], kind: str, power: int, most: int, name: str) -> int:
    """The quantity of a kind of resource, in units of 2^power bytes where it has a unit. Raises ImageRefusedError."""
    item = next((item for item in items if item.get("ResourceType") == kind), None)
    what = "processors" if kind == CPU else "MiB of memory"
    quantity = "" if item is None else item.get("VirtualQuantity", "")
    if item is None or not re.fullmatch(r"\d{1,12}", quantity):
        raise ImageRefusedError(f"{name} does not say how many {what} the system has")
    count = int(quantity)
    if kind == MEMORY:
        count = (count << _power(item.get("AllocationUnits", ""), name)) >> power
    if not 0 < count <= most:
        raise ImageRefusedError(f"{name} asks for {count} {what}: 1 to {most} are accepted")
    return count


def _power(unit: str, name: str) -> int:
    """The exponent of 2 of an allocation unit; 20 (MiB) for none, as all writers mean it."""
    lowered = unit.lower().strip()
    if not lowered:
        return 20
    if lowered in _POWERS:
        return _POWERS[lowered]
    matched = _UNITS.fullmatch(lowered)
    if matched is None or int(matched[1] or 0) > 50:
        raise ImageRefusedError(f"{name}: {unit[:40]!r} is not a unit of memory, such as 'byte * 2^20'")
    return int(matched[1] or 0)


def _disk(
    item: t.Mapping[str, str],
    disks: t.Mapping[str, ElementTree.Element],
    files: t.Mapping[str, ElementTree.Element],
    name: str,
) -> Disk:
    kind, _slash, which = re.sub(r"^ovf:", "", item.get("HostResource", "")).strip("/").partition("/")
    disk = disks.get(which) if kind == "disk" else None
    file = files.get(which if kind == "file" else "" if disk is None else _attribute(disk, "fileRef"))
    if file is None:
        raise ImageRefusedError(f"{name} has a drive without a file: {item.get('HostResource', '')[:80]!r}")
    if disk is not None and _attribute(disk, "parentRef"):
        raise ImageRefusedError(f"{name} has a disk that needs another one, its parent: export it merged")
    href, compression = _attribute(file, "href"), _attribute(file, "compression")
    if compression not in ("", "identity") or _attribute(file, "chunkSize"):
        raise ImageRefusedError(f"{name}: {href[:80]!r} is compressed or in chunks: export it without")
    if "/" in href or "\\" in href or "://" in href:
        raise ImageRefusedError(f"{name} names a file outside of the archive: {href[:80]!r}")
    declared = "" if disk is None else _attribute(disk, "format")
    words = re.findall(r"[a-z0-9]+", f"{declared} {href.rpartition('.')[2]}".lower())
    disk_format = next((_FORMATS[word] for word in words if word in _FORMATS), None)
    if disk_format is None:
        raise ImageRefusedError(
            f"{name}: disk {href[:80]!r} has the format {declared[:80]!r}, which is not one of {', '.join(_FORMATS)}"
        )
    return Disk(href, disk_format)


def _is_uefi(root: ElementTree.Element) -> bool:
    """Tell whether it starts by UEFI, as VMware (vmw:Config) or VirtualBox (vbox:Machine) writes it."""
    vmware = any(
        _attribute(config, "key") == "firmware" and _attribute(config, "value").lower() == "efi"
        for config in _all(root, "Config")
    )
    return vmware or any(_attribute(firmware, "type").lower().startswith("efi") for firmware in _all(root, "Firmware"))
