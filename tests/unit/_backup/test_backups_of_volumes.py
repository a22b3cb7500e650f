# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of volumes by the step volume_backup: a volume alone, and one that a running guest writes to."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from tests.unit._backup import cheap_repository
from tests.unit._backup.hypervisor import PATIENCE, PYTHON, REPOSITORY, Guest, Hypervisor
from tests.unit._backup.test_backups_of_servers import state_dir

__all__ = ["state_dir"]
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        shutil.which("libvirtd") is None or shutil.which("restic") is None, reason="needs libvirtd, restic"
    ),
]
FIRST, SECOND, THIRD, FOURTH = (f"{number * 8}-0000-4000-8000-000000000000" for number in "1234")
BLOCK = 64 << 10


class Disk:
    """A volume of 4 MiB in a file of this host."""

    def __init__(self, host: Hypervisor, state_dir: str, volume_id: str) -> None:
        self.host, self.state_dir, self.id = host, state_dir, volume_id
        self.spec = {"id": volume_id, "kind": "volume", "backend": "file", "options": {}, "format": "qcow2"}
        self.path = pathlib.Path(layout.volume_path(self.spec, state_dir))
        self.path.parent.mkdir(exist_ok=True)
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(self.path), "4M"], check=True)

    def do(
        self, state: str, backup: str, guest: Guest | None = None, check_mode: bool = False, **more: t.Any
    ) -> JsonObject:
        """Return the step's entry about a backup of this volume."""
        volume = {**self.spec, "size_gb": 1, "instance_uuid": None if guest is None else guest.uuid}
        entry = {"backup_id": backup, "chain": self.id, "volume": volume, **more}
        params = {"backups": [entry], "state": state, "state_dir": self.state_dir, "key": "ab" * 32}
        params["store"] = f"{self.state_dir}.store"
        done = subprocess.run(
            self.host.inside(PYTHON, str(pathlib.Path(__file__).with_name("step.py")), "volume_backup"),
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collections"), "TMPDIR": str(self.host.path)},
            input=json.dumps({"params": params, "check_mode": check_mode}),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        (entry,) = result["backups"]
        return {**result, **entry}

    def write(self, byte: int, at: int) -> None:
        command = f"write -P {byte} {at} {BLOCK}"
        subprocess.run(["qemu-io", "-f", "qcow2", "-c", command, str(self.path)], check=True, stdout=subprocess.DEVNULL)

    def read(self, at: int) -> int:
        out = self.path.with_suffix(".raw")
        subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(self.path), str(out)], check=True)
        with open(out, "rb") as file:
            file.seek(at)
            byte = file.read(1)[0]
        out.unlink()
        return byte


def without_ledger(*words: str, ok: int = 0) -> list[str]:
    """Run the program that needs no ledger; return the lines that it writes."""
    name = f"{layout.__name__.rpartition('._disk')[0]}._backup.without_ledger"
    done = subprocess.run(
        [PYTHON, "-m", name, *words],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collections")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == ok, done.stderr
    return (done.stderr if ok else done.stdout).splitlines()


def test_of_a_volume_what_changed_is_taken_wherever_it_was_written(host: Hypervisor, state_dir: str) -> None:
    """Alone, in a guest that runs, and alone again; a restore gives the volume what it was."""
    volume = Disk(host, state_dir, "aaaaaaaa-0000-4000-8000-000000000001")
    volume.write(1, 0)
    first = volume.do("taken", FIRST, full=True)
    assert (first["error"], first["record"]["parent_id"], first["record"]["moved"]) == (None, None, BLOCK)
    volume.write(2, 1 << 20)
    second = volume.do("taken", SECOND)
    assert (second["record"]["parent_id"], second["record"]["moved"]) == (FIRST, BLOCK)
    guest = Guest(host, {"vda": (volume.path, "qcow2")}, {"vda": volume.id})
    guest.start()
    try:
        third = volume.do("taken", THIRD, guest)
        assert third["error"] is None and third["record"]["parent_id"] is None  # it is another disk's name now
        guest.io("vda", f"write -P 3 2M {BLOCK}", "flush")
        fourth = volume.do("taken", FOURTH, guest)
        assert (fourth["record"]["parent_id"], fourth["record"]["moved"]) == (THIRD, BLOCK)
    finally:
        guest.kill()
    assert volume.do("restored", SECOND)["error"] is None
    assert [volume.read(at) for at in (0, 1 << 20, 2 << 20)] == [1, 2, 0]
    assert volume.do("restored", FOURTH)["error"] is None
    assert [volume.read(at) for at in (0, 1 << 20, 2 << 20)] == [1, 2, 3]
    key = host.path / "key"
    key.write_text("ab" * 32)
    words = ["--store", f"{state_dir}.store", "--key-file", str(key)]
    assert without_ledger(*words) == [volume.id]
    assert [line.split()[0] for line in without_ledger(volume.id, *words)] == [FIRST, SECOND, THIRD, FOURTH]
    there = host.path / "there"
    (file,) = without_ledger(volume.id, *words, "--backup", SECOND, "--into", str(there))
    subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", file, str(there / "raw")], check=True)
    data = (there / "raw").read_bytes()
    assert (data[0], data[1 << 20], data[2 << 20]) == (1, 2, 0)
    key.write_text("cd" * 32)
    assert "does not open with this key" in without_ledger(volume.id, *words, "--backup", SECOND, ok=1)[0]
    assert "has no backups of" in without_ledger(THIRD, *words, ok=1)[0]
    planned = [volume.do("absent", backup, check_mode=True)["action"] for backup in (FIRST, FIRST.replace("1", "9"))]
    assert planned == ["delete", "none"]
    gone = volume.do("absent", FIRST)
    assert (gone["error"], [record["id"] for record in gone["records"]]) == (None, [SECOND])
    assert volume.do("absent", FIRST)["action"] == "none"
    assert volume.do("restored", SECOND)["error"] is None  # it stands for itself now
    assert "is not in the store" in volume.do("restored", FIRST)["error"]
    assert [volume.read(at) for at in (0, 1 << 20, 2 << 20)] == [1, 2, 0]


def test_a_disk_of_a_servers_backup_becomes_a_new_volume(host: Hypervisor, state_dir: str) -> None:
    """The disk that is named, and no other; after a failure nothing of the volume is there."""
    disks = {name: pathlib.Path(state_dir) / f"guest-{name}" for name in ("vda", "vdb")}
    for byte, path in enumerate(disks.values(), start=1):
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(path), "4M"], check=True)
        command = f"write -P {byte} 1M {BLOCK}"
        subprocess.run(["qemu-io", "-f", "qcow2", "-c", command, str(path)], check=True, stdout=subprocess.DEVNULL)
    guest = Guest(host, {name: (path, "qcow2") for name, path in disks.items()}, {"vdb": THIRD})
    guest.start()
    server = guest.uuid
    cheap_repository.make(pathlib.Path(f"{state_dir}.store", server), "ab" * 32)
    try:
        asks = {"action": "take", "backup": FIRST, "server": server, "store": f"{state_dir}.store/{server}"}
        host.engine({**asks, "key": "ab" * 32, "scratch": state_dir, "cache": f"{state_dir}.cache"})
    finally:
        guest.kill()
    volume = Disk(host, state_dir, "aaaaaaaa-0000-4000-8000-000000000003")
    volume.path.unlink()
    wrong = volume.do("restored", FIRST, chain=server, disk="vdz")
    assert "has no disk vdz: name one of vda, vdb" in wrong["error"] and not volume.path.exists()
    made = volume.do("restored", FIRST, chain=server, disk="vdb")
    assert (made["error"], made["id"], made["action"]) == (None, volume.id, "restore")
    assert (volume.read(1 << 20), volume.read(0)) == (2, 0)
    volume.path.unlink()
    for pack in pathlib.Path(f"{state_dir}.store", server, "data").glob("*/*"):
        pack.write_bytes(bytes(pack.stat().st_size))
    damaged = volume.do("restored", FIRST, chain=server, disk="vdb")
    assert damaged["error"] and not list(volume.path.parent.glob(f"{volume.id}*"))
