# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of a real libvirt's guest: lives at random, a store of restic that is damaged, what ends a backup early."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
import typing as t

import pytest

from tests.unit._backup.hypervisor import PYTHON, REPOSITORY, EngineError, Guest, Hypervisor, answer_of, wait

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        shutil.which("libvirtd") is None or shutil.which("restic") is None, reason="needs libvirtd, restic"
    ),
]
SHORT, SECONDS = 15, 120  # lives, and the time after which no other one begins
LONG = 300


def lives(*words: str, module: str = "sequences") -> subprocess.CompletedProcess[str]:
    argv = ["unshare", "-m", "--propagation", "private", PYTHON, "-m", f"tests.unit._backup.{module}", *words]
    path = f"{REPOSITORY}:{REPOSITORY / 'collections'}"
    return subprocess.run(
        argv, cwd=REPOSITORY, env={**os.environ, "PYTHONPATH": path}, stdout=-1, text=True, check=False
    )


def test_restored_disks_are_what_they_were() -> None:
    done = lives("--count", str(SHORT), "--seconds", str(SECONDS), "--restic", "5")
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout


@pytest.mark.thorough
def test_restored_disks_are_what_they_were_in_many_lives() -> None:
    done = lives("--first", "1000", "--count", str(LONG), "--restic", "20")
    assert done.returncode == 0 and f'"passed": {LONG}' in done.stdout, done.stdout


@pytest.mark.parametrize("fault", ["older layers win", pytest.param("all", marks=pytest.mark.thorough)])
def test_planted_faults_are_found(fault: str) -> None:
    done = lives("--fault", fault, "--count", "8")
    failed = {line.partition(": seed")[0] for line in done.stdout.splitlines() if " after " in line}
    planted = {line.partition(": seed")[0] for line in done.stdout.splitlines() if ": seed" in line}
    assert planted and planted == failed, done.stdout


def test_a_wrong_merge_is_seen_by_verify() -> None:
    done = lives(module="proofs")
    assert done.returncode == 0 and "missed: []" in done.stdout, done.stdout


class Place:
    """A guest with one disk, and backups of it in a store of restic."""

    def __init__(self, host: Hypervisor, path: pathlib.Path) -> None:
        self.host, self.path, self.store = host, path, path / "store"
        disk = path / "vda"
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(disk), "8M"], check=True)
        self.guest = Guest(host, {"vda": (disk, "qcow2")})
        self.guest.start()
        self.guest.io("vda", "write -P 1 0 1M", "flush")
        self.do("take", "first")
        self.guest.io("vda", "write -P 2 512k 192k", "flush")
        self.do("take", "second")

    def asks(self, action: str, backup: str, **more: t.Any) -> dict[str, t.Any]:
        return {
            "action": action, "backup": backup, "server": self.guest.uuid, "store": str(self.store), "key": "secret",
            "scratch": str(self.path), **more,
        }  # fmt: skip

    def do(self, action: str, backup: str, **more: t.Any) -> t.Any:
        return self.host.engine(self.asks(action, backup, **more))

    def refuses_to_restore(self, **more: t.Any) -> str:
        """Return the reason why a restore is refused; nothing is there then that was not before."""
        before = set(os.listdir(self.path))
        with pytest.raises(EngineError) as refused:
            self.do("restore", "second", disks={"vda": str(self.path / "restored")}, **more)
        assert set(os.listdir(self.path)) == before
        return str(refused.value)


@pytest.fixture(scope="module")
def host() -> t.Iterator[Hypervisor]:
    with tempfile.TemporaryDirectory(prefix="backups-") as directory:
        os.chmod(directory, 0o711)
        running = Hypervisor(pathlib.Path(directory))
        try:
            yield running
        finally:
            running.close()


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


def packs(place: Place) -> list[pathlib.Path]:
    """List the files of restic, the largest first: those with the disk's bytes."""
    return sorted((path for path in place.store.glob("data/*/*")), key=lambda path: -path.stat().st_size)


def test_a_good_store_passes(place: Place) -> None:
    assert place.do("verify", "second", scratch=str(place.path)) == []
    restored = place.path / "restored"
    place.do("restore", "second", disks={"vda": str(restored)})
    compare = ["qemu-img", "compare", "-q", "-U", "-f", "qcow2", "-F", "qcow2", str(restored), str(place.path / "vda")]
    subprocess.run(compare, check=True)
    restored.unlink()


@pytest.mark.parametrize("damage", ["flipped", "missing"])
def test_verify_names_what_a_damaged_store_cannot_give(place: Place, damage: str) -> None:
    for pack in packs(place):
        content = bytearray(pack.read_bytes())
        pack.chmod(0o600)
        pack.unlink()
        if damage == "flipped":
            content[len(content) // 3] ^= 1
            pack.write_bytes(content)
    shutil.rmtree(f"{place.store}.cache", ignore_errors=True)
    assert "second" in place.refuses_to_restore()
    complaints = place.do("verify", "second", scratch=str(place.path))
    assert complaints and all("backup second" in complaint for complaint in complaints)


def test_a_wrong_key_opens_nothing(place: Place) -> None:
    assert "does not open with this key" in place.refuses_to_restore(key="another")


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


def test_a_guest_that_overwrites_much_ends_its_backup_and_runs_on(place: Place) -> None:
    place.do("take", "before")
    place.guest.io("vda", "write -P 6 0 6M", "flush")  # more than one request reads
    pause = place.path / "much"
    process = place.host.begin(place.asks("take", "third", pause=str(pause), limit=1 << 19))
    wait(lambda: pause.with_suffix(".reached").exists() or None, "the backup does not begin")
    place.guest.io("vda", "write -P 7 0 1M", "flush")
    wait(lambda: place.host.virsh("backup-dumpxml", place.guest.name, check=False) == "" or None, "the job goes on")
    pause.with_suffix(".go").touch()
    with pytest.raises(EngineError, match=r"the guest overwrote [0-9]+ bytes meanwhile"):
        answer_of(process)
    place.guest.io("vda", "write -P 8 0 64k", "flush")
    fourth = place.do("take", "fourth")
    assert fourth["disks"]["vda"] == ["incremental", ""]
    assert place.do("verify", "fourth", scratch=str(place.path)) == []
    assert place.do("list", "")["left_over"] == []


def test_two_backups_of_a_guest_do_not_meet(place: Place) -> None:
    pause = place.path / "two"
    process = place.host.begin(place.asks("take", "fifth", pause=str(pause)))
    wait(lambda: pause.with_suffix(".reached").exists() or None, "the backup does not begin")
    with pytest.raises(EngineError, match="another run has held the lock"):
        place.do("take", "sixth")
    pause.with_suffix(".go").touch()
    assert answer_of(process)["consistency"] == "crash"
