# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cache whose files have no ending yet, and the disks that name them in their headers."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout
from ansible_collections.novalite.cloud.plugins.module_utils._disk.cache import Image, ensure_images
from ansible_collections.novalite.cloud.plugins.module_utils._disk.evict import evict
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._disk.removal import remove_disks
from ansible_collections.novalite.cloud.plugins.module_utils._drift import host_scan
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel, transfer
from tests.unit._disk.state import MIB, info, needs_qemu_img

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
OTHER = "0b3f3b57-0f0e-4a27-8a9d-2f6c9d6f1a11"
DAY = 86400
pytestmark = needs_qemu_img


@pytest.fixture
def disk(state: str, base: str) -> pathlib.Path:
    """The disk of an instance whose swap and image have their former names in the cache, and no other ones."""
    create_disks([Disk(UUID, base, swap_mb=1)], state)
    directory = pathlib.Path(state, "instances", UUID)
    for name, key in (("disk", base[7:]), ("disk.swap", "swap_1")):
        former = layout.former_path(state, key)
        os.rename(layout.base_path(state, key), former)
        rebase = ["qemu-img", "rebase", "-u", "-f", "qcow2", "-F", "raw", "-b", former]
        subprocess.run([*rebase, str(directory / name)], check=True)
    return directory / "disk"


def entries(state: str) -> dict[str, str | None]:
    """Name in the cache -> what it is a link to, None for a file."""
    with os.scandir(os.path.join(state, "_base")) as cache_entries:
        return {entry.name: os.readlink(entry.path) if entry.is_symlink() else None for entry in cache_entries}


def test_files_get_their_names_and_disks_stay_as_they_are(state: str, base: str, disk: pathlib.Path) -> None:
    before = disk.read_bytes(), disk.stat().st_mtime_ns
    with open(layout.cache_path(state, base).removesuffix(".raw"), "rb") as held:  # as a guest's QEMU does
        planned = ensure_images([], state, check_mode=True)
        assert planned["changed"] and set(entries(state)) == {base[7:], "swap_1"}
        assert ensure_images([], state)["diff"] == planned["diff"]
        assert held.read(MIB) == b"\1" * MIB
        assert os.fstat(held.fileno()).st_ino == os.stat(layout.cache_path(state, base)).st_ino
    assert entries(state) == {
        base[7:]: f"{base[7:]}.raw",
        f"{base[7:]}.raw": None,
        "swap_1": "swap_1.raw",
        "swap_1.raw": None,
    }
    assert (disk.read_bytes(), disk.stat().st_mtime_ns) == before
    # what AppArmor judges: where the name in the header leads to
    assert os.path.realpath(info(str(disk))["full-backing-filename"]) == layout.cache_path(state, base)
    assert subprocess.run(["qemu-io", "-f", "qcow2", "-c", "read -P 1 0 1M", str(disk)], check=True)
    assert not ensure_images([], state)["changed"]


def test_a_run_that_was_killed_is_completed(state: str, base: str, disk: pathlib.Path) -> None:
    os.link(layout.former_path(state, base[7:]), layout.cache_path(state, base))
    assert layout.carry_over(state) == sorted([base[7:], "swap_1"])
    assert entries(state)[base[7:]] == f"{base[7:]}.raw"


def test_new_disks_name_the_file(state: str, base: str, disk: pathlib.Path) -> None:
    made = create_disks([Disk(OTHER, base)], state)["disks"][0]["path"]
    assert info(made)["full-backing-filename"] == layout.cache_path(state, base)


def test_whoever_only_looks_sees_the_image(state: str, base: str, disk: pathlib.Path) -> None:
    image = Image(base, "/nowhere", disk_format="qcow2", virtual_size=8 * MIB)
    assert ensure_images([image], state, check_mode=True)["images"][0]["status"] == "cached"
    assert host_scan._missing_bases(state) == {}
    assert create_disks([Disk(OTHER, base)], state, check_mode=True)["changed"]
    assert set(entries(state)) == {base[7:], "swap_1"}


def test_both_names_go_together_and_not_while_a_disk_stands_on_them(state: str, base: str, disk: pathlib.Path) -> None:
    layout.carry_over(state)
    for key in (base[7:], "swap_1"):
        os.utime(layout.base_path(state, key), (0, 0))
    assert not evict(state, DAY)["changed"] and len(entries(state)) == 4
    remove_disks([Disk(UUID)], state)
    for key in (base[7:], "swap_1"):
        os.utime(layout.base_path(state, key), (0, 0))
    assert evict(state, DAY, check_mode=True)["evicted"] == evict(state, DAY)["evicted"]
    assert entries(state) == {}


def test_a_disk_that_arrives_from_another_host_finds_its_image(state: str, base: str, disk: pathlib.Path) -> None:
    staging = channel.staging_of(state, UUID)
    os.makedirs(os.path.dirname(staging))
    shutil.move(str(disk.parent), staging)
    layout.carry_over(state)
    for key in (base[7:], "swap_1"):
        os.unlink(layout.former_path(state, key))  # this host never had it under that name
    move: channel.Move = {"id": "", "uuid": UUID, "to_host": "hv2", "to_address": ""}
    assert transfer.receive([move], {UUID: Disk(UUID, base, swap_mb=1)}, state) == [UUID]
    assert os.path.realpath(info(str(disk))["full-backing-filename"]) == layout.cache_path(state, base)
    assert subprocess.run(["qemu-io", "-f", "qcow2", "-c", "read -P 1 0 1M", str(disk)], check=True)
