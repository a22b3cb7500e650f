# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What comes with an instance that moves or gets another size, where it starts from a volume; needs qemu-img."""

from __future__ import annotations

import os
import shutil

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout, records
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import NOTE, Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import channel, transfer
from tests.unit._disk.state import needs_qemu_img

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
ROOTED = "0e2f6a9e-8f2b-4a53-8d9f-2a9d3f8f1c33"
pytestmark = needs_qemu_img


def arrive(state: str, of: str) -> None:
    """The files of instance `of`, as its source would have sent them for UUID."""
    staging = channel.staging_of(state, UUID)
    os.makedirs(os.path.dirname(staging), exist_ok=True)
    shutil.copytree(layout.instance_dir(state, of), staging, ignore=shutil.ignore_patterns(records.FRESH))


def content(state: str) -> list[str]:
    return sorted(os.listdir(layout.instance_dir(state, UUID)))


def receive(state: str, disk: Disk) -> list[str]:
    return transfer.receive([{"id": "", "uuid": UUID, "to_host": "hv2", "to_address": ""}], {UUID: disk}, state)


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
    kept = os.path.join(layout.instance_dir(state, UUID), f"{layout.DISK}{layout.KEPT}")
    made = os.stat(kept).st_mtime
    assert transfer.forget([UUID], state, made_before=made - 10) == []
    assert content(state) == [*before, f"disk.info{layout.KEPT}", f"disk{layout.KEPT}"]
    assert transfer.forget([UUID], state, made_before=made + 10) == [UUID]
    assert content(state) == before
