# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Real format of an image file, read from its bytes before any QEMU program opens it.

QEMU follows what a header tells it: a backing file, an external data file, a VMDK descriptor naming a host path.
Each of those has handed a host's file to a guest (CVE-2014-0134, CVE-2022-47951, CVE-2024-32498, CVE-2024-40767).
So the format is declared by whoever registered the image, and the bytes must agree; nothing is probed later.
The layout is QEMU's docs/interop/qcow2.txt.
"""

from __future__ import annotations

import dataclasses
import os
import stat
import struct

from .. import _likeness as likeness
from .._errors import ImageRefusedError, NovaliteError
from .._host.files import opened
from .._likeness import Content
from .iso import fault_of

ISO = "iso"
DISK_FORMATS = ("raw", "qcow2", ISO)
DRIVERS = {ISO: "raw"}  # by disk_format: QEMU's, where they differ
DEFAULT_LIMIT = 16 << 40  # bytes; a 1 PiB qcow2 is a file of 17 MB, and a raw base file must be able to hold it

QCOW2_MAGIC = b"QFI\xfb"
SECTOR = 512
HEADER_V2 = struct.Struct(">4sIQIIQIIQQIIQ")  # 72 bytes
HEADER_V3 = struct.Struct(">QQQII")  # 32 bytes more
COMPRESSION_OFFSET = 104
QCOW2_SIZE = struct.Struct(">4s20xQ")  # magic, and the virtual size
SNAPSHOT_BYTES = 40  # the least that the entry of one takes
# QEMU's own limits (block/qcow2.h): it refuses what lies beyond them, so we do it first.
MAX_L1_BYTES = 32 << 20  # QCOW_MAX_L1_SIZE
MAX_REFCOUNT_BYTES = 8 << 20  # QCOW_MAX_REFTABLE_SIZE
MAX_SNAPSHOTS = 65536  # QCOW_MAX_SNAPSHOTS
MIN_EXTENDED_CLUSTER_BITS = 14  # a subcluster, the 32nd part of a cluster, is a sector at least
MAX_EXTENSIONS = 64  # there are five kinds; each is one small read

INCOMPATIBLE_CORRUPT = 1 << 1
INCOMPATIBLE_DATA_FILE = 1 << 2
INCOMPATIBLE_COMPRESSION = 1 << 3
INCOMPATIBLE_EXTENDED_L2 = 1 << 4
# Dirty reference counts (bit 0) do no harm to a reader; bit 3 is the compression type, bit 4 extended L2 entries.
INCOMPATIBLE_KNOWN = 0b11111

EXTENSION_END = 0
EXTENSION_DATA_FILE = 0x44415441
EXTENSION_ENCRYPTION = 0x0537BE77

HEAD_BYTES = 64 << 10
# (name, offset, magic): every format that some QEMU program would recognise at the start of a "raw" file. ISO 9660
# is not among them: QEMU has no driver for it, the bytes are the disk.
HEAD_MAGICS: tuple[tuple[str, int, bytes], ...] = (
    ("qcow", 0, b"QFI"),
    ("vmdk", 0, b"KDMV"),
    ("vmdk", 0, b"COWD"),
    ("vmdk", 0, b"VMDK"),
    ("vhdx", 0, b"vhdxfile"),
    ("vpc", 0, b"conectix"),
    ("vdi", 0x40, b"\x7f\x10\xda\xbe"),
    ("luks", 0, b"LUKS\xba\xbe"),
    ("qed", 0, b"QED\0"),
    ("parallels", 0, b"WithoutFreeSpace"),
    ("parallels", 0, b"WithouFreSpacExt"),
    ("bochs", 0, b"Bochs Virtual HD Image"),
    ("cloop", 0, b"#!/bin/sh\n#V2.0 Format\n"),
    ("cow", 0, b"OOOM"),
)
# Fixed VHD and DMG images are recognised by their last sector.
TAIL_MAGICS: tuple[tuple[str, bytes], ...] = (("vpc", b"conectix"), ("dmg", b"koly"))


@dataclasses.dataclass(frozen=True)
class ImageInfo:
    """`virtual_size` is what a guest sees, `size` the file's own length, both in bytes."""

    disk_format: str
    virtual_size: int
    size: int


def inspect_image(
    path: str, disk_format: str, limit: int = DEFAULT_LIMIT, name: str | None = None, content: Content = "any"
) -> ImageInfo:
    """Return what the file `path` holds, which must be `disk_format`, one of DISK_FORMATS, and stand on its own.

    `limit` is the greatest virtual size in bytes, `name` what messages call the file, `content` what a raw file may
    hold: "any" thing, for a guest's disk is the guest's; what is "unpacked", so no archive; a "disk" that shows a sign.
    Raises NovaliteError, which says what was declared and what was found, for another format, a backing or data file,
    encryption, damage, a bomb.
    """
    name = name or f"image file '{path}'"
    if disk_format not in DISK_FORMATS:
        raise ImageRefusedError(
            f"{name}: disk_format '{disk_format}' is not accepted; use one of {', '.join(DISK_FORMATS)}"
        )
    try:
        with opened(path, os.O_RDONLY | os.O_NONBLOCK) as fd:  # a FIFO would block the open
            info = _inspect(fd, disk_format, name, content)
    except OSError as error:
        raise NovaliteError(f"{name} cannot be read: {error.strerror}") from error
    if info.virtual_size == 0:
        raise ImageRefusedError(f"{name}, declared {disk_format}, is an empty disk")
    if info.virtual_size > limit:
        raise ImageRefusedError(
            f"{name}, declared {disk_format}, has a virtual size of {info.virtual_size} bytes; "
            f"at most {limit} are accepted"
        )
    return info


def qcow2_size(path: str) -> int:
    """Virtual size in bytes as the header of `path` says, whatever it stands on; 0 for what is no qcow2 file."""
    with open(path, "rb") as handle:
        head = handle.read(QCOW2_SIZE.size)
    magic, size = QCOW2_SIZE.unpack(head.ljust(QCOW2_SIZE.size, b"\0"))
    return int(size) if magic == QCOW2_MAGIC else 0


def format_of(fd: int) -> str:
    """The format of QEMU's whose magic the file shows, by QEMU's name; "raw" for none. For messages, and to hold it
    against what was declared: nothing is opened as what it shows."""
    size = os.fstat(fd).st_size
    return _detect(os.pread(fd, HEAD_BYTES, 0), os.pread(fd, SECTOR, max(0, size - SECTOR)))


def _inspect(fd: int, disk_format: str, name: str, content: Content) -> ImageInfo:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):  # a device could be read for ever
        raise ImageRefusedError(f"{name} is not a regular file")
    size = status.st_size
    head = os.pread(fd, HEAD_BYTES, 0)
    detected = _detect(head, os.pread(fd, SECTOR, max(0, size - SECTOR)))
    if disk_format == ISO and detected == "raw":
        return _iso(fd, size, name)
    if detected == "raw" and (detected != disk_format or content != "any"):
        _refuse_unlike(likeness.head_of(fd), disk_format, name, content)
    if detected != disk_format:
        raise ImageRefusedError(
            f"{name} was declared {disk_format} but its content is {detected}; "
            f"declare the right disk_format, or convert it to raw or qcow2 first"
        )
    if detected == "qcow2":
        return _Qcow2(name, fd, head, size).info()
    # QEMU shows a guest whole sectors; a last half one of a raw file reads as zeros.
    return ImageInfo("raw", -(-size // SECTOR) * SECTOR, size)


def _iso(fd: int, size: int, name: str) -> ImageInfo:
    packed = likeness.is_packed(likeness.head_of(fd))
    fault = f"is {packed}" if packed else fault_of(fd, size)
    if fault is not None:
        raise ImageRefusedError(f"{name}, declared {ISO}, {fault}")
    return ImageInfo(ISO, -(-size // SECTOR) * SECTOR, size)


def _refuse_unlike(head: bytes, disk_format: str, name: str, content: Content) -> None:
    """Raise ImageRefusedError for a file that begins with `head`, has no format of QEMU's, and seems to be no disk."""
    if packed := likeness.is_packed(head):
        raise ImageRefusedError(f"{name}, declared {disk_format}, is {packed}")
    if likeness.shows_disk(head) or not head or (disk_format == "raw" and content != "disk"):
        return
    if disk_format != "raw":
        what = likeness.is_no_disk(head) or "raw, and no disk either"
        raise ImageRefusedError(f"{name} was declared {disk_format} but its content is {what}")
    what = likeness.is_no_disk(head) or "no disk: it has no partition table, boot signature or file system"
    raise ImageRefusedError(f"{name}, declared raw, is {what}. If it is meant, say so with any_content: true")


def _detect(head: bytes, tail: bytes) -> str:
    if head.startswith(QCOW2_MAGIC) and head[4:8] in (b"\0\0\0\2", b"\0\0\0\3"):
        return "qcow2"
    for name, offset, magic in HEAD_MAGICS:
        if head[offset : offset + len(magic)] == magic:
            return name
    if _is_vmdk_descriptor(head):
        return "vmdk"
    for name, magic in TAIL_MAGICS:
        # A VHD written by old Microsoft tools has a footer of 511 bytes.
        if tail.startswith(magic) or tail[1:].startswith(magic):
            return name
    return "raw"


def _is_vmdk_descriptor(head: bytes) -> bool:
    """Detect a VMDK descriptor like QEMU's vmdk_probe, by `version=` after comments; it names other files by path."""
    if b"# disk descriptorfile" in head[:1024].lower():
        return True
    for line in head[:4096].split(b"\n"):
        text = line.strip()
        if text and not text.startswith(b"#"):
            return text.lower().startswith(b"version=")
    return False


class _Qcow2:
    """Header of a qcow2 file, whose checks each name what is wrong with it."""

    def __init__(self, name: str, fd: int, head: bytes, size: int) -> None:
        self.name = name
        self.fd = fd
        self.head = head
        self.size = size
        if len(head) < HEADER_V2.size:
            raise self._bad("is cut off inside the header")
        (
            _magic,
            self.version,
            self.backing_offset,
            self.backing_size,
            self.cluster_bits,
            self.virtual_size,
            self.crypt_method,
            self.l1_entries,
            self.l1_offset,
            self.refcount_offset,
            self.refcount_clusters,
            self.snapshots,
            self.snapshots_offset,
        ) = HEADER_V2.unpack_from(head)
        self.incompatible = 0
        self.refcount_order = 4
        self.header_length = HEADER_V2.size
        if self.version == 3:
            if len(head) < HEADER_V2.size + HEADER_V3.size:
                raise self._bad("is cut off inside the header")
            self.incompatible, _compatible, _autoclear, self.refcount_order, self.header_length = HEADER_V3.unpack_from(
                head, HEADER_V2.size
            )

    def _bad(self, what: str) -> ImageRefusedError:
        return ImageRefusedError(f"{self.name}, declared qcow2, {what}")

    def info(self) -> ImageInfo:
        self._check_references()
        self._check_geometry()
        self._check_extensions()
        return ImageInfo("qcow2", self.virtual_size, self.size)

    def _check_references(self) -> None:
        if self.backing_offset or self.backing_size:
            raise self._bad("names a backing file; flatten it first (qemu-img convert -f qcow2 -O qcow2)")
        if self.crypt_method:
            raise self._bad(f"is encrypted (method {self.crypt_method})")
        if self.incompatible & INCOMPATIBLE_DATA_FILE:
            raise self._bad("keeps its data in an external file; flatten it first (qemu-img convert -f qcow2 -O qcow2)")
        if self.incompatible & INCOMPATIBLE_CORRUPT:
            raise self._bad("is marked as corrupt; repair it first (qemu-img check -f qcow2 -r all)")
        if self.incompatible & ~INCOMPATIBLE_KNOWN:
            raise self._bad(f"needs unknown features (incompatible_features {self.incompatible:#x})")

    def _check_geometry(self) -> None:
        if not 9 <= self.cluster_bits <= 21:
            raise self._bad(f"has an impossible cluster size (2^{self.cluster_bits} bytes)")
        if self.refcount_order > 6:
            raise self._bad(f"has an impossible reference count width (2^{self.refcount_order} bits)")
        if self.version == 3 and (self.header_length < HEADER_V2.size + HEADER_V3.size or self.header_length % 8):
            raise self._bad(f"has an impossible header length ({self.header_length} bytes)")
        cluster = 1 << self.cluster_bits
        if self.header_length > min(cluster, len(self.head)):
            raise self._bad(f"has an impossible header length ({self.header_length} bytes)")
        if self.incompatible & INCOMPATIBLE_EXTENDED_L2 and self.cluster_bits < MIN_EXTENDED_CLUSTER_BITS:
            raise self._bad(f"has subclusters smaller than a sector (clusters of 2^{self.cluster_bits} bytes)")
        self._check_compression()
        if self.virtual_size % SECTOR or self.virtual_size >= 1 << 63:
            raise self._bad(f"has an impossible virtual size ({self.virtual_size} bytes)")
        entry = 16 if self.incompatible & INCOMPATIBLE_EXTENDED_L2 else 8
        covered = cluster * (cluster // entry)  # bytes of disk under one L1 entry
        if self.l1_entries * 8 > MAX_L1_BYTES or self.l1_entries * covered < self.virtual_size:
            raise self._bad(
                f"has an L1 table of {self.l1_entries} entries, which does not fit its virtual size "
                f"of {self.virtual_size} bytes"
            )
        if not 0 < self.refcount_clusters * cluster <= MAX_REFCOUNT_BYTES:
            raise self._bad(f"has a reference count table of {self.refcount_clusters} clusters")
        self._check_table("L1 table", self.l1_offset, self.l1_entries * 8, cluster)
        self._check_table("reference count table", self.refcount_offset, self.refcount_clusters * cluster, cluster)
        if self.snapshots > MAX_SNAPSHOTS:
            raise self._bad(f"has {self.snapshots} snapshots")
        self._check_table("table of snapshots", self.snapshots_offset, self.snapshots * SNAPSHOT_BYTES, cluster)

    def _check_compression(self) -> None:
        """The byte after the header's first 104, if the header is that long: 0 zlib, 1 zstd, which has its bit."""
        known = self.version == 3 and self.header_length > COMPRESSION_OFFSET and len(self.head) > COMPRESSION_OFFSET
        kind = self.head[COMPRESSION_OFFSET] if known else 0
        if kind > 1 or (kind == 1) != bool(self.incompatible & INCOMPATIBLE_COMPRESSION):
            raise self._bad(f"has an impossible compression type ({kind})")

    def _check_table(self, what: str, offset: int, length: int, cluster: int) -> None:
        if length and (offset == 0 or offset % cluster or offset + length > self.size):
            raise self._bad(f"has its {what} at {offset} ({length} bytes), outside its {self.size} bytes")

    def _check_extensions(self) -> None:
        end = min(1 << self.cluster_bits, self.size)  # more than has been read, with large clusters
        position = self.header_length
        for _number in range(MAX_EXTENSIONS):
            start = self._read(position, 8)
            if position + 8 > end or len(start) < 8:
                return
            kind, length = struct.unpack(">II", start)
            if kind == EXTENSION_END:
                return
            if kind == EXTENSION_DATA_FILE:
                raise self._bad("names an external data file; flatten it first (qemu-img convert -f qcow2 -O qcow2)")
            if kind == EXTENSION_ENCRYPTION:
                raise self._bad("is encrypted (it carries an encryption header)")
            if length > end - position - 8:
                raise self._bad(f"has a header extension of {length} bytes that leaves its first cluster")
            position += 8 + -(-length // 8) * 8
        raise self._bad(f"has more than {MAX_EXTENSIONS} header extensions")

    def _read(self, position: int, length: int) -> bytes:
        if position + length <= len(self.head):
            return self.head[position : position + length]
        return os.pread(self.fd, length, position)
