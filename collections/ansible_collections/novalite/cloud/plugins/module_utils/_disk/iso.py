# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""ISO images, judged by the descriptors that a CD begins with: ISO 9660 (ECMA-119) and UDF (ECMA-167).

No directory and no file in one is read: a host gives the bytes to a guest, as a CD.
"""

from __future__ import annotations

import os
import struct
import typing as t

BLOCK = 2048  # bytes
FIRST = 16  # block of the first descriptor
MOST = 64  # descriptors; a CD has a handful
ISO_9660, UDF = b"CD001", (b"NSR02", b"NSR03")
BESIDE = (b"BEA01", b"TEA01", b"BOOT2", b"CDW02")  # identifiers that stand beside those of UDF
PRIMARY, END = 1, 255  # types of ISO 9660's descriptors
ANCHOR = 256  # block of UDF's anchor
ANCHOR_TAG = 2
_TAG = struct.Struct("<HHBBHHHI")  # identifier, version, checksum, -, serial, CRC, its length, block


def fault_of(fd: int, size: int) -> str | None:
    """Return why the file `fd` of `size` bytes is no whole ISO image, worded to follow its name; None: it is one."""
    identifiers = []
    for number in range(MOST):
        block = os.pread(fd, BLOCK, (FIRST + number) * BLOCK)
        identifier = block[1:6]
        if identifier == ISO_9660:
            if len(block) < BLOCK:
                return "is cut off inside its descriptors"
            if block[0] == PRIMARY and (fault := _fault_of_volume(block, size)):
                return fault
        elif identifier not in (*UDF, *BESIDE):
            break
        identifiers.append((identifier, block[0]))
    else:
        return f"has more than {MOST} descriptors: it is damaged, or made to do harm"
    if any(identifier in UDF for identifier, _type in identifiers):
        return _fault_of_anchor(os.pread(fd, BLOCK, ANCHOR * BLOCK), size)
    if (ISO_9660, PRIMARY) not in identifiers:
        return "has no descriptor of a CD, neither of ISO 9660 nor of UDF: declare the right disk_format"
    if (ISO_9660, END) not in identifiers:
        return "has descriptors without an end: it is damaged"
    return None


def _fault_of_volume(block: bytes, size: int) -> str | None:
    """The primary descriptor says each number twice, in both orders of bytes."""
    numbers: list[int] = []
    for offset, form in ((80, "I"), (128, "H")):
        (little,), (big,) = (
            struct.unpack_from(order + form, block, at)
            for order, at in (("<", offset), (">", offset + struct.calcsize(form)))
        )
        if little != big:
            return f"has a descriptor that says {little} and {big} of the same: it is damaged"
        numbers.append(little)
    blocks, block_size = numbers
    if block_size not in (512, 1024, BLOCK) or not blocks:
        return f"has an impossible size of {blocks} blocks of {block_size} bytes"
    return _fault_of_length(blocks * block_size, size)


def _fault_of_anchor(block: bytes, size: int) -> str | None:
    if len(block) < BLOCK:
        return "is cut off before UDF's anchor"
    tag, _version, checksum, *_rest, place = _TAG.unpack_from(block)
    if tag != ANCHOR_TAG or place != ANCHOR or checksum != (sum(block[:16]) - block[4]) & 0xFF:
        return "has a damaged anchor of UDF"
    ends = (length + start * BLOCK for length, start in _extents(block))
    return _fault_of_length(max(ends), size)


def _extents(block: bytes) -> t.Iterator[tuple[int, int]]:
    """Length in bytes and first block of the two sequences of descriptors."""
    return struct.iter_unpack("<II", block[16:32])


def _fault_of_length(needed: int, size: int) -> str | None:
    return f"is cut off: its volume has {needed} bytes, the file {size}" if needed > size else None
