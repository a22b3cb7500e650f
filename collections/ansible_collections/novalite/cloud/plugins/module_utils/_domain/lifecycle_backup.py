# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A copy of a running guest's disks as they are at one moment: QEMU's backup job, which keeps what the guest overwrites
meanwhile until it was copied. The copy stands on no other file."""

from __future__ import annotations

import contextlib
import time
import typing as t
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._host.waiting import wait_until
from . import compare, lifecycle

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

POLL = 0.1  # seconds
ABORT_TIMEOUT = 60.0  # seconds
AGENT_TIMEOUT = 10  # seconds that a guest's agent gets to freeze its file systems
THAW_ATTEMPTS = 6


def backup(connection: libvirt.virConnect, uuid: str, disk: str, path: str, timeout: float) -> None:
    """Copy the disk that the active domain has at `disk` into the new file `path`, a qcow2 of its own. Raises
    NovaliteError, also after `timeout` seconds; no job is left then."""
    domain = lifecycle.present(connection, uuid)
    with lifecycle.clear(f"domain {uuid} cannot be copied"):
        device = _device(domain.XMLDesc(0), disk)
        _end_job(domain)  # of a run that was killed: whoever calls this has the instance for itself
        copy_disk(domain, device, path, timeout)


def backup_all(
    connection: libvirt.virConnect,
    uuid: str,
    copies: t.Mapping[str, str],
    at_once: t.Callable[[], None],
    timeout: float,
) -> bool:
    """Copy the disks that the active domain has at the paths `copies` into the new files there, qcow2 of their own, all
    as they are at one moment; `at_once` is called then. Returns whether the guest's agent had frozen its file systems.
    Raises NovaliteError, also after `timeout` seconds; no job is left then, and nothing is frozen."""
    domain = lifecycle.present(connection, uuid)
    with lifecycle.clear(f"domain {uuid} cannot be copied"):
        xml = domain.XMLDesc(0)
        devices = {_device(xml, disk): path for disk, path in copies.items()}
        frozen = _freeze(domain)
        try:
            try:
                domain.backupBegin(_xml(devices, "qcow2", "file"), None, 0)
                at_once()
            finally:
                if frozen:
                    _thaw(domain)
            _wait(domain, timeout)
        except BaseException:
            with contextlib.suppress(libvirt.libvirtError, NovaliteError):
                _end_job(domain)
            raise
    return frozen


def release(connection: libvirt.virConnect, uuid: str) -> None:
    """End what a run that was killed may have left in an active domain: a copy under way, frozen file systems. Raises
    NovaliteError."""
    domain = lifecycle.present(connection, uuid)
    with lifecycle.clear(f"domain {uuid} cannot be copied"):
        _end_job(domain)
        with contextlib.suppress(libvirt.libvirtError):  # there is no agent, or nothing is frozen
            domain.fsThaw()


def _freeze(domain: libvirt.virDomain) -> bool:
    """Freeze the guest's file systems; False where no agent does it in time."""
    try:
        domain.agentSetResponseTimeout(AGENT_TIMEOUT, 0)
        domain.fsFreeze()
    except libvirt.libvirtError:
        with contextlib.suppress(libvirt.libvirtError):  # it may do it yet
            domain.fsThaw()
        return False
    return True


def _thaw(domain: libvirt.virDomain) -> None:
    for attempt in range(1, THAW_ATTEMPTS + 1):
        try:
            domain.fsThaw()
            return
        except libvirt.libvirtError:
            if attempt == THAW_ATTEMPTS:
                raise


def copy_disk(
    domain: libvirt.virDomain, device: str, path: str, timeout: float, fmt: str = "qcow2", kind: str = "file"
) -> None:
    """Copy the disk `device` of an active domain to `path`, a "file" or a "block" device, in the format `fmt`. Raises
    NovaliteError, and libvirt's errors; no job of this call is left then."""
    domain.backupBegin(_xml({device: path}, fmt, kind), None, 0)
    try:
        _wait(domain, timeout)
    except BaseException:
        with contextlib.suppress(libvirt.libvirtError, NovaliteError):
            _end_job(domain)
        raise


def _device(xml: str, disk: str) -> str:
    for attached in compare.parse(xml).disks:
        if attached.source == disk:
            return attached.dev
    raise NovaliteError(f"the running domain has no disk {disk}")


def _xml(devices: t.Mapping[str, str], fmt: str, kind: str) -> str:
    """Return the XML of a backup of these disks to their paths; it names them, so that libvirt copies no other."""
    root = ElementTree.Element("domainbackup", mode="push")
    disks = ElementTree.SubElement(root, "disks")
    for device, path in devices.items():
        disk = ElementTree.SubElement(disks, "disk", name=device, backup="yes", type=kind)
        ElementTree.SubElement(disk, "target", {"dev" if kind == "block" else "file": path})
        ElementTree.SubElement(disk, "driver", type=fmt)
    return ElementTree.tostring(root, encoding="unicode")


def _wait(domain: libvirt.virDomain, timeout: float) -> None:
    none = libvirt.VIR_DOMAIN_JOB_NONE
    complaint = "the copy of its disk did not come to an end in time"
    wait_until(lambda: domain.jobStats(0).get("type", none) == none, timeout, complaint, POLL)
    done = domain.jobStats(libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED)
    if done.get("type") != libvirt.VIR_DOMAIN_JOB_COMPLETED or not done.get("success", True):
        raise NovaliteError(f"the copy of its disk failed: {done.get('errmsg') or 'QEMU does not say why'}")


def _end_job(domain: libvirt.virDomain) -> None:
    """Abort a backup job, if there is one. Raises NovaliteError if it does not end."""
    deadline = time.monotonic() + ABORT_TIMEOUT
    while True:
        job = domain.jobStats(0)
        if job.get("operation") != libvirt.VIR_DOMAIN_JOB_OPERATION_BACKUP or not job.get("type"):
            return
        if time.monotonic() >= deadline:
            raise NovaliteError("another copy of its disk is under way and does not end")
        with contextlib.suppress(libvirt.libvirtError):  # it ended in between
            domain.abortJob()
        time.sleep(POLL)
