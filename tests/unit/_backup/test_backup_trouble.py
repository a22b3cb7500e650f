# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups where the store is damaged, full or out of reach, and where the host has no room: who asks is told, nothing
is written, the guest runs on, and the next backup goes on."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import typing as t

import pytest

from tests.unit._backup import cheap_repository
from tests.unit._backup.hypervisor import EngineError, Hypervisor, answer_of, wait
from tests.unit._backup.place import Place

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        shutil.which("libvirtd") is None or shutil.which("restic") is None, reason="needs libvirtd, restic"
    ),
]
SFTP_SERVER = "/usr/lib/openssh/sftp-server"


@pytest.fixture(scope="module")
def kept(host: Hypervisor) -> Place:
    path = host.path / "kept"
    path.mkdir()
    return Place(host, path)


@pytest.fixture
def place(kept: Place, tmp_path: pathlib.Path) -> t.Iterator[Place]:
    """The place with a copy of its store, to be damaged, and nothing of it kept on the host."""
    whole, kept.store = kept.store, tmp_path / "store"
    shutil.copytree(whole, kept.store)
    shutil.rmtree(f"{kept.path}.cache", ignore_errors=True)
    yield kept
    kept.store = whole


def is_refused(place: Place, **more: t.Any) -> None:
    """Have verify and restore name the backup and its disk, and write nothing."""
    message = place.refuses_to_restore(**more)
    assert "backup " in message, message  # the one that is damaged, which this one may need
    complaints = place.do("verify", "second", **more)
    assert complaints, "verify finds nothing"
    assert all("backup second, disk vda" in each or "backup second, all disks" in each for each in complaints)


def packs(place: Place) -> list[pathlib.Path]:
    """List the files of restic, the largest first: those with the disk's bytes."""
    return sorted(pathlib.Path(place.store).glob("data/*/*"), key=lambda path: -path.stat().st_size)


def damage_pack(pack: pathlib.Path, is_there: bool) -> None:
    content = bytearray(pack.read_bytes())
    pack.chmod(0o600)
    pack.unlink()
    if is_there:
        content[len(content) // 3] ^= 1
        pack.write_bytes(content)


@pytest.mark.parametrize("is_there", [True, False], ids=["one bit flipped", "missing"])
def test_damaged_packs_are_named(place: Place, is_there: bool) -> None:
    for pack in packs(place):
        damage_pack(pack, is_there)
    is_refused(place, stall=2.0)  # restic asks for what is missing until it is given up


def test_one_bit_in_one_pack_is_named(place: Place) -> None:
    damage_pack(packs(place)[0], True)
    is_refused(place)


def test_a_wrong_key_opens_nothing(place: Place) -> None:
    assert "does not open with this key" in place.refuses_to_restore(key="another")
    with pytest.raises(EngineError, match="does not open with this key"):
        place.do("verify", "second", key="another")


@pytest.mark.parametrize("left", [0.999, 0.5, 0.02], ids=["its end", "a block", "the manifest"])
def test_an_object_that_was_cut_off_is_named(host: Hypervisor, tmp_path: pathlib.Path, left: float) -> None:
    path = host.path / f"plain-{left}"
    path.mkdir()
    place = Place(host, path, key=None)
    newest = max(pathlib.Path(place.store).glob("*[0-9a-f]"), key=lambda each: each.stat().st_mtime_ns)
    os.truncate(newest, int(newest.stat().st_size * left))
    is_refused(place, cache=str(tmp_path / "other-host"))
    is_refused(place)  # where the manifest is kept


def test_a_map_that_was_cut_off_is_named(host: Hypervisor, tmp_path: pathlib.Path) -> None:
    path = host.path / "map"
    path.mkdir()
    place = Place(host, path, key=None)
    newest = max(pathlib.Path(place.store).glob("*[0-9a-f]"), key=lambda each: each.stat().st_mtime_ns)
    content = newest.read_bytes()
    line = content.index(b"\n") + 1
    newest.write_bytes(content[:line] + content[line + 24 :])  # one entry of the map
    is_refused(place, cache=str(tmp_path / "other-host"))


@contextlib.contextmanager
def small(host: Hypervisor, name: str, size: str) -> t.Iterator[pathlib.Path]:
    """A small file system at a path of the host."""
    path = host.path / name
    path.mkdir()
    subprocess.run(host.inside("mount", "-t", "tmpfs", "-o", f"size={size},mode=711", "tmpfs", str(path)), check=True)
    try:
        yield path
    finally:
        subprocess.run(host.inside("umount", "-l", str(path)), check=True)


def test_a_full_store_is_said_and_the_next_backup_goes_on(kept: Place, host: Hypervisor) -> None:
    with small(host, "small", "4M") as path:
        store = {"store": str(path / "store"), "cache": str(host.path / "small-cache")}
        cheap_repository.make(path / "store", "secret")
        kept.do("take", "before", **store)
        kept.write(0, 6 << 20)
        with pytest.raises(EngineError, match="no space left on device"):
            kept.do("take", "full", **store)
        assert kept.guest.is_active()
        subprocess.run(host.inside("mount", "-o", "remount,size=64M", str(path)), check=True)
        kept.goes_on("after", **store)


@pytest.mark.parametrize(
    ("limit", "reserve", "message"),
    [(1 << 19, 0, "the guest overwrote [0-9]+ bytes"), (1 << 30, 30 << 20, "has less than [0-9]+ bytes left")],
)
def test_a_guest_that_overwrites_much_ends_its_backup_and_runs_on(
    place: Place, host: Hypervisor, limit: int, reserve: int, message: str
) -> None:
    place.do("take", "before")
    place.write(0, 6 << 20)  # more than is read ahead of what is stored
    with small(host, f"scratch-{limit}", "32M") as scratch:
        process, go_on = place.begin("third", limit=limit, reserve=reserve, scratch=str(scratch))
        place.write(0, 4 << 20)
        wait(lambda: host.virsh("backup-dumpxml", place.guest.name, check=False) == "" or None, "the job goes on")
        go_on()
        with pytest.raises(EngineError, match=message):
            answer_of(process)
    assert place.guest.is_active()
    place.goes_on(f"after-{limit}")


@pytest.mark.skipif(not os.path.exists(SFTP_SERVER), reason="needs openssh-sftp-server")
def test_a_network_that_is_cut_is_said_and_the_next_backup_goes_on(
    kept: Place, host: Hypervisor, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ssh, pids = tmp_path / "bin/ssh", tmp_path / "pids"  # instead of ssh: the other host's end of it
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\necho $$ >>{pids}\nexec {SFTP_SERVER}\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ssh.parent}:{os.environ['PATH']}")
    store = {"store": f"sftp:backup@vault:{tmp_path / 'far'}", "cache": str(tmp_path / "cache")}
    cheap_repository.make(tmp_path / "far", "secret")
    kept.do("take", "before", **store)
    kept.write(0, 6 << 20)
    process, go_on = kept.begin("cut", **store)
    pids.unlink()
    go_on()
    pid = wait(lambda: int(pids.read_text().split()[0]) if pids.exists() else None, "restic does not begin")
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EngineError, match=r"sftp|ssh|connection|EOF"):
        answer_of(process)
    assert kept.guest.is_active()
    kept.goes_on("after-cut", **store)
