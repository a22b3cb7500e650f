# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of a real guest's disks on a second host: what changed, whatever became of the guest, and beside backups."""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import typing as t
import uuid

import pytest

from tests.unit._backup.conftest import host
from tests.unit._backup.hypervisor import EngineError, Guest, Hypervisor, answer_of, wait

__all__ = ["host"]

SIZE = 8 << 20
UNPACK = ["tar", "--extract", "--sparse", "--no-same-owner", "--file=-", "--directory=STAGING"]


class Pair:
    """A guest with two disks on a host, a second place for its copies, and a shadow of what the guest wrote."""

    def __init__(self, running: Hypervisor, path: pathlib.Path) -> None:
        self.host, self.path = running, path
        number = str(uuid.uuid4())
        own = path / "first/instances" / number
        own.mkdir(parents=True)
        (path / "second").mkdir()
        for name in ("disk", "disk.swap"):
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(own / name), str(SIZE)], check=True)
        files = {"vda": (own / "disk", "qcow2"), "vdb": (own / "disk.swap", "qcow2")}
        self.guest = Guest(running, files, number=number)
        records = {name: {"format": "qcow2", "base": None} for name in ("disk", "disk.swap")}
        (own / "disk.info").write_text(json.dumps(records))
        self.shadow = {name: bytearray(SIZE) for name in ("vda", "vdb")}
        self.guest.start()

    def write(self, disk: str, pattern: int, offset: int, length: int) -> None:
        self.guest.io(disk, f"write -P {pattern} {offset} {length}", "flush")
        self.shadow[disk][offset : offset + length] = bytes([pattern]) * length

    def copy(self, argv: t.Sequence[str] = UNPACK) -> dict[str, t.Any]:
        """Take a copy, which has to be what the guest wrote."""
        request = {
            **{"server": self.guest.uuid, "copy": str(uuid.uuid4()), "argv": list(argv)},
            **{name: str(self.path / name) for name in ("first", "second", "scratch")},
        }
        program = pathlib.Path(__file__).with_name("engine.py")
        copied = t.cast("dict[str, t.Any]", answer_of(self.host.begin(request, program)))
        for disk, file in copied["files"].items():
            raw = self.path / "raw"
            subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", file, str(raw)], check=True)
            assert raw.read_bytes() == bytes(self.shadow[disk])
        return copied

    def back_up(self, name: str) -> set[str]:
        """Take a backup; returns how its disks were taken."""
        asks = {"action": "take", "backup": name, "server": self.guest.uuid, "store": str(self.path / "store")}
        taken = self.host.engine({**asks, "scratch": str(self.path / "scratch")})
        return {kind for kind, _reason in taken["disks"].values()}

    def migrate(self, there: Hypervisor) -> None:
        """Have the running guest go on on another host, which has files of its own by the same names, as it does when
        novalite migrates it with its disks."""
        here, own, moved = self.host, self.path / "first", self.path / "moved"
        shutil.copytree(own, moved)
        for name in ("disk", "disk.swap"):
            file = moved / "instances" / self.guest.uuid / name
            subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(file), str(SIZE)], check=True)
        subprocess.run(there.inside("mount", "--bind", str(moved), str(own)), check=True)
        flags = "--live", "--p2p", "--persistent", "--undefinesource", "--copy-storage-inc"
        ways = "--migrateuri", f"unix://{self.path}/memory", "--disks-uri", f"unix://{self.path}/disks"
        here.virsh("migrate", *flags, self.guest.name, there.uri, *ways)
        for verb in ("resume", "suspend"):  # QEMU has the disks of a paused guest closed until it runs
            there.virsh(verb, self.guest.name)
        self.guest.move(there)
        self.host = there

    def checkpoints(self) -> list[str]:
        return self.host.virsh("checkpoint-list", self.guest.name, "--name").split()


@pytest.fixture
def other(host: Hypervisor) -> t.Iterator[Hypervisor]:
    """A libvirtd to which guests of `host` migrate."""
    running = Hypervisor(host.path)
    yield running
    running.close()


@pytest.fixture
def pair(host: Hypervisor) -> t.Iterator[Pair]:
    path = host.path / f"pair-{uuid.uuid4().hex[:8]}"
    path.mkdir(mode=0o711)
    made = Pair(host, path)
    yield made
    made.guest.kill()


def test_a_copy_goes_on_through_stops_failures_and_backups(pair: Pair) -> None:
    pair.write("vda", 1, 0, 1 << 20)
    pair.write("vdb", 2, 1 << 20, 1 << 20)
    first = pair.copy()
    assert (first["kind"], first["reason"]) == ("full", "hv2 has no copy") and first["moved"] > 2 << 20
    pair.write("vda", 3, 512 << 10, 64 << 10)
    pair.write("vdb", 0, 1 << 20, 128 << 10)  # zeros go, too
    second = pair.copy()
    assert second["kind"] == "incremental" and second["moved"] < 512 << 10
    # one that is cut off, on the way or at its end, changes nothing, and the next one goes on
    pair.write("vda", 4, 0, 64 << 10)
    for argv in (["false"], ["head", "-c", "20000"]):
        with pytest.raises(EngineError):
            pair.copy(argv)
    assert pair.copy()["kind"] == "incremental"
    # nor do backups end its records, nor it theirs
    assert pair.back_up("one") == {"full"}
    pair.write("vda", 5, 64 << 10, 64 << 10)
    assert pair.copy()["kind"] == "incremental"
    assert pair.back_up("two") == {"incremental"}
    pair.write("vda", 6, 64 << 10, 64 << 10)
    assert pair.copy()["kind"] == "incremental"
    names = pair.checkpoints()
    assert len([name for name in names if name.startswith("novarep-")]) == 2  # of the last one, and the one before it
    assert len([name for name in names if name.startswith("novalite-")]) == 1
    pair.write("vda", 7, 2 << 20, 64 << 10)
    pair.guest.stop()
    stopped = pair.copy()
    assert stopped["kind"] == "incremental" and 64 << 10 < stopped["moved"] < 128 << 10
    assert pair.copy()["moved"] == 0  # nothing was written since
    pair.guest.start()
    pair.write("vda", 8, 3 << 20, 64 << 10)
    started = pair.copy()
    assert started["kind"] == "incremental" and started["moved"] < 128 << 10
    assert pair.back_up("three") == {"incremental"}


def test_a_guest_whose_qemu_was_killed_is_copied_anew(pair: Pair) -> None:
    pair.write("vda", 1, 0, 1 << 20)
    pair.copy()
    pair.guest.kill()
    wait(lambda: None if pair.guest.is_active() else True, "libvirt does not see it")
    pair.guest.start()
    pair.write("vda", 2, 0, 64 << 10)
    copied = pair.copy()
    assert copied["kind"] == "full" and "lost the record of what changed" in copied["reason"]
    assert pair.copy()["kind"] == "incremental"


def test_a_guest_that_migrated_while_it_ran_is_copied_on(pair: Pair, other: Hypervisor) -> None:
    pair.write("vda", 1, 0, 1 << 20)
    pair.copy()
    pair.write("vda", 2, 1 << 20, 64 << 10)
    pair.migrate(other)
    pair.write("vdb", 3, 0, 64 << 10)
    copied = pair.copy()
    assert copied["kind"] == "incremental" and copied["moved"] < 512 << 10
    pair.write("vda", 4, 2 << 20, 64 << 10)
    assert pair.copy()["kind"] == "incremental"
