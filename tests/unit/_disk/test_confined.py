# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Limits of a program that reads what tenants wrote, should they take it over: tried by one that they have."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._host import confined
from ansible_collections.novalite.cloud.plugins.module_utils._host.command import CommandError
from ansible_collections.novalite.cloud.plugins.module_utils._host.confined import Limits, run_bounded, run_confined
from ansible_collections.novalite.cloud.plugins.module_utils._snapshots import image_snapshots as snapshot
from tests.unit._disk.state import image_of, needs_qemu_img, push

UUID = "5d7b1a3e-8a57-4a3c-9d34-6a9f0f5f8f41"
pytestmark = pytest.mark.root
TAKEN_OVER = """
import json, os, resource, sys
def may(path, mode="rb"):
    try:
        open(path, mode).close()
    except OSError:
        return False
    return True
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
print(json.dumps({
    "uids": sorted(set(os.getresuid())), "groups": os.getgroups(), "caps": [
        int(status[name], 16) for name in ("CapPrm", "CapEff", "CapInh", "CapBnd", "CapAmb")],
    "privileges": status["NoNewPrivs"].strip(), "shadow": may("/etc/shadow"), "kernel": may("/dev/mem"),
    "lent": may(sys.argv[1], "r+b"), "read only": may(sys.argv[2]), "written": may(sys.argv[2], "r+b"),
    "memory": resource.getrlimit(resource.RLIMIT_AS)[0], "cpu": resource.getrlimit(resource.RLIMIT_CPU)[0],
}))
"""


@pytest.fixture
def files(tmp_path: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """Root's own, in a directory that nobody else passes."""
    tmp_path.chmod(0o700)
    for name in ("target", "source"):
        (tmp_path / name).write_bytes(b"data")
        (tmp_path / name).chmod(0o400)
    return tmp_path / "target", tmp_path / "source"


def test_one_that_was_taken_over_has_what_was_lent_and_nothing_else(files: tuple[pathlib.Path, pathlib.Path]) -> None:
    target, source = map(str, files)
    files[0].chmod(0o600)
    limits = Limits(memory=1 << 30, cpu=7)
    argv = [sys.executable, "-c", TAKEN_OVER, target, source]
    report = json.loads(run_confined(argv, reads=[source], writes=[target], limits=limits).stdout)
    (user,) = report.pop("uids")
    assert confined.FIRST_USER <= user <= confined.LAST_USER
    assert report == {
        "groups": [],
        "caps": [0] * 5,
        "privileges": "1",
        "shadow": False,
        "kernel": False,
        "lent": True,
        "read only": True,
        "written": False,
        "memory": 1 << 30,
        "cpu": 7,
    }
    assert [os.stat(path).st_uid for path in files] == [0, 0]  # given back


def test_files_are_given_back_after_a_failure_which_names_them(files: tuple[pathlib.Path, pathlib.Path]) -> None:
    target, source = map(str, files)
    argv = [sys.executable, "-c", "import sys; sys.exit(sys.argv[1] + ' is bad')", source]
    with pytest.raises(CommandError) as caught:
        run_confined(argv, reads=[source])
    assert f"{source} is bad" in caught.value.stderr and caught.value.argv == argv
    assert os.stat(source).st_uid == 0
    os.symlink("/etc/shadow", f"{target}.link")
    with pytest.raises(OSError, match="symbolic links"):
        run_confined(argv, reads=[f"{target}.link"])
    assert os.stat("/etc/shadow").st_uid == 0


def test_a_root_that_is_bounded_writes_files_and_mounts_nothing(files: tuple[pathlib.Path, pathlib.Path]) -> None:
    target, source = map(str, files)
    report = json.loads(run_bounded([sys.executable, "-c", TAKEN_OVER, target, source]).stdout)
    assert report["uids"] == [0] and report["privileges"] == "1" and report["lent"]
    assert set(report["caps"]) == {0, 1 << 1}  # CAP_DAC_OVERRIDE


@pytest.fixture
def users(state: str, base: str, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[t.Callable[[], dict[str, set[int]]]]:
    """Record what qemu-img is called for, and as whom: by a program of its name, which ends in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        called = pathlib.Path(directory, "called")
        called.mkdir()
        for path in (directory, called):
            os.chmod(path, 0o777)
        program = pathlib.Path(directory, "qemu-img")
        program.write_text(f'#!/bin/sh\n: >{called}/$1-$(id -u)\nexec {shutil.which("qemu-img")} "$@"\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")

        def users_by_command() -> dict[str, set[int]]:
            names = [name.rpartition("-") for name in os.listdir(called)]
            return {word: {int(user) for other, _dash, user in names if other == word} for word, _dash, _user in names}

        yield users_by_command


@needs_qemu_img
def test_images_and_disks_are_read_by_nobody_in_particular(
    tmp_path: pathlib.Path, state: str, base: str, users: t.Callable[[], dict[str, set[int]]]
) -> None:
    image = tmp_path / "theirs.qcow2"
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(image), "1M"], check=True)
    push(image_of(image, disk_format="qcow2"), state)
    create_disks([Disk(UUID, base)], state)
    callers = users()
    assert callers.keys() == {"create", "info", "check", "convert"} and callers.pop("create") == {0}  # the test's own
    assert all(user >= confined.FIRST_USER for of_word in callers.values() for user in of_word)
    asked = [snapshot.Snapshot(UUID, "22222222-3333-4444-8555-666666666666")]
    (taken,) = snapshot.take(asked, state, lambda _uuid: False, lambda *_args: None)
    assert taken.error is None and len(users()["convert"]) == len(callers["convert"]) + 1
    assert all(user >= confined.FIRST_USER for user in users()["convert"])
