# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks of other hypervisors, read from their bytes before QEMU opens them: VMDK, VHD, VHDX and VDI.

Each of these formats can name another file, by whose path QEMU would read the controller's own (CVE-2022-47951): a
parent, or the extents of a VMDK. What names one is refused. The layouts are VMware's Virtual Disk Format 5.0,
Microsoft's VHD 1.0, MS-VHDX, and QEMU's block/vdi.c.
"""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import struct
import typing as t

from .._disk.inspect import DEFAULT_LIMIT, SECTOR, format_of
from .._errors import ImageRefusedError, NovaliteError
from .._host.files import opened

DRIVERS = {"vmdk": "vmdk", "vhd": "vpc", "vhdx": "vhdx", "vdi": "vdi"}  # by disk_format (Glance's names): QEMU's
GLANCE_NAMES = {"vpc": "vhd"}  # by QEMU's, where they differ
NO_UUID = bytes(16)

VMDK_HEADER = struct.Struct("<4sIIQQQQIQQQ")  # up to overHead
VMDK_DESCRIPTOR = (512, 20 * SECTOR)  # where QEMU looks for one, whatever the header says (block/vmdk.c, DESC_SIZE)
VMDK_AT_END = (1 << 64) - 1  # of the grain directory: the header's copy at the end of the file counts
VMDK_FOOTER = 2 * SECTOR  # bytes before the end
VMDK_KINDS = ("monolithicSparse", "streamOptimized")
VMDK_MAX_DESCRIPTOR = 1 << 20  # bytes

VHD_FOOTER = struct.Struct(">8sIIQI4sI4sQQHBBII16s")
VHD_FIXED, VHD_DYNAMIC = 2, 3
VHD_HEADER = struct.Struct(">8sQQIIII16s")  # of a dynamic one

VHDX_REGIONS = 192 << 10
VHDX_TABLE = 64 << 10  # bytes of a table of regions, and of that of metadata
VHDX_METADATA_REGION = bytes.fromhex("06a27c8b90479a4bb8fe575f050f886e")
VHDX_FILE_PARAMETERS = bytes.fromhex("3767a1ca36fa434db3b633f0aa44e76b")
VHDX_VIRTUAL_SIZE = bytes.fromhex("2442a52f1bcd7648b2115dbed83bf4b8")
VHDX_PARENT = bytes.fromhex("2d5fd3a80bb34d45abf7d3d84834ab0c")
VHDX_HAS_PARENT = 1 << 1
VHDX_MAX_ENTRIES = 2047

VDI_HEADER = struct.Struct("<64sIIIII256sIIIIIIIQIIII16s16s16s16s")
VDI_VERSION = 0x00010001
VDI_KINDS = (1, 2)  # dynamic, fixed; the others are parts of a chain


@dataclasses.dataclass(frozen=True)
class ForeignDisk:
    """A disk that stands on its own: QEMU's `driver`, and what its guest saw, `virtual_size` bytes."""

    disk_format: str
    driver: str
    virtual_size: int


def inspect_foreign(path: str, disk_format: str, name: str, limit: int = DEFAULT_LIMIT) -> ForeignDisk:
    """Return what the file `path` holds, which must be `disk_format`, one of DRIVERS, and stand on its own.

    `limit` is the greatest virtual size in bytes, `name` what messages call the file. Raises ImageRefusedError.
    """
    try:
        with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:  # a FIFO would block the open
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise ImageRefusedError(f"{name} is not a regular file")
            detected = GLANCE_NAMES.get(shown := format_of(fd), shown)
            if detected != disk_format:
                raise ImageRefusedError(
                    f"{name} was declared {disk_format} but its content is {detected}: declare the right disk_format"
                )
            virtual_size = _READERS[disk_format](_File(fd, status.st_size, f"{name}, declared {disk_format},"))
    except OSError as error:
        raise NovaliteError(f"{name} cannot be read: {error.strerror}") from error
    if not 0 < virtual_size <= limit or virtual_size % SECTOR:
        raise ImageRefusedError(
            f"{name}, declared {disk_format}, has a virtual size of {virtual_size} bytes: "
            f"whole sectors of {SECTOR} bytes up to {limit} bytes are accepted"
        )
    return ForeignDisk(disk_format, DRIVERS[disk_format], virtual_size)


@dataclasses.dataclass(frozen=True)
class _File:
    fd: int
    size: int
    name: str

    def bad(self, what: str) -> ImageRefusedError:
        return ImageRefusedError(f"{self.name} {what}")

    def chained(self) -> ImageRefusedError:
        return self.bad("needs another file, its parent: merge the chain into one disk first")

    def read(self, offset: int, length: int) -> bytes:
        """`length` bytes at `offset`. Raises ImageRefusedError where the file has fewer."""
        if not 0 <= offset <= self.size - length:
            raise self.bad(f"is cut off: it has {self.size} bytes, and is to have more than {offset}")
        return os.pread(self.fd, length, offset)

    def unpack(self, layout: struct.Struct, offset: int) -> tuple[t.Any, ...]:
        return layout.unpack(self.read(offset, layout.size))


# --- VMDK: one file with its descriptor inside ------------------------------------------------------------------------


def _vmdk(file: _File) -> int:
    capacity, descriptor, length, directory = _vmdk_header(file, 0)
    places = [VMDK_DESCRIPTOR, (descriptor * SECTOR, length * SECTOR)]
    if directory == VMDK_AT_END:
        capacity, *_others = _vmdk_header(file, file.size - VMDK_FOOTER)
    for offset, size in places:
        _check_descriptor(file, _descriptor(file, offset, size))
    return capacity * SECTOR


def _vmdk_header(file: _File, offset: int) -> tuple[int, int, int, int]:
    """Capacity, offset and length of the descriptor, and offset of the grain directory, in sectors."""
    magic, _version, _flags, capacity, _grain, descriptor, length, *_rest, directory, _over = file.unpack(
        VMDK_HEADER, offset
    )
    if magic != b"KDMV":
        raise file.bad("is not one file with its descriptor inside: export it as streamOptimized or monolithicSparse")
    if not capacity:  # QEMU would follow the descriptor's paths
        raise file.bad("has a capacity of 0 sectors, so that its descriptor would name the disk")
    return capacity, descriptor, length, directory


def _descriptor(file: _File, offset: int, size: int) -> str:
    if size > VMDK_MAX_DESCRIPTOR:
        raise file.bad(f"has a descriptor of {size} bytes: at most {VMDK_MAX_DESCRIPTOR} are accepted")
    data = file.read(offset, min(size, max(0, file.size - offset)))
    return data.decode("latin-1")


def _check_descriptor(file: _File, text: str) -> None:
    lowered = text.lower()
    if "parentfilenamehint" in lowered:
        raise file.chained()
    for parent in re.findall(r"parentcid\s*=\s*([0-9a-z]*)", lowered):
        if parent != "ffffffff":
            raise file.chained()
    for kind in re.findall(r'createtype\s*=\s*"?([^"\r\n\0]*)', lowered):
        if kind not in map(str.lower, VMDK_KINDS):
            raise file.bad(f"is a disk of type {kind[:40]!r}: export it as one of {', '.join(VMDK_KINDS)}")
    extents = re.findall(r"^[ \t]*(?:rw|rdonly|noaccess)[ \t]+\d+[ \t]+(\w+)", lowered, re.MULTILINE)
    if len(extents) > 1 or any(kind != "sparse" for kind in extents):
        raise file.bad("consists of several files: export it as one (streamOptimized or monolithicSparse)")


# --- VHD --------------------------------------------------------------------------------------------------------------


def _vhd(file: _File) -> int:
    footer = file.read(file.size - SECTOR, SECTOR)
    if not footer.startswith(b"conectix"):
        raise file.bad("has no footer in its last sector: it is cut off, or has something after its end")
    (_cookie, _features, _version, data, *_who, size, cylinders, heads, sectors, kind, checksum, _uuid) = (
        VHD_FOOTER.unpack_from(footer)
    )
    if checksum != _sum_of(footer, 64):
        raise file.bad("has a footer with a wrong checksum: it is damaged")
    if kind == VHD_DYNAMIC:
        if file.read(0, SECTOR) != footer:  # QEMU reads the first one
            raise file.bad("has two footers that differ: it is damaged")
        header = file.read(data, 1024)
        magic, _next, _table, _version, _entries, _block, checksum, parent = VHD_HEADER.unpack_from(header)
        if magic != b"cxsparse" or checksum != _sum_of(header, 36):
            raise file.bad("has a damaged header")
        if parent != NO_UUID:
            raise file.chained()
    elif kind != VHD_FIXED:
        raise file.chained()
    elif size > file.size - SECTOR:
        raise file.bad(f"is cut off: its disk has {size} bytes, the file {file.size}")
    return int(max(size, cylinders * heads * sectors * SECTOR))  # QEMU takes either, by who made it


def _sum_of(data: bytes, at: int) -> int:
    """The checksum of a VHD's structure, which lies `at` this offset in it."""
    return ~(sum(data) - sum(data[at : at + 4])) & 0xFFFFFFFF


# --- VHDX -------------------------------------------------------------------------------------------------------------


def _vhdx(file: _File) -> int:
    regions = _entries(file, file.read(VHDX_REGIONS, VHDX_TABLE), b"regi", struct.Struct("<4sII4x"), "<16sQII")
    metadata = next((entry for entry in regions if entry[0] == VHDX_METADATA_REGION), None)
    if metadata is None:
        raise file.bad("has no metadata")
    start = metadata[1]
    table = file.read(start, VHDX_TABLE)
    items = _entries(file, table, b"metadata", struct.Struct("<8s2xH20x"), "<16sIII4x")
    places = {guid: (start + offset, length) for guid, offset, length, _flags in items}
    if VHDX_PARENT in places:
        raise file.chained()
    if VHDX_FILE_PARAMETERS not in places or VHDX_VIRTUAL_SIZE not in places:
        raise file.bad("lacks its parameters or its virtual size")
    _block, flags = file.unpack(struct.Struct("<II"), places[VHDX_FILE_PARAMETERS][0])
    if flags & VHDX_HAS_PARENT:
        raise file.chained()
    (size,) = file.unpack(struct.Struct("<Q"), places[VHDX_VIRTUAL_SIZE][0])
    return int(size)


def _entries(file: _File, table: bytes, magic: bytes, head: struct.Struct, entry: str) -> list[tuple[t.Any, ...]]:
    magic_there, *_checksum, count = head.unpack_from(table)
    if magic_there != magic or count > VHDX_MAX_ENTRIES:
        raise file.bad("has a damaged table of regions or metadata")
    layout = struct.Struct(entry)
    return [layout.unpack_from(table, 32 * number + head.size) for number in range(count)]


# --- VDI --------------------------------------------------------------------------------------------------------------


def _vdi(file: _File) -> int:
    fields = file.unpack(VDI_HEADER, 0)
    version, kind, size, uuids = fields[2], fields[4], fields[14], fields[19:]
    if version != VDI_VERSION:
        raise file.bad(f"has version {version:#x}, which is not known: export it by a VirtualBox of today")
    if kind not in VDI_KINDS or uuids[2] != NO_UUID or uuids[3] != NO_UUID:
        raise file.chained()
    return int(size)


_READERS: dict[str, t.Callable[[_File], int]] = {"vmdk": _vmdk, "vhd": _vhd, "vhdx": _vhdx, "vdi": _vdi}
