# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Disks that come with an instance which moves or gets another size, where it starts from a volume; needs qemu-img."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout, records, removed
from ansible_collections.novalite.cloud.plugins.module_utils._disk.evict import evict
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import KINDS, NOTE, Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._disk.removal import remove_disks
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
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


def test_what_arrives_keeps_what_it_stands_on(state: str, base: str) -> None:
    """From the first file that comes, the record of the disks, which takes hours where a disk is large; and what was
    kept before a resize, wherever it lies."""
    disk = Disk(UUID, base)
    create_disks([disk], state)
    arrive(state, UUID)
    assert transfer.FILES[0] == layout.DISK_INFO
    for other in (instance_dir(state, UUID), channel.staging_of(state, UUID)):
        os.unlink(os.path.join(other, "disk"))
    remove_disks([disk], state)
    os.utime(layout.cache_path(state, base), (0, 0))
    assert not evict(state, 0, 0)["changed"]
    shutil.rmtree(channel.staging_of(state, UUID))
    create_disks([disk], state)
    transfer.keep([UUID], state)
    transfer.forget([UUID], state, to_bin=True)
    remove_disks([disk], state)
    os.utime(layout.cache_path(state, base), (0, 0))
    assert not evict(state, 0, 0)["changed"]
    (kept,) = removed.instances(state)
    assert os.path.exists(os.path.join(kept, f"disk{layout.KEPT}"))
    shutil.rmtree(kept)
    assert evict(state, 0, 0)["changed"]


def test_a_disk_without_what_it_stands_on_is_not_received(state: str, base: str) -> None:
    """Its source still has all of it."""
    disk = Disk(UUID, base)
    create_disks([disk], state)
    arrive(state, UUID)
    os.unlink(layout.cache_path(state, base))
    before = content(state)
    with pytest.raises(NotFoundError, match="not in the cache of this host"):
        receive(state, disk)
    assert content(state) == before


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


def written(state: str) -> pathlib.Path:
    """The directory of an instance whose disks, of before and after a resize, tell which they are."""
    create_disks([Disk(UUID, None, root=True, virtual_size_gb=1, ephemeral_gb=1, backend="raw")], state)
    directory = pathlib.Path(instance_dir(state, UUID))
    for name in ("disk", "disk.eph0"):
        (directory / name).write_text("before")
    transfer.keep([UUID], state)
    for name in ("disk", "disk.eph0"):
        (directory / name).write_text("after")
    (directory / "disk.swap").write_text("after")
    return directory


def texts(directory: pathlib.Path) -> list[str]:
    return [(directory / name).read_text() for name in ("disk", "disk.eph0")]


FORMER = Disk(UUID, None, virtual_size_gb=1, ephemeral_gb=1, backend="raw")


@pytest.mark.parametrize("cut_after", range(5))
def test_what_is_left_of_copies_whose_removal_was_cut_off_is_not_put_back(
    state: str, monkeypatch: pytest.MonkeyPatch, cut_after: int
) -> None:
    directory = written(state)
    there = len(content(state))
    with monkeypatch.context() as patched:
        cut_off(patched, "unlink", cut_after)
        with contextlib.suppress(InterruptedError):
            transfer.forget([UUID], state)
    assert there - len(content(state)) == min(cut_after, 3)
    if cut_after:
        with pytest.raises(NovaliteError, match=r"is not there|is not whole"):
            transfer.look_for_former([FORMER], [UUID], state)
        assert transfer.restore([UUID], state) == []
        assert texts(directory) == ["after", "after"]
    else:
        transfer.look_for_former([FORMER], [UUID], state)


def cut_off(patched: pytest.MonkeyPatch, call: str, after: int) -> None:
    """Have the run end before one more `call` of the system than `after`."""
    left, real = iter(range(after)), getattr(os, call)

    def cut(*args: object) -> None:
        if next(left, None) is None:
            raise InterruptedError
        real(*args)

    patched.setattr(os, call, cut)


@pytest.mark.parametrize("cut_after", range(4))
def test_a_revert_that_was_cut_off_is_brought_to_its_end(
    state: str, monkeypatch: pytest.MonkeyPatch, cut_after: int
) -> None:
    directory = written(state)
    with monkeypatch.context() as patched:
        cut_off(patched, "replace", cut_after)
        with contextlib.suppress(InterruptedError):
            transfer.restore([UUID], state)
    assert transfer.restore([UUID], state) == ([UUID] if cut_after < 3 else [])
    assert texts(directory) == ["before", "before"]
    assert content(state) == ["disk", "disk.eph0", "disk.fresh", "disk.info"]


@pytest.mark.parametrize("name", ["disk", "disk.eph0", None])
def test_a_disk_of_before_the_move_is_missed_and_not_made_anew(state: str, name: str | None) -> None:
    create_disks([FORMER], state)
    directory = pathlib.Path(instance_dir(state, UUID))
    transfer.look_for_former([FORMER], (), state)
    if name is None:
        shutil.rmtree(directory)
    else:
        (directory / name).unlink()
    before = content(state) if name else None
    for look in (
        lambda: transfer.look_for_former([FORMER], (), state),
        lambda: create_disks([FORMER], state, existing=KINDS),
    ):
        with pytest.raises(NovaliteError, match=rf"its disk .*/{name or 'disk'} is not there, and none is made"):
            look()
    assert (content(state) if name else directory.exists()) == (before if name else False)


def test_a_move_adds_the_disks_that_its_flavor_adds(state: str) -> None:
    create_disks([Disk(UUID, None, virtual_size_gb=1, backend="raw")], state)
    assert create_disks([FORMER], state, existing=["root"])["disks"][0]["created"] == ["disk.eph0"]
