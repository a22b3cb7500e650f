# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks and appliances that were made to do harm, or are damaged: each is refused with a clear line, and nothing is
kept. A file with a secret lies where a path in them would lead."""

from __future__ import annotations

import gzip
import os
import pathlib
import struct
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ImageRefusedError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._image_import import imported, packed
from ansible_collections.novalite.cloud.plugins.module_utils._image_import.foreign_disks import inspect_foreign
from ansible_collections.novalite.cloud.plugins.module_utils._image_import.imported import Foreign, import_file
from ansible_collections.novalite.cloud.plugins.module_utils._image_import.ova import read_archive
from ansible_collections.novalite.cloud.plugins.module_utils._image_import.ovf import appliance_of
from tests.support.examples import part_of
from tests.unit._image_import.appliances import (
    FORMATS,
    VMDK_URI,
    archive,
    converted,
    descriptor,
    manifest,
    member,
    raw_disk,
    raw_of,
)

SECRET = b"the controller's own\n" * 100
Change = t.Callable[[bytearray], object]


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A good disk of each format."""
    raw = raw_disk(tmp_path_factory.mktemp("disks") / "disk.raw")
    return {disk_format: converted(raw, disk_format).read_bytes() for disk_format in FORMATS}


def refused(directory: pathlib.Path, data: bytes, disk_format: str, suffix: str = "") -> str:
    """The words by which the file is refused; nothing of it may be kept, nor anything of what lies around it."""
    secret = directory / "secret"
    secret.write_bytes(SECRET)
    source, home = directory / f"file.{disk_format}{suffix}", directory / "home"
    home.mkdir(exist_ok=True)
    source.write_bytes(data)
    before = sorted(os.listdir(directory))
    with pytest.raises(ImageRefusedError) as error:
        import_file(Foreign(str(source), disk_format, "image 'web'"), None, str(home), True, lambda _text: None)
    assert sorted(os.listdir(directory)) == before
    assert [name for name in os.listdir(home / "imported") if not name.endswith(".lock")] == []
    text = str(error.value)
    assert text.startswith("image 'web'") and "\n" not in text and len(text) < 700
    return text


def put(offset: int, layout: str, *values: t.Any) -> Change:
    return lambda data: struct.pack_into(layout, data, offset, *values)


def replace(old: bytes, new: bytes) -> Change:
    """Another text of the same place, as long as there is room."""

    def change(data: bytearray) -> None:
        position = data.index(old)
        data[position : position + len(new)] = new

    return change


def vhd_sum(offset: int, length: int, at: int, *changes: Change) -> Change:
    """Changes to a structure whose checksum is right afterwards."""

    def change(data: bytearray) -> None:
        for each in changes:
            each(data)
        part = data[offset : offset + length]
        part[at : at + 4] = bytes(4)
        struct.pack_into(">I", data, offset + at, ~sum(part) & 0xFFFFFFFF)

    return change


def both_footers(*changes: Change) -> Change:
    def change(data: bytearray) -> None:
        vhd_sum(0, 512, 64, *changes)(data)
        data[-512:] = data[:512]

    return change


def vhdx_item(guid: str, layout: str, value: int) -> Change:
    """Another value of an item of a VHDX's metadata."""

    def change(data: bytearray) -> None:
        table = next(at for at in range(0, len(data), 65536) if data[at : at + 8] == b"metadata")
        position = data.index(bytes.fromhex(guid), table)
        (offset,) = struct.unpack_from("<I", data, position + 16)
        struct.pack_into(layout, data, table + offset, value)

    return change


DESCRIPTOR = 512
DISKS: dict[str, tuple[str, Change, str]] = {
    "vmdk: paths by a capacity of 0": ("vmdk", put(12, "<Q", 0), "capacity of 0"),
    "vmdk: parent": ("vmdk", replace(b"parentCID=ffffffff", b"parentCID=00000001"), "its parent"),
    "vmdk: parent's name": ("vmdk", replace(b"\n# Extent", b'\nparentFileNameHint="secret"\n#'), "its parent"),
    "vmdk: flat extent": ("vmdk", replace(b"SPARSE", b"FLAT  "), "several files"),
    "vmdk: two extents": ("vmdk", replace(b"# The Disk", b'\nRW 8 FLAT "secret" 0\n#'), "several files"),
    "vmdk: monolithicFlat": ("vmdk", replace(b'"streamOptimized"', b'"monolithicFlat" '), "of type 'monolithicflat"),
    "vmdk: custom": ("vmdk", replace(b'"streamOptimized"', b'"custom"         '), "of type 'custom"),
    "vmdk: descriptor elsewhere": ("vmdk", put(28, "<Q", 1 << 40), "cut off"),
    "vmdk: huge descriptor": ("vmdk", put(36, "<Q", 1 << 40), "descriptor of"),
    "vmdk: bomb": ("vmdk", put(12, "<Q", 1 << 50), "virtual size"),
    "vmdk: cut off": ("vmdk", lambda data: data.__delitem__(slice(300, None)), "cut off"),
    "vmdk: no grains": ("vmdk", put(20, "<Q", 0), "damaged"),
    "vhd: parent": ("vhd", both_footers(put(60, ">I", 4)), "its parent"),
    "vhd: parent's id": ("vhd", vhd_sum(512, 1024, 36, put(552, ">Q", 7)), "its parent"),
    "vhd: unknown type": ("vhd", both_footers(put(60, ">I", 9)), "its parent"),
    "vhd: wrong sum": ("vhd", put(-100, ">I", 9), "wrong checksum"),
    "vhd: footers differ": ("vhd", put(40, ">Q", 9), "differ"),
    "vhd: header elsewhere": ("vhd", both_footers(put(16, ">Q", 1 << 60)), "cut off"),
    "vhd: damaged header": ("vhd", put(520, ">Q", 9), "damaged header"),
    "vhd: bomb": ("vhd", both_footers(put(48, ">Q", 1 << 60)), "virtual size"),
    "vhd: fixed, and shorter": ("vhd", both_footers(put(60, ">I", 2), put(48, ">Q", 1 << 40)), "cut off"),
    "vhd: more after its end": ("vhd", lambda data: data.extend(bytes(512)), "no footer"),
    "vhdx: parent": ("vhdx", vhdx_item("3767a1ca36fa434db3b633f0aa44e76b", "<Q", 2 << 32), "its parent"),
    "vhdx: parent locator": (
        "vhdx",
        replace(bytes.fromhex("c748a3cd5d4471449cc9e9885251c556"), bytes.fromhex("2d5fd3a80bb34d45abf7d3d84834ab0c")),
        "its parent",
    ),
    "vhdx: bomb": ("vhdx", vhdx_item("2442a52f1bcd7648b2115dbed83bf4b8", "<Q", 1 << 60), "virtual size"),
    "vhdx: half a sector": ("vhdx", vhdx_item("2442a52f1bcd7648b2115dbed83bf4b8", "<Q", 513), "virtual size"),
    "vhdx: no metadata": ("vhdx", replace(bytes.fromhex("06a27c8b90479a4bb8fe575f050f886e"), bytes(16)), "no metadata"),
    "vhdx: many regions": ("vhdx", put(196616, "<I", 1 << 30), "damaged table"),
    "vhdx: cut off": ("vhdx", lambda data: data.__delitem__(slice(100000, None)), "cut off"),
    "vdi: snapshot": ("vdi", put(0x4C, "<I", 4), "its parent"),
    "vdi: linked": ("vdi", put(0x1A8, "<Q", 7), "its parent"),
    "vdi: parent": ("vdi", put(0x1B8, "<Q", 7), "its parent"),
    "vdi: version": ("vdi", put(0x44, "<I", 9), "version 0x9"),
    "vdi: bomb": ("vdi", put(0x170, "<Q", 1 << 60), "virtual size"),
    "vdi: map elsewhere": ("vdi", put(0x154, "<I", 513), "damaged"),
    "vdi: cut off": ("vdi", lambda data: data.__delitem__(slice(200, None)), "cut off"),
}


@pytest.mark.parametrize("case", DISKS)
def test_a_disk_is_refused(case: str, disks: dict[str, bytes], tmp_path: pathlib.Path) -> None:
    disk_format, change, words = DISKS[case]
    data = bytearray(disks[disk_format])
    change(data)
    assert words in refused(tmp_path, bytes(data), disk_format)


def test_a_descriptor_alone_is_refused(tmp_path: pathlib.Path) -> None:
    text = b'# Disk DescriptorFile\nversion=1\ncreateType="monolithicFlat"\nRW 8 FLAT "secret" 0\n'
    assert "not one file" in refused(tmp_path, text, "vmdk")


@pytest.mark.parametrize("declared", FORMATS)
@pytest.mark.parametrize("content", FORMATS)
def test_what_was_declared_counts(declared: str, content: str, disks: dict[str, bytes], tmp_path: pathlib.Path) -> None:
    if declared != content:
        assert f"its content is {content}" in refused(tmp_path, disks[content], declared)


@pytest.mark.parametrize("disk_format", FORMATS)
@given(data=st.data())
@settings(max_examples=part_of(60))
def test_no_damage_makes_another_error(disk_format: str, disks: dict[str, bytes], data: st.DataObject) -> None:
    """The reader alone: what it lets pass, QEMU reads as nobody and within limits."""
    content = bytearray(disks[disk_format])
    for _number in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, min(len(content), 270_000) - 8))
        content[position : position + 8] = data.draw(st.binary(min_size=8, max_size=8))
    del content[data.draw(st.one_of(st.just(len(content)), st.integers(1, len(content)))) :]
    path = pathlib.Path(os.environ.get("TMPDIR", "/tmp"), f"novalite-damaged-{os.getpid()}")
    path.write_bytes(content)
    try:
        assert 0 < inspect_foreign(str(path), disk_format, "it").virtual_size <= 16 << 40
    except NovaliteError as error:
        assert str(error).startswith("it")
    finally:
        path.unlink()


# --- Archives ---------------------------------------------------------------------------------------------------------

NAME = "web.vmdk"


def ova(*more: bytes, text: bytes | None = None, disk: bytes = b"KDMV" * 200) -> t.Callable[[dict[str, bytes]], bytes]:
    """An archive of a descriptor, one disk, and more."""
    whole = member("web.ovf", text if text is not None else descriptor([NAME])) + member(NAME, disk)
    return lambda _disks: whole + b"".join(more) + bytes(1024)


def with_disk(text: bytes, *more: bytes) -> t.Callable[[dict[str, bytes]], bytes]:
    return lambda disks: ova(*more, text=text, disk=disks["vmdk"])(disks)


def damaged_header() -> bytes:
    header = bytearray(member("x", b""))
    header[0:1] = b"y"
    return bytes(header)


ENTITIES = (
    b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "bbbbbbbbbb">'
    + b"".join(b'<!ENTITY c%d "&b;&b;&b;&b;&b;&b;&b;&b;">' % number for number in range(9))
    + b"]><Envelope>&c8;</Envelope>"
)
ARCHIVES: dict[str, tuple[t.Callable[[dict[str, bytes]], bytes], str]] = {
    "no archive": (lambda _disks: b"x" * 2048, "no tar archive"),
    "path that leaves": (ova(member("../../secret", b"x")), "names are plain ones"),
    "absolute path": (ova(member("/etc/passwd", b"x")), "names are plain ones"),
    "directory": (ova(member("d", b"", b"5")), "not a plain file"),
    "symbolic link": (ova(member("l", b"", b"2", link="/etc/shadow")), "not a plain file"),
    "hard link": (ova(member("l", b"", b"1", link="web.ovf")), "not a plain file"),
    "device node": (ova(member("sda", b"", b"4")), "not a plain file"),
    "FIFO": (ova(member("f", b"", b"6")), "not a plain file"),
    "long name of GNU tar": (ova(member("././@LongLink", b"a" * 200, b"L")), "not a plain file"),
    "headers of pax": (ova(member("p", b"16 size=99999999\n", b"x")), "not a plain file"),
    "sparse file of GNU tar": (ova(member("s", b"", b"S")), "not a plain file"),
    "hidden file": (ova(member(".bashrc", b"x")), "names are plain ones"),
    "name that ends a line": (ova(member("a\nb", b"x")), "names are plain ones"),
    "two of one name": (ova(member(NAME, b"x")), "two members"),
    "many members": (ova(*(member(f"m{number}", b"") for number in range(70))), "more than 64"),
    "member longer than the file": (ova(member("x", b"", size=1 << 30)), "leaves its"),
    "damaged header": (ova(damaged_header()), "wrong checksum"),
    "two descriptors": (ova(member("other.ovf", descriptor([NAME]))), "2 descriptors"),
    "no descriptor": (lambda _disks: member(NAME, b"x") + bytes(1024), "0 descriptors"),
    "descriptor too large": (ova(text=b"<Envelope>" + b" " * (1 << 20) + b"</Envelope>"), "at most"),
    "entities": (ova(text=ENTITIES), "document type"),
    "entity of a file": (
        ova(text=b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><Envelope>&x;</Envelope>'),
        "document type",
    ),
    "UTF-16": (ova(text=ENTITIES.decode().encode("utf-16")), "no XML in UTF-8"),
    "no XML": (ova(text=b"<Envelope>"), "no XML"),
    "another document": (ova(text=b"<html/>"), "no OVF descriptor"),
    "many elements": (ova(text=b"<Envelope>" + b"<a/>" * 30_000 + b"</Envelope>"), "more than 20000 elements"),
    "nested deeply": (ova(text=b"<a>" * 100_000), "no XML"),
    "no system": (ova(text=b"<Envelope/>"), "0 virtual systems"),
    "no disk": (ova(text=descriptor([])), "describes no disk"),
    "disk that is not there": (ova(text=descriptor(["other.vmdk"])), "not in the archive"),
    "disk outside": (ova(text=descriptor(["../secret"])), "outside of the archive"),
    "disk of a URL": (ova(text=descriptor(["http://mirror/disk.vmdk"])), "outside of the archive"),
    "compressed disk": (
        ova(text=descriptor([NAME], files=f'<File ovf:id="file0" ovf:href="{NAME}" ovf:compression="gzip"/>')),
        "export it without",
    ),
    "disk with a parent": (
        ova(
            text=descriptor(
                [NAME],
                disks=f'<Disk ovf:diskId="disk0" ovf:fileRef="file0" ovf:parentRef="x" ovf:format="{VMDK_URI}"/>',
            )
        ),
        "its parent",
    ),
    "unknown format": (
        ova(text=descriptor(["d.bin"], disks='<Disk ovf:diskId="disk0" ovf:fileRef="file0" ovf:format="x"/>')),
        "has the format",
    ),
    "no memory": (ova(text=descriptor([NAME], memory="")), "MiB of memory"),
    "much memory": (ova(text=descriptor([NAME], memory="99999999999")), "asks for"),
    "negative processors": (ova(text=descriptor([NAME], vcpus="-1")), "processors"),
    "strange unit": (ova(text=descriptor([NAME], units="byte * 2^99")), "not a unit"),
    "disk that is text": (ova(disk=b"secret" * 100), "its content is"),
    "wrong manifest": (
        with_disk(descriptor([NAME]), member("web.mf", manifest({NAME: b"other"}))),
        "as its manifest says",
    ),
    "manifest of others": (
        with_disk(descriptor([NAME]), member("web.mf", manifest({"../secret": b"x"}))),
        "not in the archive",
    ),
    "manifest that is none": (with_disk(descriptor([NAME]), member("web.mf", b"hello\n")), "no digest"),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_an_archive_is_refused(case: str, disks: dict[str, bytes], tmp_path: pathlib.Path) -> None:
    data, words = ARCHIVES[case]
    assert words in refused(tmp_path, data(disks), "ova")


def test_a_harmful_disk_in_an_archive_is_refused(disks: dict[str, bytes], tmp_path: pathlib.Path) -> None:
    data = bytearray(disks["vmdk"])
    struct.pack_into("<Q", data, 12, 0)
    text = refused(tmp_path, ova(disk=bytes(data))(disks), "ova")
    assert NAME in text and "capacity of 0" in text


@given(position=st.integers(0, 4000), junk=st.binary(min_size=1, max_size=40))
@settings(max_examples=part_of(100))
def test_no_damage_to_an_archive_makes_another_error(position: int, junk: bytes) -> None:
    data = bytearray(ova()({}))
    data[position : position + len(junk)] = junk
    path = pathlib.Path(os.environ.get("TMPDIR", "/tmp"), f"novalite-damaged-{os.getpid()}")
    path.write_bytes(data)
    try:
        read_archive(str(path), "it")
    except NovaliteError as error:
        assert str(error).startswith("it")
    finally:
        path.unlink()


@given(text=st.text(max_size=60), place=st.integers(0, 3000))
@settings(max_examples=part_of(100))
def test_no_damage_to_a_descriptor_makes_another_error(text: str, place: int) -> None:
    good = descriptor([NAME]).decode()
    try:
        appliance_of((good[:place] + text + good[place:]).encode("utf-8", "replace"), "it")
    except NovaliteError as error:
        assert str(error).startswith("it")


def test_an_archive_of_a_large_file_is_read_by_its_offset(disks: dict[str, bytes], tmp_path: pathlib.Path) -> None:
    path = archive(tmp_path / "a.ova", member("web.ovf", descriptor([NAME])), member(NAME, disks["vmdk"]))
    done = import_file(Foreign(str(path), "ova", "it"), None, str(tmp_path), True, lambda _text: None)[1]
    assert done.appliance is not None and (done.appliance.vcpus, done.appliance.networks) == (2, ("VM Network",))
    assert raw_of(done.disks[0].path) == raw_of(str(raw_disk(tmp_path / "disk.raw")), "raw")


# --- Compressed files -------------------------------------------------------------------------------------------------


def test_a_bomb_ends_where_it_becomes_too_large(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MAX_SIZE", 1 << 20)
    assert "larger than" in refused(tmp_path, gzip.compress(bytes(64 << 20)), "raw", ".gz")


@pytest.mark.parametrize("suffix", packed.PROGRAMS)
def test_what_is_not_compressed_as_its_name_says_is_refused(suffix: str, tmp_path: pathlib.Path) -> None:
    assert "cannot be unpacked" in refused(tmp_path, b"no such thing" * 100, "raw", suffix)


def test_a_compressed_archive_with_a_compressed_file_is_no_way_in(tmp_path: pathlib.Path) -> None:
    data = gzip.compress(ova(disk=gzip.compress(bytes(1 << 20)))({}))
    assert "its content is" in refused(tmp_path, data, "ova", ".gz")


def test_a_converted_disk_never_grows_beyond_its_size(
    disks: dict[str, bytes], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imported, "TABLES", -(4 << 20))  # of a file that QEMU would make larger than it says
    assert "cannot be converted" in refused(tmp_path, disks["vmdk"], "vmdk")
