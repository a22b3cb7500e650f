# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that come with an instance which moves or gets another size, where it starts from a volume; needs qemu-img."""

from __future__ import annotations

import os
import pathlib
import struct
import subprocess

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout, records
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import NOTE, Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.files import instance_dir
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel, transfer
from tests.unit._disk.state import info, needs_qemu_img

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
ROOTED = "0e2f6a9e-8f2b-4a53-8d9f-2a9d3f8f1c33"
pytestmark = needs_qemu_img


def arrive(state: str, of: str) -> None:
    """The files of instance `of`, as its source would have sent them for UUID."""
    staging = channel.staging_of(state, UUID)
    os.makedirs(os.path.dirname(staging), exist_ok=True)
    # holes stay holes: a disk without content has 1 GiB
    subprocess.run(["cp", "-r", "--preserve", "--sparse=always", instance_dir(state, of), staging], check=True)
    pathlib.Path(staging, records.FRESH).unlink(missing_ok=True)


def content(state: str) -> list[str]:
    return sorted(os.listdir(instance_dir(state, UUID)))


def receive(state: str, disk: Disk) -> list[str]:
    return transfer.receive([{"id": "", "uuid": UUID, "to_host": "hv2", "to_address": ""}], {UUID: disk}, state)


def stand_on(path: str, backing: str) -> None:
    rebase = ["qemu-img", "rebase", "-u", "-f", "qcow2", "-F", "raw", "-b", backing, path]
    subprocess.run(rebase, check=True)


@pytest.mark.parametrize("ending", [".raw", ""])
def test_disks_of_a_host_with_another_state_directory_stand_on_this_hosts_files(
    state: str, base: str, ending: str
) -> None:
    disk = Disk(UUID, base, swap_mb=1)
    create_disks([disk], state)
    arrive(state, UUID)
    staging = channel.staging_of(state, UUID)
    for name, key in (("disk", base[7:]), ("disk.swap", "swap_1")):
        stand_on(os.path.join(staging, name), f"/srv/{'deep/' * 40}nv/_base/{key}{ending}")
    owner = os.stat(os.path.join(staging, "disk")).st_uid
    assert receive(state, disk) == [UUID]
    here = os.path.join(instance_dir(state, UUID), "disk")
    assert info(here)["full-backing-filename"] == layout.cache_path(state, base)
    assert info(f"{here}.swap")["full-backing-filename"] == layout.base_path(state, "swap_1")
    assert os.stat(here).st_uid == owner
    subprocess.run(["qemu-io", "-f", "qcow2", "-c", "read -P 1 0 1M", here], check=True)


@pytest.mark.parametrize("backing", ["/etc/shadow", "/srv/nv/_base/other.raw", "/srv/nv/instances/{key}.raw"])
def test_a_disk_that_stands_on_something_else_is_refused(state: str, base: str, backing: str) -> None:
    disk = Disk(UUID, base)
    create_disks([disk], state)
    arrive(state, UUID)
    stand_on(os.path.join(channel.staging_of(state, UUID), "disk"), backing.format(key=base[7:]))
    with pytest.raises(NovaliteError, match=rf"disk stands on '{backing.format(key=base[7:])}', which is .* here"):
        receive(state, disk)


def test_a_disk_whose_content_is_another_file_is_refused(state: str, base: str) -> None:
    disk = Disk(UUID, base)
    create_disks([disk], state)
    arrive(state, UUID)
    with open(os.path.join(channel.staging_of(state, UUID), "disk"), "r+b") as handle:
        handle.seek(72)  # its incompatible features
        handle.write(struct.pack(">Q", 1 << 2))
    with pytest.raises(NovaliteError, match="disk is not a qcow2 file of ours"):
        receive(state, disk)


@pytest.mark.parametrize("checksum", [True, False])
def test_one_without_a_disk_of_its_own_arrives(state: str, base: str, checksum: bool) -> None:
    disk = Disk(UUID, base if checksum else None, root=False, ephemeral_gb=1, backend="raw")
    create_disks([disk], state)
    arrive(state, UUID)
    assert receive(state, disk) == [UUID]
    assert content(state) == [NOTE, "disk.eph0", "disk.info"]


def test_a_disk_that_should_not_be_there_is_refused(state: str, base: str) -> None:
    create_disks([Disk(ROOTED, base)], state)
    arrive(state, ROOTED)
    with pytest.raises(NovaliteError, match="its source sent a disk, but it starts from a volume"):
        receive(state, Disk(UUID, base, root=False))


def test_a_disk_that_should_be_there_is_missed(state: str, base: str) -> None:
    create_disks([Disk(ROOTED, base, root=False)], state)
    arrive(state, ROOTED)
    with pytest.raises(NovaliteError, match="its source sent no disk"):
        receive(state, Disk(UUID, base))


def test_the_other_sizes_disks_go_with_it(state: str) -> None:
    create_disks([Disk(UUID, None, root=False)], state)
    before = content(state)
    transfer.keep([UUID], state)
    create_disks([Disk(UUID, None, root=False, ephemeral_gb=1, backend="raw")], state)
    assert sorted(set(content(state)) - set(before)) == [f"{NOTE}{layout.KEPT}", "disk.eph0", "disk.info"]
    assert transfer.restore([UUID], state) == [UUID]
    assert content(state) == before


def test_what_was_kept_since_somebody_looked_stays(state: str, base: str) -> None:
    create_disks([Disk(UUID, base)], state)
    before = content(state)
    transfer.keep([UUID], state)
    kept = os.path.join(instance_dir(state, UUID), f"{layout.DISK}{layout.KEPT}")
    made = os.stat(kept).st_mtime
    assert transfer.forget([UUID], state, made_before=made - 10) == []
    assert content(state) == [*before, f"disk.info{layout.KEPT}", f"disk{layout.KEPT}"]
    assert transfer.forget([UUID], state, made_before=made + 10) == [UUID]
    assert content(state) == before
