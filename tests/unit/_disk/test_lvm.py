# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands to LVM, and their order. That LVM does it, molecule's scenario `kernel` shows."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import lvm, volumes
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host.command import CommandError, Result

ONE = "0b9c2f8a-6d1e-4e55-9b1e-0b8f0f6d3a01"
NAME, UNFINISHED = f"volume-{ONE}", f"unfinished-volume-{ONE}"
SPEC = {"id": ONE, "backend": "lvm", "options": {"volume_group": "fast"}, "format": "raw", "size_gb": 1}


class Lvm:
    """A volume group: the sizes of its volumes in GiB, those that are wiped, and what was asked of it."""

    def __init__(self) -> None:
        self.there: dict[str, int] = {}
        self.wiped: set[str] = set()
        self.asked: list[str] = []
        self.broken = ""  # a command that fails

    def run(self, argv: t.Sequence[str], **_more: t.Any) -> Result:
        command, last = argv[0], argv[-1].rpartition("/")[2]
        if command == self.broken:
            raise CommandError(argv, 5, "it is broken")
        if command == "lvs":
            return Result(0, "".join(f"  {name} {size << 30}\n" for name, size in self.there.items()), "")
        self.asked.append(command)
        if command == "lvcreate":
            self.there[argv[argv.index("-n") + 1]] = int(argv[argv.index("-L") + 1].rstrip("g"))
        elif command == "lvrename":
            self.there[argv[3]] = self.there.pop(argv[2])
        elif command == "blkdiscard":
            self.wiped.add(last)
        elif command == "lvremove":
            assert last in self.wiped, f"{last} is removed with its content"
            del self.there[last]
        return Result(0, "", "")


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Lvm:
    fake = Lvm()
    monkeypatch.setattr(lvm, "run", fake.run)
    monkeypatch.setattr(lvm, "_lvm", lambda *argv, **more: fake.run(argv, **more))
    monkeypatch.setattr(lvm, "wait_for", lambda path: None)
    return fake


def test_one_that_is_filled_has_its_name_only_once_it_is_whole(group: Lvm) -> None:
    group.there[UNFINISHED] = 7  # of a run that was killed
    seen = []

    def fill(path: str) -> None:
        seen.append((path, dict(group.there)))

    lvm.create("fast", NAME, 1, fill)
    assert seen == [(f"/dev/fast/{UNFINISHED}", {UNFINISHED: 1})]
    assert group.there == {NAME: 1}
    assert group.asked[:3] == ["lvchange", "blkdiscard", "lvremove"]


@pytest.mark.parametrize("broken", ["fill", "lvrename"])
def test_nothing_is_left_of_one_that_could_not_be_filled(group: Lvm, broken: str) -> None:
    def fill(path: str) -> None:
        if broken == "fill":
            raise NovaliteError("the source is gone")

    group.broken = broken
    with pytest.raises(NovaliteError):
        lvm.create("fast", NAME, 1, fill)
    assert group.there == {} and group.wiped == {UNFINISHED}


def test_what_cannot_be_wiped_stays(group: Lvm) -> None:
    group.there[NAME] = 1
    group.broken = "blkdiscard"
    with pytest.raises(NovaliteError, match="cannot be wiped, and stays"):
        lvm.remove("fast", NAME)
    assert group.there == {NAME: 1}


@pytest.mark.root
@pytest.mark.parametrize("name", [NAME, UNFINISHED])
def test_a_volume_goes_with_what_a_killed_run_had_begun(group: Lvm, tmp_path: pathlib.Path, name: str) -> None:
    group.there = {name: 1, "volume-of-another": 1}
    for check_mode, action in ((True, "delete"), (False, "delete"), (False, "none")):
        done = volumes.ensure([SPEC], "absent", str(tmp_path), t.cast(volumes.Guests, None), check_mode)
        assert [(result.action, result.error) for result in done] == [(action, None)]
    assert group.there == {"volume-of-another": 1}
