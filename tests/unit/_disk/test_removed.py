# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bin: what repairs took is there as it was, where nobody else can lead us, until its days are over."""

from __future__ import annotations

import datetime
import errno
import os
import pathlib
import time
import types
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout, removed
from ansible_collections.novalite.cloud.plugins.module_utils._disk.evict import evict
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk
from ansible_collections.novalite.cloud.plugins.module_utils._disk.records import Record, write_records
from ansible_collections.novalite.cloud.plugins.module_utils._disk.removal import empty_bin, remove_disks
from ansible_collections.novalite.cloud.plugins.module_utils._domain.usage import usage
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._transfer import transfer

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
KEY = "0" * 64
TODAY = "2026-11-20"


class Day(datetime.date):
    @classmethod
    def today(cls) -> Day:
        return cls.fromisoformat(TODAY)


@pytest.fixture(autouse=True)
def one_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """The day does not change at midnight."""
    monkeypatch.setattr(removed, "datetime", types.SimpleNamespace(date=Day, timedelta=datetime.timedelta))


@pytest.fixture
def disk(tmp_path: pathlib.Path) -> pathlib.Path:
    """The directory of an instance whose disk stands on a cached image."""
    layout.prepare_state_dir(str(tmp_path))
    directory = tmp_path / "instances" / UUID
    directory.mkdir()
    (directory / "disk").write_bytes(b"what it wrote" * 1000)
    write_records(str(directory), {"disk": Record(format="raw", base=KEY)})
    return directory


def bin_it(state_dir: pathlib.Path, **more: t.Any) -> dict[str, t.Any]:
    return remove_disks([Disk(UUID)], str(state_dir), to_bin={UUID}, **more)


def test_a_disk_is_in_the_bin_as_it_was_and_goes_with_its_day(tmp_path: pathlib.Path, disk: pathlib.Path) -> None:
    assert bin_it(tmp_path, check_mode=True)["changed"] and disk.is_dir()
    result = bin_it(tmp_path, wipe="zero")
    assert result["changed"] and not disk.exists()
    kept = tmp_path / "removed" / TODAY / UUID
    assert (kept / "disk").read_bytes() == b"what it wrote" * 1000 and (kept / layout.DISK_INFO).exists()
    assert (tmp_path / "removed").stat().st_mode & 0o777 == 0o700
    (day,) = removed.days(str(tmp_path))
    assert day.day == TODAY and day.disks == 1 and day.bytes >= 13000
    assert not bin_it(tmp_path)["changed"]
    assert empty_bin(str(tmp_path), [TODAY], 0, check_mode=True)["changed"] and kept.exists()
    (emptied,) = empty_bin(str(tmp_path), [TODAY], 0, wipe="zero")["emptied"]
    assert emptied == day._asdict() and removed.days(str(tmp_path)) == []
    assert not empty_bin(str(tmp_path), [TODAY], 0)["changed"]


def test_what_is_removed_twice_on_a_day_is_there_twice(tmp_path: pathlib.Path, disk: pathlib.Path) -> None:
    for content in (b"1", b"2", b"3"):
        disk.mkdir(exist_ok=True)
        (disk / "disk").write_bytes(content)
        bin_it(tmp_path)
    kept = sorted((tmp_path / "removed" / TODAY).iterdir())
    assert [path.name for path in kept] == [UUID, f"{UUID}.2", f"{UUID}.3"]
    assert [(path / "disk").read_bytes() for path in kept] == [b"1", b"2", b"3"]


def test_without_the_bin_a_disk_is_gone(tmp_path: pathlib.Path, disk: pathlib.Path) -> None:
    assert remove_disks([Disk(UUID)], str(tmp_path))["changed"]
    assert not disk.exists() and removed.days(str(tmp_path)) == []


@pytest.mark.parametrize("part", ["removed", f"removed/{TODAY}", "instances"])
def test_no_link_leads_out_of_the_bin(tmp_path: pathlib.Path, disk: pathlib.Path, part: str) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    place = tmp_path / part
    place.parent.mkdir(exist_ok=True, mode=0o700)
    if place.exists():
        place.rename(tmp_path / "aside")
    place.symlink_to(victim)
    with pytest.raises((OSError, NovaliteError)):
        removed.put(str(tmp_path), UUID)
    if part != "instances":
        with pytest.raises((OSError, NovaliteError)):
            removed.days(str(tmp_path))
        with pytest.raises((OSError, NovaliteError)):
            removed.empty(str(tmp_path), [TODAY])
    assert list(victim.iterdir()) == []


@pytest.mark.root
@pytest.mark.parametrize("change", ["owner", "mode"])
def test_a_bin_that_others_write_to_is_not_used(tmp_path: pathlib.Path, disk: pathlib.Path, change: str) -> None:
    day = tmp_path / "removed" / TODAY
    day.mkdir(parents=True, mode=0o700)
    day.chmod(0o770) if change == "mode" else os.chown(day, 12345, 12345)
    for use in (lambda: removed.put(str(tmp_path), UUID), lambda: removed.empty(str(tmp_path), [TODAY])):
        with pytest.raises(NovaliteError, match="only root may write where"):
            use()
    assert disk.is_dir()


@pytest.mark.parametrize("name", ["..", ".", "../instances", "2026-11-01/..", "nothing"])
def test_only_days_are_emptied(tmp_path: pathlib.Path, disk: pathlib.Path, name: str) -> None:
    (tmp_path / "removed").mkdir(mode=0o700)
    with pytest.raises(NovaliteError, match="is not a day of"):
        removed.empty(str(tmp_path), [name])
    assert disk.is_dir()


def test_instances_on_a_file_system_of_their_own_stay(
    tmp_path: pathlib.Path, disk: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(*_names: t.Any, **_fds: t.Any) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "rename", elsewhere)
    with pytest.raises(NovaliteError, match=r"another file system .* mount one file system for all of"):
        removed.put(str(tmp_path), UUID)
    assert disk.is_dir()


def test_an_image_stays_as_long_as_a_removed_disk_stands_on_it(tmp_path: pathlib.Path, disk: pathlib.Path) -> None:
    image = tmp_path / "_base" / f"{KEY}.raw"
    image.write_bytes(b"image")
    bin_it(tmp_path)
    os.utime(image, (1, 1))
    assert evict(str(tmp_path), 600)["evicted"] == [] and image.exists()
    empty_bin(str(tmp_path), [TODAY], 0)
    assert [gone["name"] for gone in evict(str(tmp_path), 600)["evicted"]] == [KEY]


def test_the_oldest_days_go_where_space_is_short(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in ("2026-11-01", "2026-11-02", "2026-11-03"):
        directory = tmp_path / "removed" / day / UUID
        directory.mkdir(parents=True, mode=0o700)
        (directory / "disk").write_bytes(bytes([1]) * 40960)
    free = 7
    monkeypatch.setattr(os, "statvfs", lambda _path: os.statvfs_result((4096, 4096, 100, free, free, 0, 0, 0, 0, 0)))
    assert removed.too_many(str(tmp_path), 7) == []
    assert removed.too_many(str(tmp_path), 10) == ["2026-11-01"]
    assert removed.too_many(str(tmp_path), 20) == ["2026-11-01", "2026-11-02"]
    assert removed.too_many(str(tmp_path), 90) == ["2026-11-01", "2026-11-02", "2026-11-03"]


def test_days_are_kept_as_long_as_they_are_to() -> None:
    now = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))
    days = ["2026-11-20", "2026-11-06", "2026-11-05", "2025-01-01", "2027-01-01"]
    assert removed.expired(days, now, 14) == ["2025-01-01", "2026-11-05"]
    assert removed.expired(days, now, 0) == ["2025-01-01", "2026-11-05", "2026-11-06"]


def test_the_bin_counts_as_used() -> None:
    domains = [{"uuid": "a", "state": "running", "vcpus": 1, "memory_mb": 2, "disk_gb": 3}]
    assert usage(domains, (), "running", 4) == (1, 2, 7)
    assert usage(domains, ("a",), "all", 4) == (0, 0, 4)
    assert usage(domains, (), "none", 4) == (0, 0, 4)


def test_copies_for_a_revert_are_kept_when_a_repair_takes_or_uses_them(
    tmp_path: pathlib.Path, disk: pathlib.Path
) -> None:
    kept = tmp_path / "removed" / TODAY / UUID
    (disk / "disk.resize").write_bytes(b"old size")
    (disk / "disk.info.resize").write_text("{}")
    assert transfer.restore([UUID], str(tmp_path), to_bin=True) == [UUID]
    assert (disk / "disk").read_bytes() == b"old size" and (kept / "disk").read_bytes() == b"what it wrote" * 1000
    (disk / "disk.resize").write_bytes(b"once more")
    assert transfer.forget([UUID], str(tmp_path), to_bin=True) == [UUID]
    assert (kept / "disk.resize").read_bytes() == b"once more" and not (disk / "disk.resize").exists()
