# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A copy of a running guest's disk as it is at one moment: QEMU's backup job, which keeps what the guest overwrites
meanwhile until it was copied. The copy stands on no other file."""

from __future__ import annotations

import contextlib
import time
from xml.etree import ElementTree

from .._errors import NovaliteError
from .._host.waiting import wait_until
from . import compare, lifecycle

with contextlib.suppress(ImportError):  # connect() reports it
    import libvirt

POLL = 0.1  # seconds
ABORT_TIMEOUT = 60.0  # seconds


def backup(connection: libvirt.virConnect, uuid: str, disk: str, path: str, timeout: float) -> None:
    """Copy the disk that the active domain has at `disk` into the new file `path`, a qcow2 of its own. Raises
    NovaliteError, also after `timeout` seconds; no job is left then."""
    domain = lifecycle.present(connection, uuid)
    with lifecycle.clear(f"domain {uuid} cannot be copied"):
        device = _device(domain.XMLDesc(0), disk)
        _end_job(domain)  # of a run that was killed: whoever calls this has the instance for itself
        copy_disk(domain, device, path, timeout)


def copy_disk(
    domain: libvirt.virDomain, device: str, path: str, timeout: float, fmt: str = "qcow2", kind: str = "file"
) -> None:
    """Copy the disk `device` of an active domain to `path`, a "file" or a "block" device, in the format `fmt`. Raises
    NovaliteError, and libvirt's errors; no job of this call is left then."""
    domain.backupBegin(_xml(device, path, fmt, kind), None, 0)
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


def _xml(device: str, path: str, fmt: str, kind: str) -> str:
    """Return the XML of a backup of one disk, which it names, so that libvirt copies no other."""
    root = ElementTree.Element("domainbackup", mode="push")
    disk = ElementTree.SubElement(ElementTree.SubElement(root, "disks"), "disk", name=device, backup="yes", type=kind)
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
