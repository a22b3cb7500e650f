# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of a host's servers by the step server_backup: taken, proven, brought back, put back and removed."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from tests.unit._backup import cheap_repository
from tests.unit._backup.hypervisor import PATIENCE, PYTHON, REPOSITORY, Guest, Hypervisor

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(
        shutil.which("libvirtd") is None or shutil.which("restic") is None, reason="needs libvirtd, restic"
    ),
]
BASE = "sha256:" + "7" * 64
MIB = 1 << 20
FIRST, SECOND, THIRD = (f"{number * 8}-0000-4000-8000-000000000000" for number in "123")
KEY = "ab" * 32


class Server:
    """A server whose root disk stands on a base, with the variables of a firmware."""

    def __init__(self, host: Hypervisor, state_dir: str, uuid: str | None = None) -> None:
        self.host, self.state_dir = host, state_dir
        root = pathlib.Path(state_dir, "instances", "new", "disk")  # moved to the UUID that the guest gets
        self.guest = Guest(host, {"vda": (root, "qcow2")})
        create_disks([Disk(self.guest.uuid, base=BASE)], state_dir)
        self.directory = pathlib.Path(state_dir, "instances", self.guest.uuid)
        xml = host.virsh("dumpxml", self.guest.name).replace("/instances/new/", f"/instances/{self.guest.uuid}/")
        host.virsh("define", "/dev/stdin", text=xml)
        self.disk = self.directory / "disk"
        (self.directory / "nvram.fd").write_bytes(b"first")

    def get_cheap_store(self) -> None:
        """Give it a store that costs less than the one that its first backup makes."""
        cheap_repository.make(pathlib.Path(f"{self.state_dir}.store", self.guest.uuid), KEY)

    def do(self, state: str, backup: str, check_mode: bool = False, **more: t.Any) -> JsonObject:
        """Return the step's entry about a backup of this server."""
        process = self.begin(state, backup, check_mode, **more)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, err
        result = json.loads(out)
        (entry,) = result.get("backups") or [{}]
        return {**result, **entry}

    def begin(self, state: str, backup: str, check_mode: bool = False, **more: t.Any) -> subprocess.Popen[str]:
        """Start the step for a backup of this server."""
        options: JsonObject = {name: more.pop(name) for name in ("key", "store") if name in more}
        entry = {"uuid": self.guest.uuid, "backup_id": backup, **more}
        params: JsonObject = {"backups": [entry], "state": state, "state_dir": self.state_dir, "key": KEY}
        params |= {"store": f"{self.state_dir}.store", **options}
        process = subprocess.Popen(
            self.host.inside(PYTHON, str(pathlib.Path(__file__).with_name("step.py"))),
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collections"), "TMPDIR": str(self.host.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps({"params": params, "check_mode": check_mode}))
        process.stdin.close()
        process.stdin = None
        return process

    def write(self, byte: int) -> None:
        self.guest.io("vda", f"write -P {byte} 1M 64k", "flush")

    def read(self) -> tuple[int, int, bytes]:
        """The first byte of the base, the one that write() writes, and the firmware's variables, of a guest that is
        off."""
        raw = self.directory / "read"
        subprocess.run(["qemu-img", "convert", "-f", "qcow2", "-O", "raw", str(self.disk), str(raw)], check=True)
        data = raw.read_bytes()
        raw.unlink()
        return data[0], data[MIB], (self.directory / "nvram.fd").read_bytes()

    def files(self) -> set[str]:
        return {
            str(path.relative_to(self.directory))
            for path in self.directory.rglob("*")
            if path.is_file() and path.suffix != ".fresh"  # the disk of a guest that never ran
        }


@pytest.fixture(scope="module")
def state_dir(host: Hypervisor) -> str:
    path = str(host.path / "state")
    layout.prepare_state_dir(path)
    pathlib.Path(layout.cache_path(path, BASE)).write_bytes(b"\7" * MIB + bytes(3 * MIB))
    os.mkdir(f"{path}.store", 0o700)
    return path


@pytest.fixture
def server(host: Hypervisor, state_dir: str) -> t.Iterator[Server]:
    server = Server(host, state_dir)
    server.guest.start()
    yield server
    server.guest.kill()


def taken(server: Server) -> None:
    """Take two backups, of which the second changes the first."""
    server.get_cheap_store()
    server.write(1)
    assert server.do("taken", FIRST)["record"]["kind"] == "full"
    server.write(2)
    (server.directory / "nvram.fd").write_bytes(b"second")
    assert server.do("taken", SECOND)["record"]["kind"] == "incremental"


def restored(server: Server, backup: str, **more: t.Any) -> None:
    for state in ("fetched", "restored"):
        result = server.do(state, backup, **more)
        assert not result.get("failed"), result
        if server.guest.is_active():
            server.guest.stop()


def test_what_is_taken_is_told(server: Server) -> None:
    server.write(1)
    planned = server.do("taken", FIRST, check_mode=True)
    assert planned["changed"] and not os.listdir(f"{server.state_dir}.store")
    first = server.do("taken", FIRST)
    assert first["changed"], first["msg"]
    assert first["record"]["reason"] == "it is the first backup"
    server.write(2)
    second = server.do("taken", SECOND)["record"]
    assert (second["kind"], second["parent_id"], second["moved"], second["size"]) == (
        "incremental", FIRST, 65536, 65536,
    )  # fmt: skip
    assert [(disk["name"], disk["size"]) for disk in second["disks"]] == [("vda", 4 * MIB)]
    verified = server.do("verified", SECOND)
    assert not verified["changed"] and not verified["complaints"] and verified["action"] == "verify"


def test_a_server_gets_its_disks_and_its_firmware_back(server: Server) -> None:
    taken(server)
    before = server.files()
    server.write(3)
    restored(server, FIRST)
    assert server.read() == (7, 1, b"first")
    assert server.do("settled", FIRST)["backups"] and server.files() == before
    server.guest.start()
    assert server.do("taken", THIRD)["record"]["kind"] == "full"  # its disk is another one
    restored(server, SECOND)
    assert server.read() == (7, 2, b"second")


def test_disks_of_before_come_back_where_the_guest_does_not_run(server: Server) -> None:
    taken(server)
    before = server.files()
    server.write(3)
    restored(server, FIRST)
    server.do("undone", FIRST)
    assert server.read() == (7, 3, b"second") and server.files() == before
    server.guest.start()
    restored(server, FIRST)  # and once more
    assert server.read() == (7, 1, b"first")


def test_what_a_tpm_holds_comes_back_and_goes_again(server: Server) -> None:
    def tpm(state: str | None = None) -> str:
        directory = f"/var/lib/libvirt/swtpm/{server.guest.uuid}/tpm2"
        script = f"cd {directory} && cat tpm2-00.permall && stat -c %u:%a tpm2-00.permall"
        if state is not None:
            script = f"mkdir -p {directory} && chown 7 {directory} && printf {state} >{directory}/tpm2-00.permall"
        inside = server.host.inside("sh", "-ec", script)
        return subprocess.run(inside, capture_output=True, text=True, check=True).stdout

    server.guest.stop()
    xml = server.host.virsh("dumpxml", server.guest.name)
    device = "<devices><tpm model='tpm-tis'><backend type='emulator' version='2.0'/></tpm>"
    server.host.virsh("define", "/dev/stdin", text=xml.replace("<devices>", device))
    tpm("first")
    assert server.do("taken", FIRST)["changed"]
    before = server.files()
    tpm("second")
    restored(server, FIRST)
    assert tpm() == "first7:600\n"
    server.do("undone", FIRST)
    assert tpm() == "second7:600\n" and server.files() == before
    restored(server, FIRST)
    server.do("settled", FIRST)
    assert tpm() == "first7:600\n" and server.files() == before


def test_a_restore_that_is_cut_off_is_done_again(server: Server) -> None:
    taken(server)
    before = server.files()
    restored(server, FIRST)  # nobody says whether it runs
    restored(server, SECOND)
    assert server.read() == (7, 2, b"second")
    server.do("settled", SECOND)
    assert server.files() == before


@pytest.mark.parametrize("runs", [True, False])
def test_a_restore_that_fails_puts_nothing_of_an_earlier_one_back(server: Server, runs: bool) -> None:
    """Disks that the earlier one kept stay where nobody said that its guest runs, and are months old by then."""
    taken(server)
    restored(server, FIRST, run="january")
    server.guest.start()
    server.write(5)
    if not runs:
        server.guest.stop()
    assert server.do("fetched", SECOND, run="june", store="/nowhere")["failed"]
    disk = server.disk.stat().st_ino
    server.do("undone", SECOND, run="june")
    assert server.guest.is_active() == runs and server.disk.stat().st_ino == disk
    restored(server, SECOND, run="june")
    assert server.read() == (7, 2, b"second")
    server.guest.start()
    assert "its guest runs" in server.do("undone", SECOND, run="june")["msg"]
    server.guest.stop()
    server.do("undone", SECOND, run="june")
    assert server.read() == (7, 5, b"first")


def test_another_server_gets_the_disks(server: Server) -> None:
    taken(server)
    other = Server(server.host, server.state_dir)
    restored(other, SECOND, source=server.guest.uuid)
    assert other.read() == (7, 2, b"second")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", str(other.disk), "2M"], check=True)
    small = other.do("fetched", SECOND, source=server.guest.uuid)
    assert small["failed"] and "give the server a flavor" in small["msg"]


def test_no_other_volume_is_written_over(server: Server) -> None:
    """A volume is itself by its serial number and not by its place; another server has others in their places."""
    serials = ["3f0e4b1d-9a57-4d6c-8f5f-7c110b9c2f8a", "9a570d6c-6f1b-4b1d-9b1e-3f5f7c116a2c"]
    server.guest.stop()
    xml, place = server.host.virsh("dumpxml", server.guest.name), "<target dev='vda' bus='virtio'/>"
    for serial in serials:
        server.host.virsh("define", "/dev/stdin", text=xml.replace(place, f"{place}<serial>{serial}</serial>"))
        if serial == serials[0]:
            assert server.do("taken", FIRST)["changed"]
    refused = server.do("fetched", FIRST)
    assert (
        refused["failed"] and f"is volume {serials[0]}" in refused["msg"] and "attach that one first" in refused["msg"]
    )
    other = Server(server.host, server.state_dir)
    assert not other.do("fetched", FIRST, source=server.guest.uuid).get("failed")


def test_what_is_refused_leaves_the_guest_alone(server: Server) -> None:
    taken(server)
    before = server.files()
    cases: tuple[tuple[dict[str, t.Any], str], ...] = (
        ({"key": "cd" * 32}, "does not open with this key"),
        ({"store": "/nowhere"}, "the store /nowhere is not there"),
        ({"source": THIRD}, f"has no backups of server {THIRD}"),
    )
    for more, message in cases:
        refused = server.do("fetched", SECOND, **more)
        assert refused["failed"] and message in refused["msg"]
    refused = server.do("fetched", THIRD)
    assert refused["failed"] and f"backup {THIRD}" in refused["msg"]
    unknown = server.do("verified", SECOND, key="cd" * 32)
    assert f"backup {SECOND}, disk vda" in unknown["msg"] and "does not open with this key" in unknown["msg"]
    assert "its guest runs" in server.do("restored", SECOND)["msg"]
    assert server.files() == before and server.guest.is_active()


def test_a_damaged_one_is_told(server: Server) -> None:
    taken(server)
    store = pathlib.Path(f"{server.state_dir}.store", server.guest.uuid)
    for pack in store.glob("data/*/*"):
        content = bytearray(pack.read_bytes())
        content[len(content) // 3] ^= 1
        pack.chmod(0o600)
        pack.write_bytes(content)
    shutil.rmtree(f"{server.state_dir}/backup-cache")
    damaged = server.do("verified", SECOND)
    assert damaged["failed"] and damaged["complaints"] and SECOND in damaged["complaints"][0]
    assert server.do("fetched", SECOND)["failed"] and server.guest.is_active()


def test_what_is_deleted_leaves_the_others_whole(server: Server) -> None:
    taken(server)
    for backup, action in ((FIRST, "delete"), (THIRD, "none")):
        planned = server.do("absent", backup, check_mode=True)
        assert (planned["action"], planned["changed"]) == (action, action == "delete")
    deleted = server.do("absent", FIRST)
    assert deleted["changed"]
    (record,) = deleted["records"]
    assert (record["id"], record["kind"], record["parent_id"]) == (SECOND, "full", None)
    assert not server.do("absent", FIRST)["changed"]
    assert not server.do("verified", SECOND)["complaints"]
    restored(server, SECOND)
    assert server.read() == (7, 2, b"second")


def test_what_is_replaced_goes_once_the_next_is_there(server: Server) -> None:
    taken(server)
    server.write(4)
    third = server.do("taken", THIRD, replaced=[SECOND])
    assert (third["record"]["parent_id"], third["removed"]) == (FIRST, [SECOND])
    assert "failed" in server.do("verified", SECOND) and not server.do("verified", THIRD)["complaints"]
    restored(server, THIRD)
    assert server.read() == (7, 4, b"second")
