# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The page's own files: few, small, read once. Their address holds a version, so that browsers may keep them."""

from __future__ import annotations

import hashlib
import pathlib

DIRECTORY = pathlib.Path(__file__).parent / "static"
TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

FILES = {path.name: path.read_bytes() for path in sorted(DIRECTORY.iterdir()) if path.suffix in TYPES}
VERSION = hashlib.sha256(b"\0".join(FILES.values())).hexdigest()[:12]


def type_of(name: str) -> str:
    return TYPES[pathlib.PurePath(name).suffix]
