# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disk image headers, sound and otherwise, made byte by byte."""

from __future__ import annotations

import struct

MIB = 1 << 20
CLUSTER = 1 << 16
BACKING_FORMAT = 0xE2792ACA
DATA_FILE = 0x44415441
ENCRYPTION = 0x0537BE77
FEATURES = 0x6803F857


def qcow2(size: int = 64 * MIB, extensions: bytes = b"", backing: bytes = b"", **changes: int) -> bytes:
    """A sound, empty qcow2 file of four clusters: header, reference count table, its block, L1 table."""
    header = {
        "version": 3,
        "backing_offset": 0,
        "backing_size": len(backing),
        "cluster_bits": 16,
        "size": size,
        "crypt": 0,
        "l1_entries": -(-size // (512 * MIB)),
        "l1_offset": 3 * CLUSTER,
        "refcount_offset": CLUSTER,
        "refcount_clusters": 1,
        "snapshots": 0,
        "snapshots_offset": 0,
        "incompatible": 0,
        "compatible": 0,
        "autoclear": 0,
        "refcount_order": 4,
        "header_length": 104,
    }
    if backing:
        header["backing_offset"] = 4096
    header.update(changes)
    fields = list(header.values())
    data = b"QFI\xfb" + struct.pack(">IQIIQIIQQIIQ", *fields[:12])
    if header["version"] == 3:
        data += struct.pack(">QQQII", *fields[12:])
    return at(
        4 * CLUSTER,
        (0, data + extensions),
        (4096, backing),
        (CLUSTER, struct.pack(">Q", 2 * CLUSTER)),
        (2 * CLUSTER, struct.pack(">4H", 1, 1, 1, 1)),
    )


def extension(kind: int, data: bytes) -> bytes:
    return struct.pack(">II", kind, len(data)) + data.ljust(-(-len(data) // 8) * 8, b"\0")


def qcow2_bomb(size: int) -> bytes:
    """A sound qcow2 file of a few KB in which every cluster of `size` bytes is the same one."""
    covered = 512 * MIB
    entries = -(-size // covered)
    clusters = size // CLUSTER
    header = bytearray(qcow2(size))
    table, data = 4 * CLUSTER, 5 * CLUSTER
    header[3 * CLUSTER : 3 * CLUSTER + 8 * entries] = struct.pack(f">{entries}Q", *[table] * entries)
    # as many references as there are; no cluster is marked as having one owner alone
    header[2 * CLUSTER : 2 * CLUSTER + 12] = struct.pack(">6H", 1, 1, 1, 1, entries, min(clusters * entries, 65535))
    return bytes(header) + struct.pack(">Q", data) * (CLUSTER // 8) + b"x" * CLUSTER


def at(size: int, *pieces: tuple[int, bytes]) -> bytes:
    """`size` zero bytes with (offset, bytes) in them; an offset below zero counts from the end."""
    data = bytearray(size)
    for offset, piece in pieces:
        start = offset if offset >= 0 else size + offset
        data[start : start + len(piece)] = piece
    return bytes(data)


# What every format of QEMU's begins, or ends, with: (name, offset, bytes)
MAGICS: tuple[tuple[str, int, bytes], ...] = (
    ("qcow2", 0, b"QFI\xfb\0\0\0\3"),
    ("qcow", 0, b"QFI\xfb\0\0\0\1"),
    ("vmdk", 0, b"KDMV\1\0\0\0"),
    ("vmdk", 0, b"COWD"),
    ("vmdk", 0, b"# Disk DescriptorFile\nversion=1\n"),
    ("vmdk", 0, b'# a comment\n \nversion=1\nRW 8 FLAT "/etc/shadow" 0\n'),
    ("vhdx", 0, b"vhdxfile"),
    ("vpc", 0, b"conectix"),
    ("vpc", -512, b"conectix"),
    ("vpc", -511, b"conectix"),
    ("vdi", 0x40, b"\x7f\x10\xda\xbe"),
    ("luks", 0, b"LUKS\xba\xbe\0\1"),
    ("qed", 0, b"QED\0"),
    ("parallels", 0, b"WithoutFreeSpace"),
    ("parallels", 0, b"WithouFreSpacExt"),
    ("dmg", -512, b"koly"),
    ("bochs", 0, b"Bochs Virtual HD Image"),
    ("cloop", 0, b"#!/bin/sh\n#V2.0 Format\n"),
    ("cow", 0, b"OOOM"),
)
