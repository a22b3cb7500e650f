# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Detection of a guest's root partition and of the kind of its file system, from the disk's bytes."""

from __future__ import annotations

import dataclasses
import json
import os
import struct
import typing as t

from .._errors import NovaliteError
from .._host.confined import run_confined
from .._host.files import closing

WHOLE_DISK = 0
INSPECT = "inspect"
PartitionChoice = t.Union[int, str, None]
BOOT_SIGNATURE = b"\x55\xaa"
SECTOR, TABLE = 512, 1 << 20  # bytes
EXTENDED, MAX_LOGICAL = (0x05, 0x0F, 0x85), 128

# systemd's Discoverable Partitions: root of x86, x86-64, ARM 64-bit, RISC-V 64-bit
ROOT_TYPES = frozenset(
    {
        "44479540-F297-41B2-9AF7-D131D5F0458A",
        "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709",
        "B921B045-1DF0-41C3-AF44-4C6F280D3FAE",
        "72EC70A6-CF74-40E6-BD49-4BDA08E8F224",
    }
)
BOOT_TYPE = "BC13C2FF-59E6-4262-A352-B275FD6F7172"  # likewise: /boot
# ... and Linux's older types of a file system, LVM and LUKS, which are named when one is found
LINUX_TYPES = ROOT_TYPES | {
    BOOT_TYPE,
    "83",
    "8E",
    "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
    "E6D6D379-F507-44C2-A23C-238F2A3DF928",
    "CA7D7CCB-63ED-4C53-861C-1742536059CC",
}

# name, offset in bytes, magic (libblkid's)
SIGNATURES = (
    ("XFS", 0, b"XFSB"),
    ("ext", 0x438, b"\x53\xef"),
    ("Btrfs", 0x10040, b"_BHRfS_M"),
    ("LVM", 0x218, b"LVM2 001"),
    ("LUKS encryption", 0, b"LUKS\xba\xbe"),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("F2FS", 0x400, b"\x10\x20\xf5\xf2"),
    ("SquashFS", 0, b"hsqs"),
    ("NTFS", 3, b"NTFS    "),
    ("FAT", 0x52, b"FAT32   "),
    ("FAT", 0x36, b"FAT16   "),
    ("ISO 9660", 0x8001, b"CD001"),
)
HEADER = 0x10048
MOUNTED = ("ext", "XFS")

EXT_HAS_JOURNAL = 0x4
EXT_NEEDS_RECOVERY = 0x4


@dataclasses.dataclass(frozen=True)
class Partition:
    """Entry of a partition table; `start` and `size` are in bytes."""

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


def find_partition(device: str, choice: PartitionChoice) -> Partition | None:
    """The partition of `device` (a file or block device) that holds the root file system; None: the whole disk.

    `choice` is Nova's inject_partition: N is that partition, 0 the whole disk, "inspect" (or None) what the partition
    table and the file systems' headers say; nothing is mounted to find out. Raises NovaliteError when that is not
    clear.
    """
    if choice == WHOLE_DISK:
        return None
    with open(device, "rb") as handle:
        first = handle.read(512)
        size = handle.seek(0, os.SEEK_END)
        # Every table of DOS or GPT kind has the signature; without it there is no need to start a program.
        table = _read_table(handle, size) if first[510:] == BOOT_SIGNATURE else []
        if isinstance(choice, int):
            return choose_partition(table, choice, size)
        headers = {
            entry.number: _header(handle, entry.start)
            for entry in table
            if entry.type in LINUX_TYPES and _lies_inside(entry, size)
        }
        # A boot loader in front of a bare file system ends in the same signature, and its code reads as a table.
        bare = not headers and signature(_header(handle, 0)) in MOUNTED
    return None if bare else inspect_partitions(table, headers, size)


def _read_table(disk: t.BinaryIO, size: int) -> list[Partition]:
    """The table of a disk of `size` bytes, as sfdisk reads it: from a copy of it, for it was not us who wrote it."""
    with closing(os.memfd_create("table", os.MFD_CLOEXEC)) as handle:
        os.ftruncate(handle, size)
        starts = [0, max(0, size - TABLE), *_chain(disk, size)]  # GPT has a second one in the end
        for start, length in zip(starts, (TABLE, TABLE, *[SECTOR] * len(starts))):
            disk.seek(start)
            os.pwrite(handle, disk.read(length), start)
        argv = ["sfdisk", "--json", "TABLE"]
        text = run_confined(argv, open_files={"TABLE": handle}, ok=(0, 1)).stdout
    return parse_table(text, f"/proc/self/fd/{handle}")


def _chain(disk: t.BinaryIO, size: int) -> t.Iterator[int]:
    """Yield the offsets (bytes) of logical partitions' tables: each names the next, from the extended partition on."""
    begin = place = 0
    for _link in range(MAX_LOGICAL):
        disk.seek(place)
        table = disk.read(SECTOR)[446:510]
        entries = (struct.unpack_from("<4xB3xI", table, offset) for offset in range(0, len(table) - 15, 16))
        start = next((start for kind, start in entries if kind in EXTENDED and start), 0)
        place = begin + start * SECTOR
        if not start or place + SECTOR > size:
            return
        begin = begin or place
        yield place


def parse_table(text: str, device: str) -> list[Partition]:
    """The partitions in the output of `sfdisk --json`; none when it found no table and said nothing."""
    if not text.strip():
        return []
    table = json.loads(text)["partitiontable"]
    sector = int(table.get("sectorsize", 512))
    return [
        Partition(
            int(entry["node"][len(device) :].lstrip("p")),
            int(entry["start"]) * sector,
            int(entry["size"]) * sector,
            str(entry["type"]).upper(),
        )
        for entry in table.get("partitions", [])
    ]


def choose_partition(table: t.Sequence[Partition], number: int, disk_size: int) -> Partition:
    """The partition with the number `number`."""
    for entry in table:
        if entry.number == number:
            if not _lies_inside(entry, disk_size):
                raise NovaliteError(f"partition {entry.number} lies outside the disk of {disk_size} bytes")
            return entry
    listed = ", ".join(str(entry.number) for entry in table) or "none"
    raise NovaliteError(
        f"the disk has no partition {number} (there are: {listed}); correct the image's property os_partition"
    )


def inspect_partitions(
    table: t.Sequence[Partition], headers: t.Mapping[int, bytes], disk_size: int
) -> Partition | None:
    """The one partition that can be the root file system; None for a disk without a table.

    `headers` are the first bytes of each Linux partition, by its number. A type that says "root" decides; else /boot is
    told apart by its type, its label or where it was last mounted, which ext file systems remember.
    """
    if not table:
        return None
    candidates = [entry for entry in table if entry.number in headers]
    # One alone is taken whatever it holds: what cannot be mounted is named then.
    known = [entry for entry in candidates if signature(headers[entry.number]) in MOUNTED] or candidates
    for chosen in (
        known,
        [entry for entry in known if entry.type in ROOT_TYPES],
        [entry for entry in known if not _is_boot(entry, headers[entry.number])],
        [entry for entry in known if _last_mounted(headers[entry.number]) == "/"],
    ):
        if len(chosen) == 1:
            return chosen[0]
    listed = ", ".join(f"{entry.number} ({signature(headers[entry.number]) or 'unknown'})" for entry in known) or "none"
    raise NovaliteError(
        f"which partition holds the root file system is not clear (Linux partitions: {listed}); "
        "give the image the property os_partition"
    )


def signature(header: bytes) -> str | None:
    """Name the content of a partition or disk by its first HEADER bytes; None for an unknown one."""
    for name, offset, magic in SIGNATURES:
        if header[offset : offset + len(magic)] == magic:
            return name
    return None


def identify_file_system(device: str) -> FileSystem:
    """Identify the file system of `device`. Only ext2/3/4 and XFS are mounted, never by a guess. Raises NovaliteError.

    The kernel's rarer file systems are not exposed to a guest's bytes. Btrfs is out since two overlays of one image
    have one file system id, and Linux then mixes up the devices.
    """
    with open(device, "rb") as handle:
        header = _header(handle, 0)
    kind = signature(header)
    if kind == "XFS":
        # Every overlay of one image carries the same UUID.
        return FileSystem("xfs", "nouuid", "nouuid,norecovery")
    if kind != "ext" or len(header) < 2048:
        raise NovaliteError(
            f"no ext2, ext3, ext4 or XFS file system is there{f' but {kind}' if kind else ''}; if the "
            "root file system is elsewhere, correct the image's property os_partition, else use a "
            "config drive"
        )
    return _ext(header[1024:2048])


def _header(handle: t.BinaryIO, offset: int) -> bytes:
    handle.seek(offset)
    return handle.read(HEADER)


def _lies_inside(entry: Partition, disk_size: int) -> bool:
    return entry.start > 0 and entry.size > 0 and entry.start + entry.size <= disk_size


def _is_boot(entry: Partition, header: bytes) -> bool:
    label = header[1024 + 0x78 : 1024 + 0x88] if signature(header) == "ext" else header[0x6C:0x78]
    return (
        entry.type == BOOT_TYPE
        or _last_mounted(header).endswith("/boot")
        or label.rstrip(b"\0").lower() in (b"boot", b"/boot")
    )


def _last_mounted(header: bytes) -> str:
    if signature(header) != "ext":
        return ""
    return header[1024 + 0x88 : 1024 + 0xC8].split(b"\0")[0].decode("ascii", "replace")


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
