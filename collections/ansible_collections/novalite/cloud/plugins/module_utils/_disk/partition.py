# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Which part of a disk holds a guest's root file system, and what kind of file system that is: from its bytes."""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import typing as t

from .._command import run
from .._errors import NovaliteError

WHOLE_DISK = 0
BOOT_SIGNATURE = b"\x55\xaa"

# systemd's Discoverable Partitions: root of x86, x86-64, ARM 64-bit, RISC-V 64-bit
ROOT_TYPES = frozenset({
    "44479540-F297-41B2-9AF7-D131D5F0458A", "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709",
    "B921B045-1DF0-41C3-AF44-4C6F280D3FAE", "72EC70A6-CF74-40E6-BD49-4BDA08E8F224",
})
LINUX_TYPES = ROOT_TYPES | {"83", "0FC63DAF-8483-4772-8E79-3D69D8477DE4"}

EXT_MAGIC = 0xEF53
EXT_HAS_JOURNAL = 0x4
EXT_NEEDS_RECOVERY = 0x4
XFS_MAGIC = b"XFSB"


@dataclasses.dataclass(frozen=True)
class Partition:
    """One entry of a partition table; `start` and `size` in bytes."""

    number: int
    start: int
    size: int
    type: str


@dataclasses.dataclass(frozen=True)
class FileSystem:
    """`options` are for a mount that may write, `read_only_options` for a device that cannot be written to."""

    type: str
    options: str
    read_only_options: str
    checks_scheduled: bool = False


def find_partition(device: str, wanted: int | None) -> Partition | None:
    """The partition of `device` (a file or block device) that holds the root file system; None: the whole disk.

    `wanted` is Nova's inject_partition: N is that partition, 0 the whole disk, None the only candidate there is.
    Raises NovaliteError when there is no such partition, or when there are several.
    """
    if wanted == WHOLE_DISK:
        return None
    with open(device, "rb") as handle:
        first = handle.read(512)
        size = handle.seek(0, os.SEEK_END)
    # Every table of DOS or GPT kind has the signature; without it there is no need to start a program.
    if first[510:] != BOOT_SIGNATURE:
        return choose_partition([], wanted, size)
    result = run(["sfdisk", "--json", device], ok=(0, 1))
    return choose_partition(parse_table(result.stdout, device), wanted, size)


def parse_table(text: str, device: str) -> list[Partition]:
    """The partitions in the output of `sfdisk --json`; none when it found no table and said nothing."""
    if not text.strip():
        return []
    table = json.loads(text)["partitiontable"]
    sector = int(table.get("sectorsize", 512))
    return [
        Partition(int(entry["node"][len(device):].lstrip("p")), int(entry["start"]) * sector,
                  int(entry["size"]) * sector, str(entry["type"]).upper())
        for entry in table.get("partitions", [])
    ]


def choose_partition(table: t.Sequence[Partition], wanted: int | None, disk_size: int) -> Partition | None:
    """The decision of find_partition, over plain data."""
    if wanted is None:
        if not table:
            return None
        chosen = [entry for entry in table if entry.type in ROOT_TYPES] \
            or [entry for entry in table if entry.type in LINUX_TYPES]
        if len(chosen) != 1:
            found = ", ".join(str(entry.number) for entry in chosen) or "none"
            raise NovaliteError(f"which partition holds the root file system is not clear (Linux partitions: {found}); "
                                "give the image the property os_partition")
    else:
        chosen = [entry for entry in table if entry.number == wanted]
        if not chosen:
            found = ", ".join(str(entry.number) for entry in table) or "none"
            raise NovaliteError(f"the disk has no partition {wanted} (there are: {found}); "
                                "correct the image's property os_partition")
    entry = chosen[0]
    if entry.start <= 0 or entry.size <= 0 or entry.start + entry.size > disk_size:
        raise NovaliteError(f"partition {entry.number} lies outside the disk of {disk_size} bytes")
    return entry


def identify_file_system(device: str) -> FileSystem:
    """What `device` holds: only ext2/3/4 and XFS are mounted.

    Mount never gets to guess, and the kernel's rarer file systems are not exposed to a guest's bytes. Btrfs is out
    for a reason of its own: two overlays of one image have one file system id, and Linux then mixes up the devices.
    Raises NovaliteError.
    """
    with open(device, "rb") as handle:
        head = handle.read(4096)
    if head[:4] == XFS_MAGIC:
        # Every overlay of one image carries the same UUID.
        return FileSystem("xfs", "nouuid", "nouuid,norecovery")
    if len(head) < 2048 or struct.unpack_from("<H", head, 1024 + 0x38)[0] != EXT_MAGIC:
        raise NovaliteError("no ext2, ext3, ext4 or XFS file system is there; if the root file system is elsewhere, "
                            "correct the image's property os_partition, else use a config drive")
    return _ext(head[1024:2048])


def _ext(superblock: bytes) -> FileSystem:
    (max_mounts,) = struct.unpack_from("<h", superblock, 0x36)
    (check_interval,) = struct.unpack_from("<I", superblock, 0x44)
    compatible, incompatible = struct.unpack_from("<II", superblock, 0x5C)
    (journal_inode,) = struct.unpack_from("<I", superblock, 0xE0)
    if compatible & EXT_HAS_JOURNAL and journal_inode == 0:
        # The superblock would name the device of the journal: one of the host's.
        raise NovaliteError("the ext file system keeps its journal on another device")
    # A superblock can ask the kernel to panic on the first error, which would be the host's kernel.
    options = "errors=remount-ro"
    replay = ",noload" if incompatible & EXT_NEEDS_RECOVERY else ""
    return FileSystem("ext4", options, options + replay, max_mounts > 0 or check_interval > 0)
