# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CDs: what their descriptors say, those that were made to do harm, and the files of an instance that has some."""

from __future__ import annotations

import os
import pathlib
import struct
import subprocess
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout
from ansible_collections.novalite.cloud.plugins.module_utils._disk.inspect import inspect_image
from ansible_collections.novalite.cloud.plugins.module_utils._disk.iso import BLOCK
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks, replace_disks
from ansible_collections.novalite.cloud.plugins.module_utils._disk.records import read_records
from ansible_collections.novalite.cloud.plugins.module_utils._errors import ImageRefusedError
from tests.unit._disk.state import GIB, files, image_of, info, needs_qemu_img, push

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
PRIMARY, LAST = 16 * BLOCK, 256 * BLOCK
Change = t.Callable[[bytearray], object]


def made(path: pathlib.Path, *options: str) -> pathlib.Path:
    content = path.parent / "content"
    content.mkdir(exist_ok=True)
    (content / "autoexec.bat").write_text("echo off\n" * 1000)
    subprocess.run(["genisoimage", "-quiet", *options, "-o", str(path), str(content)], check=True)
    return path


@pytest.fixture(scope="module")
def discs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A good CD of each kind: ISO 9660 alone, UDF beside it, and UDF alone."""
    directory = tmp_path_factory.mktemp("discs")
    discs = {"iso": made(directory / "iso.iso", "-J", "-r").read_bytes()}
    discs["bridge"] = made(directory / "bridge.iso", "-udf").read_bytes()
    alone = bytearray(discs["bridge"])
    first = alone.index(b"BEA01") - 1
    alone[PRIMARY : PRIMARY + 3 * BLOCK] = alone[first : first + 3 * BLOCK]
    alone[PRIMARY + 3 * BLOCK : first + 3 * BLOCK] = bytes(first - PRIMARY)
    return {**discs, "udf": bytes(alone)}


@pytest.mark.parametrize("kind", ["iso", "bridge", "udf"])
def test_a_cd_is_one(discs: dict[str, bytes], tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / "disc.iso"
    path.write_bytes(discs[kind])
    image = inspect_image(str(path), "iso")
    assert (image.disk_format, image.size, image.virtual_size) == ("iso", len(discs[kind]), len(discs[kind]))


def put(offset: int, value: bytes) -> Change:
    def change(data: bytearray) -> None:
        data[offset : offset + len(value)] = value

    return change


def cut(size: int) -> Change:
    def change(data: bytearray) -> None:
        del data[size:]

    return change


def both(offset: int, form: str, value: int) -> Change:
    return put(offset, struct.pack(f"<{form}", value) + struct.pack(f">{form}", value))


def endless(data: bytearray) -> None:
    data[PRIMARY + BLOCK :] = (b"\2CD001\1" + bytes(BLOCK - 7)) * 200


HOSTILE: dict[str, tuple[str, Change, str]] = {
    "nothing": ("iso", cut(0), "no descriptor of a CD"),
    "cut before its descriptors": ("iso", cut(PRIMARY), "no descriptor of a CD"),
    "cut inside a descriptor": ("iso", cut(PRIMARY + 100), "cut off inside its descriptors"),
    "cut behind its descriptors": ("iso", cut(20 * BLOCK), "cut off: its volume has"),
    "no descriptor": ("iso", put(PRIMARY + 1, b"CD002"), "no descriptor of a CD"),
    "no primary descriptor": ("iso", put(PRIMARY, b"\2"), "no descriptor of a CD"),
    "no end": ("iso", put(PRIMARY + 2 * BLOCK, bytes(BLOCK)), "descriptors without an end"),
    "descriptors without number": ("iso", endless, "more than 64 descriptors"),
    "larger than the file": ("iso", both(PRIMARY + 80, "I", 0xFFFFFFFF), "cut off: its volume has"),
    "two sizes": ("iso", put(PRIMARY + 80, struct.pack("<I", 7)), "of the same"),
    "no blocks": ("iso", both(PRIMARY + 80, "I", 0), "impossible size of 0 blocks"),
    "blocks of nothing": ("iso", both(PRIMARY + 128, "H", 0), "blocks of 0 bytes"),
    "odd blocks": ("iso", both(PRIMARY + 128, "H", 4095), "blocks of 4095 bytes"),
    "a qcow2 header": ("iso", put(0, b"QFI\xfb\0\0\0\3"), "its content is qcow2"),
    "a VMDK that names a file": ("iso", put(0, b'# Disk DescriptorFile\nRW 1 FLAT "/etc/shadow"'), "content is vmdk"),
    "a VHD at its end": ("iso", lambda data: data.extend(b"conectix" + bytes(504)), "its content is vpc"),
    "compressed": ("iso", put(0, b"\x1f\x8b\x08"), "a gzip file"),
    "a bridge cut before its anchor": ("bridge", cut(LAST), "cut off"),
    "UDF cut before its anchor": ("udf", cut(LAST), "cut off before UDF's anchor"),
    "no anchor": ("udf", put(LAST, bytes(BLOCK)), "damaged anchor"),
    "an anchor of another place": ("udf", put(LAST + 12, b"\1\1\0\0"), "damaged anchor"),
    "an anchor with a wrong sum": ("udf", put(LAST + 4, b"\0"), "damaged anchor"),
    "volumes outside of the file": ("udf", put(LAST + 20, b"\xff\xff\xff\xff"), "cut off: its volume has"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_cd_is_refused(discs: dict[str, bytes], tmp_path: pathlib.Path, name: str) -> None:
    kind, change, why = HOSTILE[name]
    data, path = bytearray(discs[kind]), tmp_path / "disc.iso"
    change(data)
    path.write_bytes(data)
    with pytest.raises(ImageRefusedError) as error:
        inspect_image(str(path), "iso", name="image 'cd'")
    text = str(error.value)
    assert why in text and text.startswith("image 'cd'") and "\n" not in text


@given(st.integers(0, 20 * BLOCK - 1), st.binary(min_size=1, max_size=64))
def test_whatever_is_changed_it_is_taken_or_refused(discs: dict[str, bytes], offset: int, value: bytes) -> None:
    data = bytearray(discs["bridge"])
    put(offset + PRIMARY, value)(data)
    with open(os.memfd_create("disc"), "wb") as disc:
        disc.write(data[: len(discs["bridge"])])
        disc.flush()
        try:
            inspect_image(f"/proc/self/fd/{disc.fileno()}", "iso")
        except ImageRefusedError as error:
            assert "\n" not in str(error)


@needs_qemu_img
def test_a_cd_comes_into_the_cache_as_it_is_and_an_instance_reads_it_over_it(
    state: str, discs: dict[str, bytes], tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "disc.iso"
    path.write_bytes(discs["iso"])
    image = image_of(path, disk_format="iso", virtual_size=path.stat().st_size)
    assert push(image, state)["images"][0]["status"] == "fetched"
    cached = layout.cache_path(state, image.checksum)
    assert pathlib.Path(cached).read_bytes() == discs["iso"]
    disk = Disk(UUID, None, 1, cdroms=(image.checksum, ""))
    done = create_disks([disk], state)
    name = layout.cdrom_name(0, image.checksum)
    assert done["disks"][0]["created"] == ["disk", name] and "empty_1" in files(state)
    directory = os.path.join(state, "instances", UUID)
    assert info(f"{directory}/{name}")["full-backing-filename"] == cached
    root = info(f"{directory}/disk")
    assert root["virtual-size"] == GIB and root["full-backing-filename"].endswith("/empty_1.raw")
    assert not create_disks([disk], state)["changed"]
    replace_disks([Disk(UUID, None, 1)], state)
    assert not os.path.exists(f"{directory}/{name}") and set(read_records(directory)) == {"disk"}
