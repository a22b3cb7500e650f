# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An empty qcow2 file on top of a raw base, written here: a process of qemu-img for each costs fifty times as much.

The bytes are those of `qemu-img create -f qcow2 -b BASE -F raw` (docs/interop/qcow2.txt), but for the table of feature
names, which nothing needs. Every value is ours; nothing is read from any image.
"""

from __future__ import annotations

import os
import struct

from .._errors import NovaliteError
from .._host.files import opened

CLUSTER_BITS = 16
CLUSTER = 1 << CLUSTER_BITS
SECTOR = 512
HEADER = struct.Struct(">4sIQIIQIIQQIIQQQQIIB7x")  # version 3 with the compression type
EXTENSION_BACKING_FORMAT = 0xE2792ACA
BACKING_FORMAT = b"raw"
MAX_BACKING_NAME = 1023  # bytes, QEMU's limit
COVERED = CLUSTER * (CLUSTER // 8)  # bytes of disk under one entry of the L1 table
MAX_VIRTUAL_SIZE = COVERED * (CLUSTER // 8) * 512  # 2 PiB: one block of reference counts covers its tables by far
REFCOUNT_TABLE, REFCOUNT_BLOCK, L1_TABLE = 1, 2, 3  # where they lie, in clusters


def write_overlay(path: str, base: str, virtual_size: int) -> None:
    """Create the file `path` (it must not exist, mode 0600), a disk of `virtual_size` bytes that reads as the raw file
    with the absolute path `base`; on the disk (fsync) on return. Raises NovaliteError, OSError."""
    name = os.fsencode(base)
    if not base.startswith("/") or len(name) > MAX_BACKING_NAME:
        raise NovaliteError(f"{base!r} cannot be a base: its path is not absolute or longer than {MAX_BACKING_NAME}")
    if virtual_size <= 0 or virtual_size % SECTOR or virtual_size > MAX_VIRTUAL_SIZE:
        raise NovaliteError(
            f"{path}: a disk cannot have {virtual_size} bytes: give a multiple of {SECTOR} up to {MAX_VIRTUAL_SIZE}"
        )
    l1_entries = -(-virtual_size // COVERED)
    clusters = L1_TABLE + -(-l1_entries * 8 // CLUSTER)
    with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW) as fd:
        os.ftruncate(fd, clusters * CLUSTER)  # empty tables are holes
        os.pwrite(fd, _header(name, virtual_size, l1_entries), 0)
        os.pwrite(fd, struct.pack(">Q", REFCOUNT_BLOCK * CLUSTER), REFCOUNT_TABLE * CLUSTER)
        os.pwrite(fd, struct.pack(">H", 1) * clusters, REFCOUNT_BLOCK * CLUSTER)
        os.fsync(fd)


def _header(backing_name: bytes, virtual_size: int, l1_entries: int) -> bytes:
    extensions = struct.pack(">II8s", EXTENSION_BACKING_FORMAT, len(BACKING_FORMAT), BACKING_FORMAT)
    extensions += struct.pack(">II", 0, 0)
    header = HEADER.pack(
        *(b"QFI\xfb", 3, HEADER.size + len(extensions), len(backing_name), CLUSTER_BITS, virtual_size),
        0,  # not encrypted
        *(l1_entries, L1_TABLE * CLUSTER, REFCOUNT_TABLE * CLUSTER, 1),
        *(0, 0),  # no snapshots
        *(0, 0, 0),  # no features
        4,  # reference counts of 2^4 bits
        HEADER.size,
        0,  # zlib
    )
    return header + extensions + backing_name
