# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of a host and its guests: by the files of this kernel and of others, and by libvirt, imitated."""

from __future__ import annotations

import pathlib
import threading
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall
from ansible_collections.novalite.cloud.plugins.module_utils._samples import counters
from ansible_collections.novalite.cloud.plugins.module_utils._samples.rates import MEASURES
from ansible_collections.novalite.cloud.plugins.module_utils._steps import counters as step
from tests.unit._domain.fake_libvirt import FakeError, FakeLibvirt

UUID = "6f1b6a2c-3f0e-4b1d-9a57-0d6c3f5f7c11"
BACKUP = 9
FIGURES = {
    "cpu.time": 2_500_000_000,
    "balloon.rss": 2048,
    "block.count": 2,
    "block.0.rd.bytes": 100,
    "block.0.wr.bytes": 10,
    "block.1.rd.bytes": 1,
    "block.1.wr.bytes": 2,
    "net.count": 1,
    "net.0.rx.bytes": 7,
    "net.0.tx.bytes": 8,
}


class Libvirt(FakeLibvirt):
    VIR_CONNECT_LIST_DOMAINS_ACTIVE = 1
    VIR_DOMAIN_METADATA_ELEMENT = 2
    VIR_ERR_NO_DOMAIN_METADATA = 80
    VIR_DOMAIN_JOB_OPERATION_BACKUP = BACKUP
    VIR_DOMAIN_STATS_CPU_TOTAL = 2
    VIR_DOMAIN_STATS_BALLOON = 4
    VIR_DOMAIN_STATS_INTERFACE = 16
    VIR_DOMAIN_STATS_BLOCK = 32
    VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT = 1 << 29


class Domain:
    def __init__(self, name: str, marked: bool = True, job: int = 0, figures: t.Any = FIGURES) -> None:
        self._name, self.marked, self.job, self.figures = name, marked, job, figures

    def name(self) -> str:
        return self._name

    def ID(self) -> int:
        return 3

    def UUIDString(self) -> str:
        return UUID

    def metadata(self, _kind: int, _namespace: str, _flags: int) -> str:
        if not self.marked:
            raise FakeError(Libvirt.VIR_ERR_NO_DOMAIN_METADATA, "metadata not found")
        return "<instance/>"

    def jobStats(self, _flags: int) -> dict[str, int]:
        return {"type": 2, "operation": self.job} if self.job else {"type": 0}


class Connection:
    def __init__(self, *domains: Domain, version: int = 9_000_000) -> None:
        self.domains, self.version = domains, version
        self.asked: list[str] = []

    def getLibVersion(self) -> int:
        return self.version

    def listAllDomains(self, _flags: int) -> list[Domain]:
        return list(self.domains)

    def domainListGetStats(self, domains: list[Domain], kinds: int, flags: int) -> list[tuple[Domain, t.Any]]:
        assert kinds and flags == Libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT
        self.asked += [domain.name() for domain in domains]
        if isinstance(domains[0].figures, Exception):
            raise domains[0].figures
        if isinstance(domains[0].figures, threading.Event):
            domains[0].figures.wait(30)
            raise FakeError(38, "cannot acquire state change lock")
        return [(domains[0], domains[0].figures)]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., dict[str, t.Any]]:
    def looked(connection: Connection) -> dict[str, t.Any]:
        monkeypatch.setattr(counters, "libvirt", Libvirt, raising=False)
        monkeypatch.setattr(counters, "connect", lambda uri: connection)
        result = step.run(HostCall({"uri": "qemu:///system"}, check_mode=True))
        assert result["changed"] is False
        return t.cast("dict[str, t.Any]", result["counters"])

    return looked


def test_this_machine_counts_on() -> None:
    first = counters.of_host()
    deadline = time.monotonic() + 10
    while (later := counters.of_host())["values"]["cpu"] == first["values"]["cpu"] and time.monotonic() < deadline:
        sum(range(100_000))
    assert later["run"] == first["run"] and later["clock"] > first["clock"]
    assert later["values"]["cpu"] > first["values"]["cpu"] and later["values"]["memory"] > 2**20
    assert later["values"].keys() == MEASURES.keys()


def test_a_host_is_read_by_its_kernels_files(tmp_path: pathlib.Path) -> None:
    files = {
        "proc/sys/kernel/random/boot_id": "b00t\n",
        "proc/stat": "cpu  100 20 30 9999 888 5 6 7 90 1\ncpu0 1 1 1 1\n",
        "proc/meminfo": "MemTotal:   1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n",
        "proc/pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0 total=1\n",
        "proc/diskstats": "8 0 sda 1 0 10 0 1 0 20 0\n8 1 sda1 1 0 10 0 1 0 20 0\n253 0 dm-0 1 0 10 0 1 0 20 0\n",
        "proc/net/dev": "a\nb\n  lo: 9 0 0 0 0 0 0 0 9 0\n eth0: 5 0 0 0 0 0 0 0 6 0\n tap1: 8 0 0 0 0 0 0 0 8 0\n",
        "sys/block/sda/device/model": "",
        "sys/class/net/eth0/device/vendor": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    host = counters.of_host(str(tmp_path))
    assert host["run"] == "b00t"
    assert host["values"] == {
        "cpu": 1.68,  # idle and waiting for disks is no work, and guests' time is in the user's already
        "memory": 600 * 1024,
        "disk_read": 5120,
        "disk_written": 10240,
        "net_received": 5,
        "net_sent": 6,
        "cpu_pressure": None,
        "memory_pressure": None,
        "io_pressure": 2.5,
    }


def test_a_host_without_these_files_says_that_it_does_not_know(tmp_path: pathlib.Path) -> None:
    assert set(counters.of_host(str(tmp_path))["values"].values()) == {None}


def test_a_guest_has_the_sums_of_its_devices(look: t.Callable[..., dict[str, t.Any]]) -> None:
    (guest,) = look(Connection(Domain("instance-1")))["guests"]
    assert (guest["uuid"], guest["run"]) == (UUID, "3")
    values = {name: value for name, value in guest["values"].items() if not name.endswith("pressure")}
    assert values == {
        **{"cpu": 2.5, "memory": 2048 * 1024, "disk_read": 101, "disk_written": 12},
        **{"net_received": 7, "net_sent": 8},
    }


def test_a_guest_that_is_busy_says_what_it_can(look: t.Callable[..., dict[str, t.Any]]) -> None:
    partly = {"cpu.time": 1_000_000_000, "block.count": 1, "net.count": 0}
    (guest,) = look(Connection(Domain("instance-1", figures=partly)))["guests"]
    assert guest["values"]["cpu"] == 1.0 and guest["values"]["net_sent"] == 0
    assert guest["values"]["disk_read"] is None and guest["values"]["memory"] is None


def test_guests_of_others_are_not_asked(look: t.Callable[..., dict[str, t.Any]]) -> None:
    connection = Connection(Domain("theirs", marked=False, job=BACKUP))
    answer = look(connection)
    assert answer["guests"] == [] and answer["complaints"] == [] and connection.asked == []


@pytest.mark.parametrize(("version", "asked"), [(9_000_000, ["calm"]), (10_007_000, ["calm"]), (10_008_000, None)])
def test_a_backup_is_left_alone_where_libvirt_may_crash(
    look: t.Callable[..., dict[str, t.Any]], version: int, asked: list[str] | None
) -> None:
    connection = Connection(Domain("copied", job=BACKUP), Domain("calm"), version=version)
    answer = look(connection)
    assert connection.asked == (asked or ["copied", "calm"])
    assert any("copied" in complaint for complaint in answer["complaints"]) == (asked is not None)


def test_a_guest_that_moves_is_measured(look: t.Callable[..., dict[str, t.Any]]) -> None:
    assert len(look(Connection(Domain("moved", job=2)))["guests"]) == 1


def test_a_guest_that_ends_meanwhile_costs_only_itself(look: t.Callable[..., dict[str, t.Any]]) -> None:
    gone = Domain("gone", figures=FakeError(42, "Domain not found"))
    answer = look(Connection(gone, Domain("stays")))
    assert len(answer["guests"]) == 1 and answer["complaints"] == ["gone cannot be read: Domain not found"]


def test_a_guest_that_hangs_holds_nobody_up_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    never = threading.Event()
    monkeypatch.setattr(counters, "libvirt", Libvirt, raising=False)
    monkeypatch.setattr(
        counters, "connect", lambda uri: Connection(Domain("first"), Domain("hangs", figures=never), Domain("after"))
    )
    began = time.monotonic()
    guests, complaints = counters.of_guests("qemu:///system", patience=0.3)
    never.set()
    for thread in threading.enumerate():
        if thread.name == counters.READER:
            thread.join()
    assert time.monotonic() - began < 10 and len(guests) == 1
    assert complaints == ["the guests were not all read within 0.3 s: a QEMU of this host hangs"]


def test_the_host_is_measured_where_libvirt_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = counters.look("test:///nowhere")
    assert answer["guests"] == [] and len(answer["complaints"]) == 1 and answer["host"]["values"]["cpu"]


def test_a_guests_pressure_is_that_of_its_machines_control_group(tmp_path: pathlib.Path) -> None:
    (tmp_path / "run/libvirt/qemu").mkdir(parents=True)
    (tmp_path / "run/libvirt/qemu/i.pid").write_text("77\n")
    (tmp_path / "proc/77").mkdir(parents=True)
    scope = "/machine.slice/machine-qemu\\x2d1\\x2di.scope"
    (tmp_path / "proc/77/cgroup").write_text(f"12:cpu:/other\n0::{scope}/libvirt/emulator\n")
    assert counters.control_group("i", str(tmp_path)) == f"{tmp_path}/sys/fs/cgroup{scope}"
    (tmp_path / "proc/77/cgroup").write_text("0::/system.slice/libvirtd.service\n")
    assert counters.control_group("i", str(tmp_path)) is None
    assert counters.control_group("j", str(tmp_path)) is None
