# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images to put into a cache, and looks at what became of them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk.cache import Image, ensure_images

MIB = 1 << 20
GIB = 1 << 30
needs_qemu_img = pytest.mark.skipif(not (shutil.which("qemu-img") and shutil.which("prlimit")), reason="no qemu-img")


def qcow2(tmp_path: pathlib.Path, size: str = "8M") -> Image:
    raw, path = tmp_path / "content.raw", tmp_path / "image.qcow2"
    raw.write_bytes(b"\1" * MIB)
    subprocess.run(["qemu-img", "resize", "-q", "-f", "raw", str(raw), size], check=True)
    subprocess.run(["qemu-img", "convert", "-q", "-f", "raw", "-O", "qcow2", str(raw), str(path)], check=True)
    return image_of(path, disk_format="qcow2", virtual_size=raw.stat().st_size)


def image_of(path: pathlib.Path, **changes: t.Any) -> Image:
    data = path.read_bytes()
    return Image(f"sha256:{hashlib.sha256(data).hexdigest()}", str(path), len(data), **changes)


def push(image: Image, state: str) -> dict[str, t.Any]:
    """As the action plug-in does it."""
    first = ensure_images([image], state)
    (missing,) = first["missing"]
    shutil.copyfile(image.source, missing["staged"])
    return ensure_images([dataclasses.replace(image, staged=missing["staged"])], state)


def files(state: str) -> list[str]:
    """The names in the cache, without the ending of its files."""
    return sorted(name.replace(".raw", "", 1) for name in os.listdir(os.path.join(state, "_base")))


def info(path: str) -> dict[str, t.Any]:
    output = subprocess.run(["qemu-img", "info", "-f", "qcow2", "--output=json", path], check=True, capture_output=True)
    return t.cast("dict[str, t.Any]", json.loads(output.stdout))
