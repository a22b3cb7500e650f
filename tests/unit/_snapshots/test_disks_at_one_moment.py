# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of servers: disks of a guest that runs on a real QEMU, and of one that is off, kept and given back."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._disk import layout, records
from ansible_collections.novalite.cloud.plugins.module_utils._disk.overlay import Disk, create_disks
from ansible_collections.novalite.cloud.plugins.module_utils._disk.volumes import ensure as ensure_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._domain.volumes import LiveGuests
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._snapshots import server_snapshots
from ansible_collections.novalite.cloud.plugins.module_utils._snapshots.server_snapshots import Done, Spec
from tests.support import libvirtd

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("libvirtd") or not shutil.which("qemu-img"), reason="needs root and libvirtd"
)

UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"
ONE, TWO = (f"0b9c2f8a-6d1e-4e55-9b1e-0b8f0f6d3a0{number}" for number in (1, 2))
VOLUME: dict[str, t.Any] = {
    **{"id": "0b9c2f8a-6d1e-4e55-9b1e-0b8f0f6d3a09", "backend": "file", "options": {}, "kind": "volume"},
    **{"format": "raw", "size_gb": 1},
}
BASE = "sha256:" + "5" * 64
MIB = 1 << 20
DOMAIN = """<domain type="qemu"><name>snap</name><uuid>{uuid}</uuid><memory unit="MiB">32</memory><vcpu>1</vcpu>
<os><type arch="x86_64" machine="pc">hvm</type></os><devices><emulator>/usr/bin/qemu-system-x86_64</emulator>
<disk type="file"><driver name="qemu" type="qcow2"/><source file="{root}"/><target dev="vda" bus="virtio"/></disk>
<disk type="file"><driver name="qemu" type="raw"/><source file="{volume}"/><target dev="vdb" bus="virtio"/></disk>
</devices></domain>"""


HERE = pathlib.Path(__file__).resolve().parents[3]
# libvirt's binding is the system's
ENSURE = """
import dataclasses, json, libvirt, sys
from ansible_collections.novalite.cloud.plugins.module_utils._domain.volumes import LiveGuests
from ansible_collections.novalite.cloud.plugins.module_utils._host import locks
from ansible_collections.novalite.cloud.plugins.module_utils._snapshots import server_snapshots
asked = json.loads(sys.argv[1])
locks.LOCK_DIR = asked.pop("locks")
libvirt.registerErrorHandler(lambda _context, _error: None, None)
guests = LiveGuests(lambda: libvirt.open(asked["uri"]))
spec = server_snapshots.Spec(**asked["spec"])
(done,) = server_snapshots.ensure([spec], asked["state"], asked["state_dir"], guests, **asked["more"])
print(json.dumps(dataclasses.asdict(done)))
"""


class Server:
    """A server with a root disk on a base, a volume and the variables of a firmware, on a host of its own."""

    def __init__(self, home: pathlib.Path, uri: str | None = None) -> None:
        self.state_dir = str(home / "state")
        layout.prepare_state_dir(self.state_dir)
        base = pathlib.Path(layout.cache_path(self.state_dir, BASE))
        base.write_bytes(b"\7" * MIB + bytes(3 * MIB))
        create_disks([Disk(UUID, base=BASE)], self.state_dir)
        ensure_volumes([{**VOLUME, "create": True}], "present", self.state_dir, LiveGuests(self.never))
        self.directory = pathlib.Path(self.state_dir, "instances", UUID)
        self.root, self.volume = str(self.directory / "disk"), layout.volume_path(VOLUME, self.state_dir)
        (self.directory / "nvram.fd").write_bytes(b"first")
        self.uri, self.locks = uri, str(home / "locks")

    @staticmethod
    def never() -> t.NoReturn:
        raise AssertionError("nobody runs")

    def start(self) -> None:
        xml = pathlib.Path(self.state_dir, "guest.xml")
        xml.write_text(DOMAIN.format(uuid=UUID, root=self.root, volume=self.volume))
        self.virsh("create", str(xml))

    def stop(self) -> None:
        self.virsh("destroy", UUID)

    def virsh(self, *words: str) -> str:
        argv = ["virsh", "-q", "-c", str(self.uri), *words]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout

    def write(self, byte: int, live: bool = False) -> None:
        """Write 64 KiB of `byte` at the second MiB of both disks."""
        for number, (path, fmt) in enumerate(((self.root, "qcow2"), (self.volume, "raw"))):
            words = f"write -P {byte} 1M 64k"
            if live:
                device = f"/machine/peripheral/virtio-disk{number}/virtio-backend"
                self.virsh("qemu-monitor-command", "--hmp", UUID, f'qemu-io -d {device} "{words}"')
            else:
                subprocess.run(["qemu-io", "-f", fmt, "-c", words, path], check=True, capture_output=True)

    def read(self) -> list[int]:
        """The byte at the second MiB of the root disk and of the volume."""
        first_bytes = []
        for path, fmt in ((self.root, "qcow2"), (self.volume, "raw")):
            argv = ["qemu-img", "convert", "-f", fmt, "-O", "raw", path, f"{self.state_dir}/read"]
            subprocess.run(argv, check=True)
            with open(pathlib.Path(self.state_dir, "read"), "rb") as file:  # of a GiB, most of it a hole
                data = file.read(2 * MIB)
            if fmt == "qcow2":
                assert data[:MIB] == b"\7" * MIB  # of the base
            assert len(set(data[MIB : MIB + 65536])) == 1
            first_bytes.append(data[MIB])
        return first_bytes

    def do(self, state: str, number: str = ONE, **more: t.Any) -> Done:
        spec = Spec(UUID, number, more.pop("volumes", [VOLUME]))
        if self.uri is None:
            (done,) = server_snapshots.ensure([spec], state, self.state_dir, more.pop("guests", Off()), **more)
            return done
        asked = {"spec": dataclasses.asdict(spec), "state": state, "state_dir": self.state_dir, "more": more}
        argv = ["/usr/bin/python3", "-c", ENSURE, json.dumps({**asked, "uri": self.uri, "locks": self.locks})]
        environment = {**os.environ, "PYTHONPATH": str(HERE / "collections")}
        said = subprocess.run(argv, env=environment, check=True, capture_output=True, text=True).stdout
        return Done(**json.loads(said))

    def snapshots(self) -> list[str]:
        return sorted(os.listdir(self.directory / "snapshots"))


class Off:
    """No guest runs."""

    def running(self, _uuid: str) -> bool:
        return False


@pytest.fixture(autouse=True)
def own_locks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LOCK_DIR", str(tmp_path / "locks"))


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Server:
    return Server(tmp_path)


def test_a_running_guest_is_copied_at_one_moment_and_rolled_back(tmp_path: pathlib.Path) -> None:
    (tmp_path / "libvirt").mkdir()
    with libvirtd.running(tmp_path / "libvirt") as uri:
        server = Server(tmp_path, uri)
        server.write(1)
        server.start()
        planned = server.do("present", check_mode=True)
        assert (planned.action, planned.error) == ("create", None) and not (server.directory / "snapshots").exists()
        taken = server.do("present")
        assert (taken.error, taken.action, taken.consistency) == (None, "create", "crash")  # there is no agent
        assert taken.size >= 65536
        server.write(2, live=True)
        again = server.do("present")
        assert (again.action, again.consistency, again.size) == ("none", "crash", taken.size)
        refused = server.do("reverted")
        assert "its guest runs" in str(refused.error)
        server.stop()
        assert server.read() == [2, 2]
        (server.directory / "nvram.fd").write_bytes(b"second")
        assert server.do("reverted").error is None
        assert server.read() == [1, 1]
        assert (server.directory / "nvram.fd").read_bytes() == b"first"
        server.start()  # QEMU takes what came back
        server.stop()


def taken(server: Server) -> Done:
    server.write(1)
    done = server.do("present")
    assert done.error is None
    server.write(2)
    return done


def test_a_server_that_is_off_is_rolled_back_as_often_as_one_likes(server: Server) -> None:
    assert taken(server).consistency == "off"
    records.note_fresh(str(server.directory), "disk")  # as after a rebuild
    before = records.read_records(str(server.directory))
    for _time in range(2):
        assert server.read() == [2, 2]
        assert server.do("reverted", check_mode=True).error is None and server.read() == [2, 2]
        done = server.do("reverted")
        assert (done.action, done.error) == ("revert", None) and server.read() == [1, 1]
        server.write(2)
    assert not records.is_fresh(str(server.directory), "disk")  # what a guest wrote is back
    assert records.read_records(str(server.directory)) == before
    info = json.loads(subprocess.check_output(["qemu-img", "info", "--output=json", server.root]))
    assert info["full-backing-filename"] == layout.cache_path(server.state_dir, BASE)
    assert info["actual-size"] < MIB  # what is in the base is nowhere else
    assert os.stat(server.root).st_mode & 0o777 == 0o600
    assert not list(server.directory.glob("*.part")) and server.snapshots() == [ONE]


def test_a_disk_that_grew_since_keeps_its_size(server: Server) -> None:
    taken(server)
    for path, fmt in ((server.root, "qcow2"), (server.volume, "raw")):
        subprocess.run(["qemu-img", "resize", "-q", "-f", fmt, path, "2G"], check=True)
    assert server.do("reverted").error is None
    for path, fmt in ((server.root, "qcow2"), (server.volume, "raw")):
        info = subprocess.check_output(["qemu-img", "info", "-f", fmt, "--output=json", path])
        assert json.loads(info)["virtual-size"] == 2 << 30


def test_a_snapshot_is_deleted_once(server: Server) -> None:
    taken(server)
    server.do("present", TWO)
    assert server.do("absent", check_mode=True).action == "delete" and server.snapshots() == [ONE, TWO]
    assert [server.do("absent").action for _time in range(2)] == ["delete", "none"] and server.snapshots() == [TWO]
    assert "its snapshot is gone" in str(server.do("reverted").error) and server.read() == [2, 2]


def test_what_a_killed_run_left_is_no_snapshot(server: Server) -> None:
    part = server.directory / "snapshots" / f"{ONE}.part"
    part.mkdir(parents=True)
    (part / "disk").write_text("half of it")
    assert "its snapshot is gone" in str(server.do("reverted").error)
    assert taken(server).action == "create" and server.snapshots() == [ONE]
    part.mkdir()
    assert server.do("absent").action == "delete" and server.snapshots() == []


def test_a_copy_that_fails_leaves_nothing(server: Server) -> None:
    os.unlink(server.volume)
    failed = server.do("present")
    assert VOLUME["id"] in str(failed.error) and server.snapshots() == []


def test_nothing_is_replaced_before_all_is_there(server: Server) -> None:
    taken(server)
    copy = server.directory / "snapshots" / ONE / VOLUME["id"]
    copy.unlink()
    copy.write_bytes(b"no disk")
    assert server.do("reverted").error is not None
    assert server.read() == [2, 2] and not list(server.directory.glob("*.part"))


def test_a_volume_that_is_no_more_the_servers_is_asked_for(server: Server) -> None:
    taken(server)
    assert "attach it again" in str(server.do("reverted", volumes=[]).error) and server.read() == [2, 2]


def test_a_full_host_takes_no_snapshot(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_snapshots, "KEPT_FREE", 1)  # all of it
    failed = server.do("present")
    assert "delete snapshots, or make room there" in str(failed.error) and server.snapshots() == []


@pytest.mark.parametrize("number", ["../../x", "", ONE.upper()])
def test_no_id_leads_elsewhere(server: Server, number: str) -> None:
    for state in ("present", "reverted", "absent"):
        assert "is not the id of a snapshot" in str(server.do(state, number).error)
