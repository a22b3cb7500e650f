# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shares of any name are mounted once, and found again; mount(8), fstab(5) and the kernel's list are imitated."""

from __future__ import annotations

import os
import pathlib
import re
import typing as t

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._disk import shares
from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from tests.support.examples import part_of
from tests.unit._rules.test_plain_text import BLANKS, BREAKERS, FAMILY

NAMES = st.lists(st.sampled_from([*BLANKS, "a", "\u6771", "\\", "#", FAMILY]), min_size=1, max_size=9).map("".join)


class Machine:
    """A host's two files, and a mount(8) that writes to one of them as the kernel shows it."""

    def __init__(self, directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state_dir, self.fstab, self.mounts = str(directory / "state"), directory / "fstab", directory / "mounts"
        self.clear()
        monkeypatch.setattr(shares, "FSTAB", str(self.fstab))
        monkeypatch.setattr(shares, "MOUNTS", str(self.mounts))
        monkeypatch.setattr(shares, "run", self._mount)

    def clear(self) -> None:
        self.fstab.write_text("# of the machine\u2028itself\nUUID=1 / ext4 defaults 0 1\n")
        self.mounts.write_text("")

    def _mount(self, command: t.Sequence[str], timeout: float) -> None:
        path = re.sub(r"[ \t\n\\\\]", lambda match: f"\\{ord(match[0]):03o}", command[-1])
        self.mounts.write_text(f"{self.mounts.read_text()}36 35 98:0 / {path} rw - nfs x rw\n")

    def mount(self, name: str) -> bool:
        share = {"name": name, "source": f"nas:/{name}", "fstype": "nfs", "options": ""}
        return bool(shares.ensure_mounted([share], self.state_dir)["changed"])


@pytest.fixture
def machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@settings(max_examples=part_of(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=NAMES)
def test_a_share_of_any_name_is_mounted_once(machine: Machine, name: str) -> None:
    machine.clear()
    assert machine.mount(name) and not machine.mount(name)
    *before, line = machine.fstab.read_text().removesuffix("\n").split("\n")
    assert before == ["# of the machine\u2028itself", "UUID=1 / ext4 defaults 0 1"]
    assert len(re.split(r"[ \t]+", line)) == 6  # as mount(8) reads it
    assert shares.mount_points() == {os.path.join(machine.state_dir, "shares", name)}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a" * 64, *(f"a{breaker}b" for breaker in BREAKERS)])
def test_a_name_that_is_none_is_refused(machine: Machine, name: str) -> None:
    with pytest.raises(NovaliteError, match="has no plain name"):
        machine.mount(name)
