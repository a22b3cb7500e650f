# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDs of guests: what is in their drives, and the config drive."""

from __future__ import annotations

import dataclasses
import os
import string
import typing as t

from .._disk.layout import RESCUE, cdrom_name
from .._guest.image_properties import LAST_DEVICES, cdrom_bus, host_mount
from .._model.devices import devices_of
from .._model.instance import Instance, drives


@dataclasses.dataclass(frozen=True)
class ConfigDrive:
    """The image with what the guest is told, and where the guest finds it."""

    source: str
    device: str  # cdrom or disk
    dev: str
    bus: str


@dataclasses.dataclass(frozen=True)
class Cdrom:
    """A CD drive, and the file of the CD that is in it; None: it is empty."""

    source: str | None
    dev: str
    bus: str


def config_drive(instance: Instance, machine: str, directory: str) -> ConfigDrive | None:
    """A CD in the last place of its bus, as Nova puts it there, so that it takes no other disk's name. hw_cdrom_bus of
    the image chooses the bus: on virtio, all that some kernels know, it is a disk that cannot be written to."""
    if not instance.get("config_drive"):
        return None
    bus = _bus(instance, machine)
    device = "disk" if bus == "virtio" else "cdrom"
    own = not instance.get("rescue") or host_mount(instance["image"])
    name = "disk.config" if own else "disk.config" + RESCUE
    return ConfigDrive(os.path.join(directory, name), device, LAST_DEVICES[bus], bus)


def cdroms(instance: Instance, machine: str, directory: str) -> t.Iterator[Cdrom]:
    """The first places of their bus; where the disks are on that, too, and have those, the last ones before the config
    drive's. Where CDs are on virtio, which has no drives, they are on a SCSI controller."""
    bus = _bus(instance, machine)
    bus, first = ("ide", "hd") if bus == "ide" else ("scsi" if bus == "virtio" else bus, "sd")
    letters = string.ascii_lowercase
    if devices_of(instance["flavor"], instance["image"]).disk_bus == bus:
        # QEMU counts vda of such a disk as the bus's first place
        letters = letters[: letters.index(LAST_DEVICES.get(bus, "sdz")[-1])][::-1]
    for number, (cdrom, letter) in enumerate(zip(drives(instance), letters)):
        source = cdrom and os.path.join(directory, cdrom_name(number, cdrom["checksum"]))
        yield Cdrom(source, first + letter, bus)


def _bus(instance: Instance, machine: str) -> str:
    usual = "sata" if "q35" in machine else "ide" if machine.startswith("pc") else "virtio"
    return cdrom_bus(instance["image"], usual)
