# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""libvirt's XML of a sandbox: a guest made of a saved definition that reaches nothing, to see whether its disks boot.

Only what a guest needs to boot is taken over; whatever else a definition holds is left out by not being named here: its
interfaces, host devices, shared directories, placement, passwords of displays."""

from __future__ import annotations

import dataclasses
import os
import typing as t
import uuid as uuids
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from .domain_xml import AGENT, QCOW2

NAMESPACE = "urn:novalite:sandbox:1"  # of the mark in a sandbox's metadata
PREFIX = "novalite-sandbox-"  # of its name
NVRAM, CONSOLE, KERNEL, RAMDISK = "nvram.fd", "console.log", "kernel", "ramdisk"  # in its directory
MOST_VCPUS = 2
_KEPT = "features", "clock"  # as they are


@dataclasses.dataclass(frozen=True)
class Sandbox:
    """A sandbox: its UUID, and the directory with a qcow2 for each disk, named by its target."""

    uuid: str
    directory: str

    @classmethod
    def new(cls, directory: str) -> Sandbox:
        """A new one, whose directory lies in this one."""
        uuid = str(uuids.uuid4())
        return cls(uuid, os.path.join(directory, PREFIX + uuid))

    @property
    def name(self) -> str:
        """The name of its domain."""
        return PREFIX + self.uuid[:8]

    def path(self, name: str) -> str:
        """The path of one of its files."""
        return os.path.join(self.directory, name)


def is_marked(definition: str) -> bool:
    """Tell whether the domain with this XML is a sandbox of novalite's."""
    root = ElementTree.fromstring(definition)
    return (root.findtext("name") or "").startswith(PREFIX) and root.find(
        f"metadata/{{{NAMESPACE}}}sandbox"
    ) is not None


def memory_of(definition: str) -> int:
    """The KiB of memory that a guest with this XML has now, and its sandbox gets."""
    root = ElementTree.fromstring(definition)
    return int(root.findtext("currentMemory") or root.findtext("memory") or 0)  # libvirt writes KiB


def boot_files_of(definition: str) -> dict[str, str]:
    """The files outside of the disks that a guest with this XML boots from: path by what they are called here."""
    root = ElementTree.fromstring(definition)
    named = {KERNEL: root.findtext("os/kernel"), RAMDISK: root.findtext("os/initrd")}
    return {name: path for name, path in named.items() if path}


def xml_of(definition: str, sandbox: Sandbox, disks: t.Collection[str]) -> str:
    """Return the XML of a sandbox of the guest with this `definition`, with these of its disks (by their targets)."""
    saved = ElementTree.fromstring(definition)
    root = Element("domain", type=saved.get("type", "qemu"))
    for name, text in (("name", sandbox.name), ("uuid", sandbox.uuid), ("memory", str(memory_of(definition)))):
        SubElement(root, name).text = text
    SubElement(SubElement(root, "metadata"), f"{{{NAMESPACE}}}sandbox")
    vcpu = saved.find("vcpu")
    count = 1 if vcpu is None else int(vcpu.get("current") or vcpu.text or 1)
    SubElement(root, "vcpu").text = str(min(count, MOST_VCPUS))
    _add_os(root, saved, sandbox)
    root.extend(element for name in _KEPT for element in saved.iterfind(name))
    cpu = saved.find("cpu")
    if cpu is not None:
        for name in ("topology", "numa"):  # they say which vCPUs there are, and where its memory is
            for element in cpu.findall(name):
                cpu.remove(element)
        root.append(cpu)
    for event, action in (("poweroff", "destroy"), ("reboot", "restart"), ("crash", "destroy")):
        SubElement(root, f"on_{event}").text = action
    _add_devices(SubElement(root, "devices"), saved, sandbox, disks)
    return ElementTree.tostring(root, encoding="unicode")


def _add_os(root: Element, saved: Element, sandbox: Sandbox) -> None:
    system = saved.find("os")
    if system is None:
        return
    for name, path in (("nvram", NVRAM), ("kernel", KERNEL), ("initrd", RAMDISK)):
        element = system.find(name)
        if element is not None:
            element.text = sandbox.path(path)
    root.append(system)


def _add_devices(devices: Element, saved: Element, sandbox: Sandbox, disks: t.Collection[str]) -> None:
    SubElement(devices, "emulator").text = saved.findtext("devices/emulator")
    for element in saved.iterfind("devices/disk"):
        target = element.find("target")
        name = "" if target is None else target.get("dev", "")
        if name in disks and element.get("device", "disk") == "disk":
            disk = SubElement(devices, "disk", type="file", device="disk")
            SubElement(disk, "driver", name="qemu", type=QCOW2, cache="unsafe")  # nobody needs it after a power failure
            SubElement(disk, "source", file=sandbox.path(name))
            disk.extend(each for each in (target, element.find("serial"), element.find("boot")) if each is not None)
    SubElement(devices, "controller", type="usb", model="none")
    for element in saved.iterfind("devices/controller[@type='scsi']"):
        kept = {key: value for key, value in element.attrib.items() if key in ("type", "index", "model")}
        SubElement(devices, "controller", kept)
    serial = SubElement(devices, "serial", type="file")
    SubElement(serial, "source", path=sandbox.path(CONSOLE))
    if saved.find(f"devices/channel/target[@name='{AGENT}']") is not None:
        SubElement(SubElement(devices, "channel", type="unix"), "target", type="virtio", name=AGENT)
    for element in saved.iterfind("devices/tpm"):
        chip = SubElement(devices, "tpm", model=element.get("model", "tpm-tis"))
        chip.extend(
            Element("backend", type="emulator", version=each.get("version", "2.0"))
            for each in element.iterfind("backend[@type='emulator']")
        )
    model = saved.find("devices/video/model")
    kind = model.get("type") if model is not None else None
    SubElement(SubElement(devices, "video"), "model", type="vga" if kind in (None, "none") else str(kind))
    rng = SubElement(devices, "rng", model="virtio")
    SubElement(rng, "backend", model="random").text = "/dev/urandom"
    SubElement(devices, "memballoon", model="none")
