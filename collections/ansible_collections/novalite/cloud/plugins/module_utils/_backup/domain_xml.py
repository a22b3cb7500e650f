# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""libvirt's XML of a backup: what of a domain is saved, the checkpoint that follows, the job that reads it."""

from __future__ import annotations

import dataclasses
import typing as t
from xml.etree import ElementTree

from .._errors import NovaliteError
from .manifest import FULL, INCREMENTAL, Manifest, SavedDisk

QCOW2 = "qcow2"
PREFIX = "novalite-"  # of the names of our checkpoints
AGENT = "org.qemu.guest_agent.0"  # the channel of QEMU's agent
VOLUME_PREFIX = "novavol-"  # of those of a volume's own backups: neither chain ends the other one
REPLICA_PREFIX = "novarep-"  # of those of copies on a second host, likewise


@dataclasses.dataclass(frozen=True)
class Disk:
    """A disk of a domain that a backup takes: `name` is its target, `identity` its serial number, or the target."""

    name: str
    identity: str
    source: str
    fmt: str

    @property
    def can_have_bitmap(self) -> bool:
        """Tell whether bitmaps stay in it when its guest is off."""
        return self.fmt == QCOW2


@dataclasses.dataclass(frozen=True)
class DiskPlan:
    """The way in which a disk is taken, and why it is a full one."""

    disk: Disk
    kind: str
    reason: str = ""


def disks_of(definition: str, paths: t.Collection[str] | None = None) -> list[Disk]:
    """List the disks that a backup of a domain with this XML takes: those that it can write to, or of them those at
    these `paths`."""
    disks = []
    for element in ElementTree.fromstring(definition).iterfind("devices/disk"):
        target, source, driver = (element.find(name) for name in ("target", "source", "driver"))
        if element.get("device", "disk") != "disk" or element.find("readonly") is not None:
            continue
        name = "" if target is None else target.get("dev", "")
        path = None if source is None else source.get("file") or source.get("dev")
        if paths is not None and path not in paths:
            continue
        if not name or not path or driver is None:
            raise NovaliteError(
                f"disk {name} is neither a file nor a block device of this host: detach it, and back up again"
            )
        disks.append(Disk(name, element.findtext("serial") or name, path, driver.get("type", "raw")))
    return disks


def owner_of(definition: str) -> tuple[int, int] | None:
    """The user and the group that QEMU runs as, by the XML of an active domain; None where libvirt changes neither."""
    for label in ElementTree.fromstring(definition).iterfind("seclabel[@model='dac']/label"):
        user, _plus, group = (label.text or "").lstrip("+").partition(":")
        numbers = user, group.lstrip("+")
        if all(number.isdigit() for number in numbers):
            return int(numbers[0]), int(numbers[1])
    return None


def has_agent(definition: str) -> bool:
    """Tell whether the guest's agent answers, by the XML of an active domain."""
    channels = ElementTree.fromstring(definition).iterfind(f"devices/channel/target[@name='{AGENT}']")
    return any(channel.get("state") == "connected" for channel in channels)


def plan(disks: t.Sequence[Disk], parent: Manifest | None, reason: str) -> list[DiskPlan]:
    """Decide how each disk is taken. `parent` is the backup whose checkpoint the disks have; None for the `reason`."""
    return [_plan(disk, parent, reason) for disk in disks]


def _plan(disk: Disk, parent: Manifest | None, reason: str) -> DiskPlan:
    if not disk.can_have_bitmap:
        return DiskPlan(disk, FULL, f"a {disk.fmt} disk keeps no record of changes")
    if parent is None:
        return DiskPlan(disk, FULL, reason)
    before = next((saved for saved in parent.disks if saved.name == disk.name), None)
    if before is None:
        return DiskPlan(disk, FULL, f"backup {parent.backup} has no such disk")
    if before.identity != disk.identity or not before.has_bitmap:
        return DiskPlan(disk, FULL, f"it is another disk than in backup {parent.backup}")
    return DiskPlan(disk, INCREMENTAL)


def checkpoint_xml(name: str, plans: t.Iterable[DiskPlan]) -> str | None:
    """The checkpoint from which the next backup goes on; None where no disk can have one."""
    return _checkpoint(name, [each.disk.name for each in plans if each.disk.can_have_bitmap])


def checkpoint_again(manifest: Manifest) -> str | None:
    """The checkpoint of a backup, for a host whose libvirt does not know it."""
    if manifest.checkpoint is None:
        return None
    return _checkpoint(
        manifest.checkpoint, [disk.name for disk in manifest.disks if disk.has_bitmap], manifest.created // 1000
    )


def _checkpoint(name: str, disks: t.Sequence[str], created: int | None = None) -> str | None:
    root = ElementTree.Element("domaincheckpoint")
    ElementTree.SubElement(root, "name").text = name
    if created is not None:
        ElementTree.SubElement(root, "creationTime").text = str(created)
    within = ElementTree.SubElement(root, "disks")
    for disk in disks:
        ElementTree.SubElement(within, "disk", name=disk, checkpoint="bitmap", bitmap=name)
    return ElementTree.tostring(root, encoding="unicode") if disks else None


def backup_xml(
    plans: t.Iterable[DiskPlan], checkpoint: str | None, socket: str, scratch: t.Callable[[str], str]
) -> str:
    """The job that reads these disks at `socket`; incremental ones since the checkpoint named. What the guest
    overwrites meanwhile goes to the files that `scratch` names."""
    root = ElementTree.Element("domainbackup", mode="pull")
    ElementTree.SubElement(root, "server", transport="unix", socket=socket)
    within = ElementTree.SubElement(root, "disks")
    for each in plans:
        attributes = {"name": each.disk.name, "backup": "yes", "type": "file", "backupmode": each.kind}
        if each.kind == INCREMENTAL and checkpoint is not None:
            attributes["incremental"] = checkpoint
        element = ElementTree.SubElement(within, "disk", attributes)
        ElementTree.SubElement(element, "scratch", file=scratch(each.disk.name))
    return ElementTree.tostring(root, encoding="unicode")


def socket_of(backup: str) -> str | None:
    """The socket at which a job with this XML is read; None for one that copies by itself."""
    server = ElementTree.fromstring(backup).find("server")
    return None if server is None else server.get("socket")


def shrunk(size: int, before: SavedDisk) -> bool:
    """Tell whether a disk, now of `size` bytes, is smaller than it was: what it changed cannot be told then."""
    return size < before.size
