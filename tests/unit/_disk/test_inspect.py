# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The image inspector against headers made here and images made by qemu-img."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._disk.inspect import ImageInfo, inspect_image
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.support.examples import part_of
from tests.unit._disk.hostile.headers import MAGICS, at, extension, qcow2

MIB = 1 << 20
needs_qemu_img = pytest.mark.skipif(shutil.which("qemu-img") is None, reason="qemu-img is not installed")


@pytest.fixture
def image(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "image"


def test_sound_qcow2(image: pathlib.Path) -> None:
    image.write_bytes(qcow2())
    assert inspect_image(str(image), "qcow2") == ImageInfo("qcow2", 64 * MIB, 4 << 16)


def test_version_two_has_no_feature_bits(image: pathlib.Path) -> None:
    image.write_bytes(qcow2(version=2))
    assert inspect_image(str(image), "qcow2").virtual_size == 64 * MIB


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 1}, "content is qcow"),
        ({"version": 4}, "content is qcow"),
        ({"backing_offset": 200, "backing_size": 11}, "names a backing file"),
        ({"backing_offset": 200}, "names a backing file"),
        ({"backing_size": 11}, "names a backing file"),
        ({"crypt": 1}, "is encrypted"),
        ({"crypt": 2}, "is encrypted"),
        ({"incompatible": 2}, "marked as corrupt"),
        ({"incompatible": 4}, "external file"),
        ({"incompatible": 32}, "unknown features"),
        ({"incompatible": 1 << 63}, "unknown features"),
        ({"cluster_bits": 8}, "cluster size"),
        ({"cluster_bits": 22}, "cluster size"),
        ({"cluster_bits": 0xFFFFFFFF}, "cluster size"),
        ({"refcount_order": 7}, "reference count width"),
        ({"header_length": 72}, "header length"),
        ({"header_length": 105}, "header length"),
        ({"header_length": 1 << 20}, "header length"),
        ({"l1_entries": 0}, "L1 table"),
        ({"l1_entries": 1 << 30}, "L1 table"),
        ({"l1_offset": 4 << 16}, "L1 table"),
        ({"l1_offset": (3 << 16) + 8}, "L1 table"),
        ({"l1_offset": 0}, "L1 table"),
        ({"refcount_offset": 1 << 40}, "reference count table"),
        ({"size": 0}, "empty disk"),
        ({"size": 1000}, "virtual size"),
        ({"size": 1 << 63, "l1_entries": 1 << 20}, "virtual size"),
        ({"snapshots": 65537, "snapshots_offset": 3 << 16}, "65537 snapshots"),
        ({"snapshots": 1}, "table of snapshots"),
        ({"snapshots": 1, "snapshots_offset": (3 << 16) + 8}, "table of snapshots"),
        ({"snapshots": 2000, "snapshots_offset": 3 << 16}, "table of snapshots"),
        ({"refcount_clusters": 0}, "reference count table of 0"),
        ({"refcount_clusters": 129}, "reference count table of 129"),
        ({"refcount_clusters": 4}, "reference count table at"),
        ({"incompatible": 16, "cluster_bits": 13, "l1_entries": 64}, "subclusters"),
        ({"incompatible": 8}, "compression type"),
        ({"size": 17 << 40, "l1_entries": 17 << 11, "l1_offset": 1 << 16}, "virtual size of"),
    ],
)
def test_refused_headers(image: pathlib.Path, change: dict[str, int], reason: str) -> None:
    data = qcow2(**change)  # type: ignore[arg-type]
    image.write_bytes(data.ljust(20 << 16, b"\0") if change.get("size") == 17 << 40 else data)
    with pytest.raises(NovaliteError, match=reason) as caught:
        inspect_image(str(image), "qcow2")
    assert str(image) in str(caught.value) and "qcow2" in str(caught.value)


@pytest.mark.parametrize(
    ("extensions", "reason"),
    [
        (extension(0x44415441, b"/etc/shadow"), "external data file"),
        (extension(0x6803F857, b"x" * 48) + extension(0x44415441, b"/etc/shadow"), "external data file"),
        (extension(0x0537BE77, b"x" * 16), "encryption"),
        (struct.pack(">II", 0x6803F857, 0xFFFFFFF0), "header extension"),
        (extension(0x6803F857, b"") * 64, "more than 64 header extensions"),
    ],
)
def test_refused_extensions(image: pathlib.Path, extensions: bytes, reason: str) -> None:
    image.write_bytes(qcow2(extensions=extensions))
    with pytest.raises(NovaliteError, match=reason):
        inspect_image(str(image), "qcow2")


@pytest.mark.parametrize(
    ("header_length", "kind", "incompatible", "good"),
    [
        (112, 0, 0, True),
        (112, 1, 8, True),
        (112, 1, 0, False),
        (112, 0, 8, False),
        (112, 2, 8, False),
        (104, 1, 0, True),
    ],
)
def test_the_compression_type_agrees_with_its_bit(
    image: pathlib.Path, header_length: int, kind: int, incompatible: int, good: bool
) -> None:
    type_or_extension = struct.pack(">B7x", kind) if header_length > 104 else extension(0x6803F857, b"\1")
    image.write_bytes(qcow2(header_length=header_length, incompatible=incompatible, extensions=type_or_extension))
    if good:
        assert inspect_image(str(image), "qcow2")
        return
    with pytest.raises(NovaliteError, match="compression type"):
        inspect_image(str(image), "qcow2")


@pytest.mark.parametrize("length", [60_000, 70_000, 1_000_000])
def test_extensions_are_followed_through_a_large_first_cluster(image: pathlib.Path, length: int) -> None:
    """The header's cluster has up to 2 MiB: what names a file may stand behind what was read at first."""
    large = {"cluster_bits": 21, "refcount_offset": 1 << 21, "l1_offset": 2 << 21}
    filler = extension(0x6803F857, b"x" * length)
    data = qcow2(extensions=filler, **large)  # type: ignore[arg-type]
    image.write_bytes(data.ljust(3 << 21, b"\0"))
    assert inspect_image(str(image), "qcow2").virtual_size == 64 * MIB
    hidden = bytearray(data.ljust(3 << 21, b"\0"))
    name = extension(0x44415441, b"/etc/shadow")
    hidden[104 + len(filler) : 104 + len(filler) + len(name)] = name
    image.write_bytes(hidden)
    with pytest.raises(NovaliteError, match="external data file"):
        inspect_image(str(image), "qcow2")


def test_the_data_file_extension_is_found_in_version_two(image: pathlib.Path) -> None:
    image.write_bytes(qcow2(version=2, extensions=extension(0x44415441, b"/etc/shadow")))
    with pytest.raises(NovaliteError, match="external data file"):
        inspect_image(str(image), "qcow2")


@pytest.mark.parametrize(("name", "offset", "magic"), MAGICS)
def test_raw_that_some_program_would_take_for_something_else(
    image: pathlib.Path, name: str, offset: int, magic: bytes
) -> None:
    image.write_bytes(at(MIB, (offset, magic)))
    with pytest.raises(NovaliteError, match=f"declared raw but its content is {name};"):
        inspect_image(str(image), "raw")


def test_raw_with_a_partition_table_or_iso(image: pathlib.Path) -> None:
    data = bytearray(MIB)
    data[510:512] = b"\x55\xaa"
    data[0x8001:0x8006] = b"CD001"
    image.write_bytes(data)
    assert inspect_image(str(image), "raw") == ImageInfo("raw", MIB, MIB)


def test_raw_is_rounded_up_to_sectors(image: pathlib.Path) -> None:
    image.write_bytes(b"x" * 513)
    assert inspect_image(str(image), "raw") == ImageInfo("raw", 1024, 513)


def test_size_limit_is_the_callers(image: pathlib.Path) -> None:
    image.write_bytes(qcow2())
    assert inspect_image(str(image), "qcow2", limit=64 * MIB)
    with pytest.raises(NovaliteError, match="at most 67108863 are accepted"):
        inspect_image(str(image), "qcow2", limit=64 * MIB - 1)


def test_no_disk_at_all(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    for path, reason in (
        ("fifo", "not a regular file"),
        (".", "not a regular file"),
        ("none", "cannot be read"),
        ("empty", "empty disk"),
    ):
        with pytest.raises(NovaliteError, match=reason):
            inspect_image(str(tmp_path / path), "raw")
    with pytest.raises(NovaliteError, match="disk_format 'vmdk' is not accepted"):
        inspect_image(str(tmp_path / "empty"), "vmdk")
    (tmp_path / "short").write_bytes(b"QFI\xfb\0\0\0\3")
    with pytest.raises(NovaliteError, match="cut off"):
        inspect_image(str(tmp_path / "short"), "qcow2")


@settings(max_examples=part_of(300), deadline=None)
@given(data=st.binary(max_size=400), disk_format=st.sampled_from(["raw", "qcow2"]))
def test_any_bytes_are_judged_and_never_crash(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, disk_format: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(b"QFI\xfb\0\0\0\3" + data if disk_format == "qcow2" else data)
    try:
        info = inspect_image(str(path), disk_format)
    except NovaliteError:
        return
    assert info.disk_format == disk_format and info.virtual_size % 512 == 0


def test_mutated_headers_are_judged_within_bounds() -> None:
    """A modest run of tests/fuzz/inspector.py, in a process of its own: it limits its memory."""
    inputs = os.environ.get("NOVALITE_FUZZ_INPUTS", "5000")
    command = [sys.executable, "-m", "tests.fuzz.inspector", "--inputs", inputs, "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert counts["accepted"] + counts["refused"] == int(inputs) and counts["accepted"] > 100


@needs_qemu_img
@pytest.mark.parametrize(
    "options",
    [
        "compat=0.10",
        "compat=1.1",
        "compat=1.1,lazy_refcounts=on",
        "cluster_size=512",
        "cluster_size=2M",
        "extended_l2=on",
        "compression_type=zstd",
        "preallocation=metadata",
    ],
)
def test_images_of_qemu_img_are_accepted(image: pathlib.Path, options: str) -> None:
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-o", options, str(image), "10M"], check=True)
    assert inspect_image(str(image), "qcow2").virtual_size == 10 * MIB
    with pytest.raises(NovaliteError, match="content is qcow2"):
        inspect_image(str(image), "raw")


@needs_qemu_img
@pytest.mark.parametrize("disk_format", ["vmdk", "vdi", "vhdx", "vpc", "qed", "parallels"])
def test_other_formats_of_qemu_img_are_refused(image: pathlib.Path, disk_format: str) -> None:
    subprocess.run(["qemu-img", "create", "-q", "-f", disk_format, str(image), "10M"], check=True)
    for declared in ("raw", "qcow2"):
        with pytest.raises(NovaliteError, match="was declared"):
            inspect_image(str(image), declared)


@needs_qemu_img
@pytest.mark.parametrize("options", ["backing_file=/etc/passwd,backing_fmt=raw", "data_file=@data"])
def test_references_of_qemu_img_are_refused(image: pathlib.Path, options: str) -> None:
    options = options.replace("@data", f"{image}.data")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-o", options, str(image), "10M"], check=True)
    with pytest.raises(NovaliteError, match=r"backing file|external"):
        inspect_image(str(image), "qcow2")
