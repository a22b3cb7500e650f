# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Eviction from the cache: what goes, and what never does."""

from __future__ import annotations

import os
import pathlib
import shutil
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import evict as room
from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout, removed
from ansible_collections.novalite.cloud.plugins.module_utils._disk.cache import ensure_images
from ansible_collections.novalite.cloud.plugins.module_utils._disk.evict import evict
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._disk.removal import remove_disks
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import transfer
from tests.unit._disk.state import MIB, files, needs_qemu_img, push, qcow2

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
DAY = 86400
pytestmark = needs_qemu_img


def cached(state: str, name: str, days: float, size: int = MIB) -> str:
    """A file in the cache that was last used some days ago."""
    path = pathlib.Path(state, "_base", name + layout.RAW if layout.CACHE_KEY.match(name) else name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    used = time.time() - days * DAY
    os.utime(path, (used, used))
    return name


def old(state: str, *names: str) -> None:
    for name in names:
        os.utime(os.path.join(state, "_base", f"{name}.raw"), (0, 0))


def names(result: dict[str, t.Any]) -> list[str]:
    return [image["name"] for image in result["evicted"]]


def test_by_age(state: str) -> None:
    gone, kept = cached(state, "a" * 64, 3), cached(state, "b" * 64, 1)
    planned = evict(state, 2 * DAY, check_mode=True)
    assert names(planned) == [gone] and planned["changed"] and files(state) == [gone, kept]
    assert evict(state, 2 * DAY) == planned and files(state) == [kept]
    assert planned["evicted"][0]["bytes"] == MIB and planned["evicted"][0]["age"] // DAY == 3
    assert planned["kept"] == {"count": 1, "bytes": MIB}
    again = evict(state, 2 * DAY)
    assert not again["changed"] and again["diff"] == {"before": {}, "after": {}}


@pytest.mark.parametrize(("limit", "left"), [(4, 4), (3, 3), (2, 2), (0, 0), (100, 4)])
def test_by_size_the_least_recently_used_go_first(state: str, limit: int, left: int) -> None:
    by_use = [cached(state, digit * 64, days) for digit, days in (("b", 9), ("d", 7), ("a", 5), ("c", 3))]
    assert names(evict(state, 100 * DAY, limit * MIB)) == by_use[: 4 - left]
    assert sorted(by_use[4 - left :]) == files(state)


def test_what_was_just_used_stays_whatever_the_size(state: str) -> None:
    fresh = cached(state, "a" * 64, 0)
    assert not evict(state, 100 * DAY, 0)["changed"] and files(state) == [fresh]


def test_what_a_disk_stands_on_stays(state: str, base: str) -> None:
    unused = cached(state, "a" * 64, 3)
    disk = Disk(UUID, base, 1, kernel=base, ephemeral_gb=1, swap_mb=1)
    create_disks([disk], state)
    blanks = ["ephemeral_1", "swap_1"]
    old(state, base[7:], *blanks)
    assert names(evict(state, DAY, 0)) == [unused] and files(state) == sorted([base[7:], *blanks])
    remove_disks([disk], state)
    # their age counts from the removal
    assert not evict(state, DAY)["changed"]
    old(state, base[7:], *blanks)
    assert sorted(names(evict(state, DAY))) == sorted([base[7:], *blanks]) and files(state) == []


def test_raw_disks_stand_on_nothing(state: str, base: str) -> None:
    create_disks([Disk(UUID, base, backend="raw")], state)
    old(state, base[7:])
    assert names(evict(state, DAY)) == [base[7:]]


def test_a_killed_run_that_made_no_disk_yet_has_its_base(state: str, base: str) -> None:
    path = create_disks([Disk(UUID, base)], state)["disks"][0]["path"]
    os.unlink(path)
    old(state, base[7:])
    assert not evict(state, DAY)["changed"]


def arriving(state: str, directory: pathlib.Path) -> None:
    (pathlib.Path(state) / layout.INCOMING).mkdir()
    directory.rename(pathlib.Path(state) / layout.INCOMING / UUID)


def kept_for_a_revert(state: str, directory: pathlib.Path) -> None:
    transfer.keep([UUID], state)
    for name in (layout.DISK, layout.DISK_INFO):  # as a rebuild with another image leaves them
        (directory / name).write_text("{}")


def in_the_bin(state: str, directory: pathlib.Path) -> None:
    removed.put(state, UUID)


def kept_in_the_bin(state: str, directory: pathlib.Path) -> None:
    transfer.keep([UUID], state)
    transfer.forget([UUID], state, to_bin=True)
    shutil.rmtree(directory)


def twice_in_the_bin(state: str, directory: pathlib.Path) -> None:
    """On one day, the second time of another image."""
    (directory / "before").write_text("{}")
    for name, other in ((layout.DISK, "before"), (layout.DISK_INFO, "before")):
        (directory / name).rename(directory / f"{name}.mine")
        (directory / name).write_text((directory / other).read_text())
    removed.put(state, UUID, [layout.DISK, layout.DISK_INFO])
    for name in (layout.DISK, layout.DISK_INFO):
        (directory / f"{name}.mine").rename(directory / name)
    removed.put(state, UUID, [layout.DISK, layout.DISK_INFO])
    shutil.rmtree(directory)


@pytest.mark.parametrize("where", [arriving, kept_for_a_revert, in_the_bin, kept_in_the_bin, twice_in_the_bin])
def test_what_a_disk_stands_on_stays_wherever_that_disk_is(
    state: str, base: str, where: t.Callable[[str, pathlib.Path], None]
) -> None:
    directory = pathlib.Path(create_disks([Disk(UUID, base)], state)["disks"][0]["path"]).parent
    where(state, directory)
    old(state, base[7:])
    assert not evict(state, DAY, 0)["changed"] and files(state) == [base[7:]]


@pytest.mark.parametrize("half", [None, "", '{"disk": {"base": "'])
def test_a_disk_that_begins_to_arrive_keeps_nobody_from_evicting(state: str, base: str, half: str | None) -> None:
    staging = pathlib.Path(state, layout.INCOMING, UUID)
    staging.mkdir(parents=True)
    (staging / layout.DISK).write_bytes(b"x")
    if half is not None:
        (staging / layout.DISK_INFO).write_text(half)
    assert not evict(state, DAY)["changed"] and files(state) == [base[7:]]


@pytest.mark.parametrize("text", [None, "", "{"])
def test_nothing_goes_when_a_record_is_lost(state: str, base: str, text: str | None) -> None:
    path = pathlib.Path(create_disks([Disk(UUID, base)], state)["disks"][0]["path"])
    (path.parent / "disk.info").unlink()
    if text is not None:
        (path.parent / "disk.info").write_text(text)
    old(state, base[7:])
    with pytest.raises(NovaliteError, match=r"has a disk but no disk\.info|cannot be read"):
        evict(state, DAY)
    assert files(state) == [base[7:]]


def test_finding_it_cached_is_a_use(tmp_path: pathlib.Path, state: str) -> None:
    image = qcow2(tmp_path)
    push(image, state)
    old(state, image.checksum[7:])
    assert ensure_images([image], state, check_mode=True)["images"][0]["status"] == "cached"
    assert names(evict(state, DAY, check_mode=True)) == [image.checksum[7:]]
    assert ensure_images([image], state)["images"][0]["status"] == "cached"
    assert not evict(state, DAY)["changed"]


def test_what_somebody_holds_or_has_just_used_stays(
    tmp_path: pathlib.Path, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, used, gone = (cached(state, digit * 64, 3) for digit in "abc")
    chosen = room._chosen

    def and_then_it_is_used(*args: t.Any) -> t.Any:
        going = chosen(*args)
        os.utime(os.path.join(state, "_base", f"{used}.raw"))
        return going

    monkeypatch.setattr(room, "_chosen", and_then_it_is_used)
    with locks.locked(f"image-{held}", directory=str(tmp_path / "locks")):
        result = evict(state, DAY)
    assert names(result) == [gone] and files(state) == [held, used] and result["kept"]["count"] == 2


def test_what_is_not_the_caches_stays_and_old_parts_go(tmp_path: pathlib.Path, state: str) -> None:
    for name in ("README", "a" * 63, "swap_0", "ephemeral_x", f"{'c' * 64}.part"):
        cached(state, name, 0.5 if name.endswith("part") else 99)
    endings = (".raw.part", ".raw.part.json", ".raw.converted", ".part")
    for ending in endings:
        cached(state, "a" * 64 + ending, 2)
        cached(state, "b" * 64 + ending, 2)
    cached(state, f".incoming-{'a' * 64}-x", 2)
    os.symlink("/etc/passwd", os.path.join(state, "_base", "d" * 64))
    with locks.locked(f"image-{'b' * 64}", directory=str(tmp_path / "locks")):
        assert not evict(state, DAY)["changed"]
    kept = ["README", "a" * 63, "swap_0", "ephemeral_x", "d" * 64, f"{'c' * 64}.part"]
    assert files(state) == sorted([*kept, *("b" * 64 + ending.replace(".raw", "") for ending in endings)])


def test_a_host_without_a_cache(state: str) -> None:
    assert not evict(state, DAY)["changed"] and not os.path.exists(state)
