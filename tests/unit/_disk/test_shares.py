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


def test_fstab_stays_what_it_was_but_for_its_new_line(machine: Machine, tmp_path: pathlib.Path) -> None:
    """Its mode, for it may hold passwords, what is no UTF-8 in it, and where it is."""
    path = os.path.join(machine.state_dir, "shares", "one")
    before = (
        b"//nas/x /x cifs password=secret 0 0\n# f\xfcr alle\r\n# %s as it was\nUUID=1 / ext4 defaults 0 1"
        % path.encode()
    )
    kept = tmp_path / "kept"
    kept.write_bytes(before)
    os.chmod(kept, 0o600)
    os.setxattr(kept, "user.label", b"theirs")
    machine.fstab.unlink()
    machine.fstab.symlink_to(kept)
    assert machine.mount("one") and not machine.mount("one")
    line = f"nas:/one {path} nfs defaults,_netdev,nofail 0 0\n"
    assert machine.fstab.is_symlink() and kept.read_bytes() == before + b"\n" + line.encode()
    assert kept.stat().st_mode & 0o777 == 0o600 and os.getxattr(kept, "user.label") == b"theirs"


def test_what_others_write_to_fstab_meanwhile_stays(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may take a minute to answer, and two controllers, or an administrator, do not wait for each other."""
    mount = machine._mount

    def slowly(command: t.Sequence[str], timeout: float) -> None:
        mount(command, timeout)
        if command[-1].endswith("one"):
            assert machine.mount("two")

    monkeypatch.setattr(shares, "run", slowly)
    assert machine.mount("one")
    assert [line.split()[0] for line in machine.fstab.read_text().splitlines()[-2:]] == ["nas:/two", "nas:/one"]
