# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes of guests: plugged in and out through libvirt, made larger and copied while the guest uses them.

Without a running guest its definition is changed, and that is all.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import typing as t
from xml.etree import ElementTree

from .._errors import ConflictError, NotFoundError, NovaliteError
from . import lifecycle_backup
from .compare import Disk, disk_of
from .lifecycle import clear, ignoring, is_active, lookup, present

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

DETACH_TIMEOUT = 20.0  # seconds that a guest gets to let go of a disk, Nova's device_detach_timeout
DETACH_ATTEMPTS = 8  # Nova's device_detach_attempts: a guest that is still booting hears none of the first
COPY_TIMEOUT = 6 * 3600.0  # seconds
POLL = 0.2  # seconds


class Attachment(t.TypedDict):
    """A volume, and the domain `name` that is to have it as `device`; `xml` is the disk's, where it is plugged in."""

    id: str
    volume_id: str
    instance_uuid: str
    name: str
    device: str
    xml: t.Optional[str]


def disks_of(xml: str) -> dict[str, str]:
    """`{serial: device name}` of a domain's disks that have a serial number: the volumes."""
    return {disk.serial: disk.dev for disk in _disks(xml) if disk.serial}


def attach(connection: libvirt.virConnect, attachment: Attachment, check_mode: bool = False) -> str:
    """The guest has the volume, now and after its next start; when it does not take it, its definition is as before.
    Returns what was done. Raises NovaliteError."""
    domain = _domain(connection, attachment)
    with clear(f"volume {attachment['volume_id']} cannot be attached to domain {attachment['name']}"):
        active, persistent = domain.isActive(), domain.isPersistent()
        if not active and domain.hasManagedSaveImage(0):
            raise ConflictError(f"domain {attachment['name']} is suspended, without the volume: resume it first")
        places = ((persistent, libvirt.VIR_DOMAIN_AFFECT_CONFIG), (active, libvirt.VIR_DOMAIN_AFFECT_LIVE))
        todo = [flag for there, flag in places if there and not _has(domain, attachment, flag)]
        if check_mode or not todo:
            return "attach" if todo else "none"
        done: list[int] = []
        try:
            for flag in todo:
                domain.attachDeviceFlags(str(attachment["xml"]), flag)
                done.append(flag)
        except libvirt.libvirtError:
            if libvirt.VIR_DOMAIN_AFFECT_CONFIG in done:
                with contextlib.suppress(libvirt.libvirtError):
                    domain.detachDeviceFlags(str(attachment["xml"]), libvirt.VIR_DOMAIN_AFFECT_CONFIG)
            raise
    return "attach"


def detach(
    connection: libvirt.virConnect,
    attachment: Attachment,
    check_mode: bool = False,
    timeout: float = DETACH_TIMEOUT,
    attempts: int = DETACH_ATTEMPTS,
) -> str:
    """The guest has the volume no more. Returns what was done. Raises NovaliteError when it does not let go of it.

    As Nova does: first out of the definition, then out of the guest, which is asked `attempts` times, every `timeout`
    seconds; one that keeps it keeps it in its definition, too.
    """
    domain = lookup(connection, attachment["instance_uuid"])
    if domain is None:
        return "none"  # nothing runs that could have it
    with clear(f"volume {attachment['volume_id']} cannot be detached from domain {attachment['name']}"):
        config, live = libvirt.VIR_DOMAIN_AFFECT_CONFIG, libvirt.VIR_DOMAIN_AFFECT_LIVE
        defined = domain.isPersistent() and _find(domain, attachment, config) is not None
        plugged = domain.isActive() and _find(domain, attachment, live) is not None
        if check_mode or not (defined or plugged):
            return "detach" if defined or plugged else "none"
        if not domain.isActive() and domain.hasManagedSaveImage(0):
            raise ConflictError(f"domain {attachment['name']} is suspended, with the volume: resume it first")
        before = _find(domain, attachment, config)
        if defined:
            domain.detachDeviceFlags(str(before), config)
        if plugged and not _released(domain, attachment, timeout, attempts):
            if defined:
                with contextlib.suppress(libvirt.libvirtError):
                    domain.attachDeviceFlags(str(before), config)
            raise NovaliteError(
                f"the guest of domain {attachment['name']} did not let go of volume {attachment['volume_id']} "
                f"({attachment['device']}) though it was asked {attempts} times: unmount it there, and try again"
            )
    return "detach"


def _released(domain: libvirt.virDomain, attachment: Attachment, timeout: float, attempts: int) -> bool:
    for _attempt in range(attempts):
        xml = _find(domain, attachment, libvirt.VIR_DOMAIN_AFFECT_LIVE)
        if xml is None:
            return True
        # "already in the process of unplug": it was asked, and has not answered yet
        with ignoring(libvirt.VIR_ERR_OPERATION_FAILED, libvirt.VIR_ERR_DEVICE_MISSING):
            domain.detachDeviceFlags(xml, libvirt.VIR_DOMAIN_AFFECT_LIVE)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not domain.isActive() or _find(domain, attachment, libvirt.VIR_DOMAIN_AFFECT_LIVE) is None:
                return True
            time.sleep(POLL)
    return False


class LiveGuests:
    """Operations on disks of running guests; the first call connects to libvirt."""

    def __init__(self, connect: t.Callable[[], libvirt.virConnect]) -> None:
        self._connect = connect

    @functools.cached_property
    def _connection(self) -> libvirt.virConnect:
        return self._connect()

    def running(self, uuid: str) -> bool:
        """Tell whether a QEMU, running or paused, has its disks open."""
        return is_active(self._connection, uuid)

    def resize(self, uuid: str, serial: str, size: int) -> None:
        """Let the guest see `size` bytes. Raises NovaliteError."""
        domain = present(self._connection, uuid)
        with clear(f"volume {serial} cannot be resized in its guest"):
            domain.blockResize(self._device(domain, serial), size, libvirt.VIR_DOMAIN_BLOCK_RESIZE_BYTES)

    def copy(self, uuid: str, serial: str, path: str, fmt: str, block: bool) -> None:
        """Write what the disk holds now to `path`, as after a power failure; the guest goes on. Raises
        NovaliteError."""
        domain = present(self._connection, uuid)
        what = f"volume {serial} cannot be copied from its guest"
        with clear(what):
            device = self._device(domain, serial)
            try:
                lifecycle_backup.copy_disk(domain, device, path, COPY_TIMEOUT, fmt, "block" if block else "file")
            except NovaliteError as error:
                raise NovaliteError(f"{what}: {error}") from None
        if not block and not os.path.exists(path):
            raise NovaliteError(f"{what}: nothing was written")

    def copy_all(self, uuid: str, copies: t.Mapping[str, str], at_once: t.Callable[[], None], timeout: float) -> bool:
        """Copy all of these disks, as lifecycle_backup.backup_all() does."""
        return lifecycle_backup.backup_all(self._connection, uuid, copies, at_once, timeout)

    def release(self, uuid: str) -> None:
        """End what a run that was killed left, as lifecycle_backup.release() does."""
        lifecycle_backup.release(self._connection, uuid)

    @staticmethod
    def _device(domain: libvirt.virDomain, serial: str) -> str:
        target = disks_of(domain.XMLDesc(0)).get(serial)
        if target is None:
            raise NotFoundError(f"domain {domain.name()} runs without volume {serial}")
        return target


def _domain(connection: libvirt.virConnect, attachment: Attachment) -> libvirt.virDomain:
    domain = lookup(connection, attachment["instance_uuid"])
    if domain is None:
        raise NotFoundError(f"domain {attachment['name']} is not on this host: start the instance, and try again")
    return domain


def _has(domain: libvirt.virDomain, attachment: Attachment, flag: int) -> bool:
    """Tell whether the domain has this volume already. Raises ConflictError when another disk has its device name."""
    for disk in _disks(_xml(domain, flag)):
        if disk.serial == attachment["volume_id"]:
            return True
        if disk.dev == attachment["device"]:
            raise ConflictError(f"domain {attachment['name']} has another disk {disk.dev}: give another device name")
    return False


def _find(domain: libvirt.virDomain, attachment: Attachment, flag: int) -> str | None:
    """The disk's XML as libvirt has it: with the address that its removal needs."""
    root = ElementTree.fromstring(_xml(domain, flag))
    for element in root.iterfind("devices/disk"):
        if (element.findtext("serial") or "").strip() == attachment["volume_id"]:
            return ElementTree.tostring(element, encoding="unicode")
    return None


def _xml(domain: libvirt.virDomain, flag: int) -> str:
    return str(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE if flag == libvirt.VIR_DOMAIN_AFFECT_CONFIG else 0))


def _disks(xml: str) -> list[Disk]:
    return [disk_of(element) for element in ElementTree.fromstring(xml).iterfind("devices/disk")]
