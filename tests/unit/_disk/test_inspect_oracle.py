# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Our inspector beside OpenStack's own (oslo.utils): the same format, and nothing accepted that theirs finds unsafe."""

from __future__ import annotations

import logging
import pathlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_utils.imageutils import format_inspector

from ansible_collections.novalite.cloud.plugins.module_utils._disk.inspect import inspect_image
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.support.examples import part_of
from tests.unit._disk.hostile.headers import CLUSTER, DATA_FILE, FEATURES, MAGICS, MIB, at, extension, qcow2
from tests.unit._disk.hostile.images import IMAGES, HostileImage
from tests.unit._disk.state import needs_qemu_img

# theirs takes extended L2 entries, a feature of QEMU 5.2, for an unknown one, and in a header of version 2, without
# features, what stands in their place for them
THEIR_ERRORS = (("incompatible", 1 << 4), ("incompatible", 1 << 4 | 1), ("version", 2))
MBR_ENTRY = struct.pack("<B3sB3sII", 0x80, b"", 0x83, b"", 64, 1024)
# what theirs calls the content of a disk, which QEMU has no driver for
CONTENT = {"gpt": "raw", "iso": "raw"}
# formats that theirs does not know: a host's QEMU does
UNKNOWN = {"qcow", "parallels", "dmg", "bochs", "cloop", "cow"}


def ours(path: pathlib.Path, declared: str) -> int | None:
    """The virtual size; None for a refusal."""
    try:
        return inspect_image(str(path), declared).virtual_size
    except NovaliteError:
        return None


def theirs(path: pathlib.Path, declared: str) -> int | None:
    logging.disable(logging.CRITICAL)
    try:
        inspector = format_inspector.detect_file_format(str(path))
        inspector.safety_check()
        if CONTENT.get(str(inspector), str(inspector)) != declared:
            return None
        return path.stat().st_size if declared == "raw" else inspector.virtual_size
    except (format_inspector.ImageFormatError, format_inspector.SafetyCheckFailed, struct.error):
        return None
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize(
    ("declared", "data"),
    [
        ("qcow2", qcow2()),
        ("qcow2", qcow2(version=2)),
        ("qcow2", qcow2(size=1 << 40)),
        ("qcow2", qcow2(extensions=extension(FEATURES, b"f" * 384))),
        ("raw", bytes(MIB)),
        ("raw", at(MIB, (446, MBR_ENTRY), (510, b"\x55\xaa"))),
        ("raw", at(MIB, (0x8001, b"CD001"))),
        ("raw", at(MIB, (1080, b"\x53\xef"))),
    ],
)
def test_both_accept_what_is_sound(tmp_path: pathlib.Path, declared: str, data: bytes) -> None:
    path = tmp_path / "image"
    path.write_bytes(data)
    assert ours(path, declared) == theirs(path, declared) is not None


@needs_qemu_img
@pytest.mark.parametrize("hostile", IMAGES, ids=lambda image: image.name)
def test_what_theirs_finds_unsafe_so_does_ours(tmp_path: pathlib.Path, hostile: HostileImage) -> None:
    path = tmp_path / "image"
    hostile.write(path)
    if theirs(path, hostile.declared) is None:
        assert ours(path, hostile.declared) is None


@pytest.mark.parametrize(("name", "offset", "magic"), MAGICS)
def test_both_recognise_the_formats_that_both_know(
    tmp_path: pathlib.Path, name: str, offset: int, magic: bytes
) -> None:
    path = tmp_path / "image"
    path.write_bytes(at(MIB, (offset, magic)))
    assert ours(path, "raw") is None
    if name not in UNKNOWN and offset >= 0 and not magic.startswith((b"COWD", b"# ")):
        assert theirs(path, "raw") is None


@settings(max_examples=part_of(300), deadline=None)
@given(
    field=st.sampled_from(["version", "backing_offset", "backing_size", "crypt", "incompatible", "cluster_bits"]),
    value=st.one_of(st.integers(0, 64), st.integers(0, 63).map(lambda bit: 1 << bit)),
    kind=st.sampled_from([FEATURES, DATA_FILE]),
)
def test_headers_that_theirs_refuses_are_refused(
    tmp_path_factory: pytest.TempPathFactory, field: str, value: int, kind: int
) -> None:
    if (field, value) in THEIR_ERRORS:
        return
    wide = field in ("backing_offset", "incompatible")
    value %= 1 << (64 if wide else 32)
    path = tmp_path_factory.getbasetemp() / "oracle"
    path.write_bytes(qcow2(extensions=extension(kind, b"name"), **{field: value}).ljust(5 * CLUSTER, b"\0"))  # type: ignore[arg-type]
    if theirs(path, "qcow2") is None:
        assert ours(path, "qcow2") is None
