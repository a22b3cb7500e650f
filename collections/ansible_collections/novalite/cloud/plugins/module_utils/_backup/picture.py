# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pictures of guests' screens: what QEMU writes (PPM, P6) as PNG, which browsers show."""

from __future__ import annotations

import re
import struct
import zlib

from .._errors import NovaliteError

LARGEST = 64 << 20  # bytes of a picture that is read
_PNG = b"\x89PNG\r\n\x1a\n"
_HEADER = re.compile(rb"P6\s+(\d{1,5})\s+(\d{1,5})\s+255\s", re.ASCII)
_RGB8 = 8, 2, 0, 0, 0  # bits of a sample, RGB, and the only methods that PNG has; lines one after the other


def png_of(ppm: bytes) -> bytes:
    """Return a picture of 8 bits a sample as PNG (ISO/IEC 15948). Raises NovaliteError for anything else."""
    header = _HEADER.match(ppm)
    width, height = (int(header[1]), int(header[2])) if header else (0, 0)
    if header is None or not width * height or len(ppm) - header.end() != width * height * 3:
        raise NovaliteError(f"the picture of {len(ppm)} bytes is not a PPM of 8 bits a sample: use a newer QEMU")
    line = width * 3
    lines = b"".join(
        b"\0" + ppm[start : start + line] for start in range(header.end(), len(ppm), line)
    )  # 0: unfiltered
    return b"".join(
        (
            _PNG,
            _chunk(b"IHDR", struct.pack(">II5B", width, height, *_RGB8)),
            _chunk(b"IDAT", zlib.compress(lines, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
