# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Partition tables and superblocks, as plain data."""

from __future__ import annotations

import json
import pathlib
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._disk.partition import (
    BOOT_TYPE,
    HEADER,
    Partition,
    choose_partition,
    find_partition,
    identify_file_system,
    inspect_partitions,
    parse_table,
)
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

DISK = 1 << 30
LINUX = "0FC63DAF-8483-4772-8E79-3D69D8477DE4"
ROOT = "4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709"
BIOS = "21686148-6449-6E6F-744E-656564454649"


def part(number: int, kind: str, start: int = 1 << 20, size: int = 1 << 20) -> Partition:
    return Partition(number, start, size, kind)


def test_parse() -> None:
    text = json.dumps(
        {
            "partitiontable": {
                "label": "gpt",
                "sectorsize": 4096,
                "partitions": [
                    {"node": "/run/x/5.rawp14", "start": 10, "size": 20, "type": BIOS.lower()},
                    {"node": "/run/x/5.raw1", "start": 30, "size": 40, "type": LINUX},
                ],
            }
        }
    )
    assert parse_table(text, "/run/x/5.raw") == [Partition(14, 40960, 81920, BIOS), Partition(1, 122880, 163840, LINUX)]
    assert parse_table("", "/x") == [] and parse_table('{"partitiontable": {"label": "dos"}}', "/x") == []


def header(magic: bytes = b"", at: int = 0, label: bytes = b"", mounted: bytes = b"") -> bytes:
    data = bytearray(HEADER)
    data[at : at + len(magic)] = magic
    data[1024 + 0x78 : 1024 + 0x78 + len(label)] = label
    data[1024 + 0x88 : 1024 + 0x88 + len(mounted)] = mounted
    return bytes(data)


def ext(label: bytes = b"", mounted: bytes = b"") -> bytes:
    return header(b"\x53\xef", 1024 + 0x38, label, mounted)


XFS, BTRFS, UNKNOWN = header(b"XFSB"), header(b"_BHRfS_M", 0x10040), header()


@pytest.mark.parametrize(
    ("table", "headers", "number"),
    [
        ([], {}, None),
        ([part(1, "83")], {1: ext()}, 1),
        ([part(1, "83")], {1: UNKNOWN}, 1),
        ([part(1, "EF"), part(5, "83")], {5: XFS}, 5),
        ([part(14, BIOS), part(1, LINUX)], {1: ext()}, 1),
        ([part(1, ROOT), part(2, LINUX)], {1: ext(), 2: ext()}, 1),
        ([part(1, LINUX), part(2, LINUX)], {1: BTRFS, 2: ext()}, 2),
        ([part(1, LINUX), part(2, LINUX)], {1: ext(label=b"boot"), 2: XFS}, 2),
        ([part(1, BOOT_TYPE), part(2, LINUX)], {1: ext(), 2: XFS}, 2),
        ([part(1, LINUX), part(2, LINUX)], {1: ext(mounted=b"/sysroot/boot"), 2: ext()}, 2),
        ([part(1, LINUX), part(2, LINUX), part(3, LINUX)], {1: ext(mounted=b"/"), 2: ext(mounted=b"/srv"), 3: XFS}, 1),
    ],
)
def test_inspection(table: list[Partition], headers: dict[int, bytes], number: int | None) -> None:
    chosen = inspect_partitions(table, headers, DISK)
    assert (chosen.number if chosen else None) == number


@pytest.mark.parametrize(
    ("table", "headers", "message"),
    [
        ([part(1, "83"), part(2, "83")], {1: ext(), 2: XFS}, r"Linux partitions: 1 \(ext\), 2 \(XFS\).*os_partition"),
        ([part(1, ROOT), part(2, ROOT)], {1: ext(), 2: ext()}, r"1 \(ext\), 2 \(ext\)"),
        ([part(1, "83"), part(2, "83")], {1: BTRFS, 2: UNKNOWN}, r"1 \(Btrfs\), 2 \(unknown\)"),
        ([part(1, "7")], {}, "Linux partitions: none"),
    ],
)
def test_inspection_does_not_guess(table: list[Partition], headers: dict[int, bytes], message: str) -> None:
    with pytest.raises(NovaliteError, match=message):
        inspect_partitions(table, headers, DISK)


def test_a_number() -> None:
    table = [part(1, "83"), part(2, "7"), part(3, "83", size=DISK), part(4, "83", start=0)]
    assert choose_partition(table, 2, DISK).number == 2
    for number, message in ((5, r"no partition 5 \(there are: 1, 2, 3, 4\)"), (3, "outside the disk"), (4, "outside")):
        with pytest.raises(NovaliteError, match=message):
            choose_partition(table, number, DISK)


@given(
    st.lists(
        st.builds(
            Partition,
            st.integers(1, 20),
            st.integers(-5, DISK * 2),
            st.integers(-5, DISK * 2),
            st.sampled_from(["83", "7", ROOT, LINUX, BIOS]),
        ),
        max_size=4,
    ),
    st.integers(1, 20),
)
def test_what_is_chosen_lies_on_the_disk(table: list[Partition], number: int) -> None:
    try:
        chosen = choose_partition(table, number, DISK)
    except NovaliteError:
        return
    assert 0 < chosen.start < chosen.start + chosen.size <= DISK and chosen.number == number


@pytest.mark.parametrize("table", ["", "label: dos\nstart=2048, size=2048, type=7\n"])
def test_a_bare_file_system_behind_a_boot_loader(tmp_path: pathlib.Path, table: str) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(superblock().ljust(1 << 22, b"\0"))
    if table:
        subprocess.run(["/usr/sbin/sfdisk", "-q", "--wipe", "never", str(disk)], input=table, text=True, check=True)
    else:
        with open(disk, "r+b") as handle:
            handle.write((b"\xfa\xeb\x3c" * 171)[:510] + b"\x55\xaa")
    assert find_partition(str(disk), "inspect") is None


def test_a_disk_without_a_table(tmp_path: pathlib.Path) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(4096))
    assert find_partition(str(disk), None) is None and find_partition(str(disk), 0) is None
    with pytest.raises(NovaliteError, match="no partition 1"):
        find_partition(str(disk), 1)


def superblock(max_mounts: int = -1, interval: int = 0, compat: int = 4, incompat: int = 2, journal: int = 8) -> bytes:
    data = bytearray(4096)
    struct.pack_into("<h", data, 1024 + 0x36, max_mounts)
    struct.pack_into("<H", data, 1024 + 0x38, 0xEF53)
    struct.pack_into("<I", data, 1024 + 0x44, interval)
    struct.pack_into("<II", data, 1024 + 0x5C, compat, incompat)
    struct.pack_into("<I", data, 1024 + 0xE0, journal)
    return bytes(data)


def test_file_systems(tmp_path: pathlib.Path) -> None:
    device = tmp_path / "device"

    def identified(data: bytes) -> tuple[str, str, str, bool]:
        device.write_bytes(data)
        file_system = identify_file_system(str(device))
        return file_system.type, file_system.options, file_system.read_only_options, file_system.checks_scheduled

    plain = ("ext4", "errors=remount-ro", "errors=remount-ro", False)
    assert identified(superblock()) == plain
    assert identified(superblock(compat=0, journal=0)) == plain
    assert identified(superblock(incompat=6)) == ("ext4", "errors=remount-ro", "errors=remount-ro,noload", False)
    assert identified(superblock(max_mounts=20))[3] and identified(superblock(interval=1))[3]
    assert identified(b"XFSB".ljust(4096, b"\0"))[0] == "xfs"
    for data, message in (
        (superblock(journal=0), "journal on another device"),
        (bytes(4096), "no ext2"),
        (BTRFS, "is there but Btrfs; .* config drive"),
        (b"", "no ext2"),
    ):
        with pytest.raises(NovaliteError, match=message):
            identified(data)
