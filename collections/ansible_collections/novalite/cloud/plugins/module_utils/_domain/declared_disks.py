# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disks that a domain's XML declares, and how large their guest sees them. Runs on the hypervisor.

Read from the XML and the files themselves, not asked of libvirt: virDomainGetBlockInfo waits for whatever else is being
done to a running guest, and asks its QEMU.
"""

from __future__ import annotations

import contextlib
import os
import stat
import typing as t
from xml.etree import ElementTree

from .._disk.inspect import qcow2_size
from .compare import disk_of

GIB = 1 << 30


class DeclaredDisk(t.NamedTuple):
    """A writable disk as `<disk>` has it. `source` is null for one on the network, `format` is never probed."""

    dev: str
    bus: str | None
    source: str | None
    format: str


def declared_disks(root: ElementTree.Element) -> list[DeclaredDisk]:
    """The disks of a domain's XML, in its order; CD-ROMs, floppies and what is only read are none."""
    disks = (
        disk_of(element)
        for element in root.iterfind("devices/disk")
        if element.get("device", "disk") == "disk" and element.find("readonly") is None
    )
    # raw is libvirt's own default when none is declared, unless its operator allowed it to probe
    return [DeclaredDisk(disk.dev, disk.bus, disk.source, disk.format or "raw") for disk in disks]


def virtual_size(disk: DeclaredDisk) -> int:
    """Bytes that the guest sees, at least what the file takes; 0 for what is no file, or cannot be read."""
    if disk.source is None:
        return 0
    with contextlib.suppress(OSError):
        status = os.stat(disk.source)
        if stat.S_ISREG(status.st_mode):
            taken = max(status.st_size if disk.format == "raw" else 0, status.st_blocks * 512)
            return max(taken, qcow2_size(disk.source) if disk.format == "qcow2" else 0)
    return 0


def promised_gb(xml: str, directory: str) -> int:
    """GiB, rounded up, that the disks of this domain may come to take of the file system of `directory`: nothing for
    what lies on a block device, another file system or the network."""
    device = os.stat(directory).st_dev
    total = 0
    for disk in declared_disks(ElementTree.fromstring(xml)):
        with contextlib.suppress(OSError):
            if disk.source is not None and os.stat(disk.source).st_dev == device:
                total += virtual_size(disk)
    return -(-total // GIB)
