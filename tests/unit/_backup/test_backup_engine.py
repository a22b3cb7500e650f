# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of a real libvirt's guest: lives at random, a store of restic that is damaged, what ends a backup early."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest

from tests.unit._backup.hypervisor import PYTHON, REPOSITORY, EngineError, Hypervisor, answer_of, wait
from tests.unit._backup.place import Place

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        shutil.which("libvirtd") is None or shutil.which("restic") is None, reason="needs libvirtd, restic"
    ),
]
# Two lives that come to each step while it does something (what a guest that is off does is nothing, often), the first
# of which has no raw disk and the second restic as its store
SEEDS = ("5927", "8473")
LONG = 300


def lives(*words: str, module: str = "sequences") -> subprocess.CompletedProcess[str]:
    argv = ["unshare", "-m", "--propagation", "private", PYTHON, "-m", f"tests.unit._backup.{module}", *words]
    path = f"{REPOSITORY}:{REPOSITORY / 'collections'}"
    return subprocess.run(
        argv, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": path}, stdout=-1, text=True, check=False
    )


def test_restored_disks_are_what_they_were() -> None:
    done = lives("--seeds", *SEEDS, "--restic", "37")
    assert done.returncode == 0 and f'"passed": {len(SEEDS)}' in done.stdout, done.stdout


@pytest.mark.thorough
def test_restored_disks_are_what_they_were_in_many_lives() -> None:
    done = lives("--first", "1000", "--count", str(LONG), "--restic", "20")
    assert done.returncode == 0 and f'"passed": {LONG}' in done.stdout, done.stdout


@pytest.mark.parametrize(
    ("fault", "steps"), [("older layers win", "1"), pytest.param("all", "12", marks=pytest.mark.thorough)]
)
def test_planted_faults_are_found(fault: str, steps: str) -> None:
    done = lives("--fault", fault, "--count", "8", "--steps", steps)
    failed = {line.partition(": seed")[0] for line in done.stdout.splitlines() if " after " in line}
    planted = {line.partition(": seed")[0] for line in done.stdout.splitlines() if ": seed" in line}
    assert planted and planted == failed, done.stdout


def test_a_wrong_merge_is_seen_by_verify() -> None:
    done = lives(module="proofs")
    assert done.returncode == 0 and "missed: []" in done.stdout, done.stdout


@pytest.fixture(scope="module")
def kept(host: Hypervisor) -> Place:
    path = host.path / "kept"
    path.mkdir()
    return Place(host, path)


@pytest.fixture
def place(kept: Place, tmp_path: pathlib.Path) -> t.Iterator[Place]:
    """The place with a copy of its store, to be damaged."""
    whole, kept.store = kept.store, tmp_path / "store"
    shutil.copytree(whole, kept.store)
    yield kept
    kept.store = whole


def test_a_good_store_passes(place: Place) -> None:
    assert place.do("verify", "second", scratch=str(place.path)) == []
    restored = place.path / "restored"
    place.do("restore", "second", disks={"vda": str(restored)})
    compare = ["qemu-img", "compare", "-q", "-U", "-f", "qcow2", "-F", "qcow2", str(restored), str(place.path / "vda")]
    subprocess.run(compare, check=True)
    restored.unlink()


def test_a_key_is_in_no_argument(place: Place) -> None:
    pause = place.path / "pause"
    process = place.host.begin(place.asks("take", "watched", pause=str(pause)))
    wait(lambda: pause.with_suffix(".reached").exists() or None, "the backup does not begin")
    pause.with_suffix(".go").touch()
    lines = []
    while process.poll() is None:
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                lines.append(path.read_bytes())
            except OSError:
                continue
    answer_of(process)
    ours = [line for line in lines if str(place.store).encode() in line]
    assert ours and not any(b"secret" in line for line in ours)
    for path in place.path.glob("pause.*"):
        path.unlink()


def test_two_backups_of_a_guest_do_not_meet(place: Place) -> None:
    pause = place.path / "two"
    process = place.host.begin(place.asks("take", "fifth", pause=str(pause)))
    wait(lambda: pause.with_suffix(".reached").exists() or None, "the backup does not begin")
    with pytest.raises(EngineError, match="another run has held the lock"):
        place.do("take", "sixth")
    pause.with_suffix(".go").touch()
    assert answer_of(process)["consistency"] == "crash"
