# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks of the watcher at a host. systemd is a stand-in that records what it is asked (this machine has none), and so
is libvirt; heartbeats are files of this machine's."""

from __future__ import annotations

import os
import pathlib
import threading
import time
import types
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._host import command, heartbeat, switch
from ansible_collections.novalite.cloud.plugins.module_utils._host.module import HostCall
from ansible_collections.novalite.cloud.plugins.module_utils._samples import counters
from ansible_collections.novalite.cloud.plugins.module_utils._steps import host_look
from tests.unit._domain.fake_libvirt import FakeError, FakeLibvirt

MARKED, FOREIGN = "6f1b6a2c-3f0e-4b1d-9a57-000000000007", "6f1b6a2c-3f0e-4b1d-9a57-000000000008"


class Libvirt(FakeLibvirt):
    VIR_DOMAIN_METADATA_ELEMENT = 2
    VIR_ERR_NO_DOMAIN_METADATA = 80


class Domain:
    def __init__(self, uuid: str, active: bool = True, marked: bool = True) -> None:
        self.uuid, self.active, self.marked = uuid, active, marked

    def UUIDString(self) -> str:
        return self.uuid

    def isActive(self) -> int:
        return int(self.active)

    def metadata(self, _kind: int, _namespace: str, _flags: int) -> str:
        if not self.marked:
            raise FakeError(Libvirt.VIR_ERR_NO_DOMAIN_METADATA, "metadata not found")
        return "<instance/>"


class Systemd:
    """Stand-in for systemctl and systemd-run: it keeps timers by their units, and says what it was asked in `asked`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.timers: dict[str, int] = {}  # seconds after the boot at which each powers the machine off
        self.armed_by_looks = False
        self.state = "running"

    def run(self, argv: t.Sequence[str], **_options: t.Any) -> command.Result:
        argv = list(argv)
        self.asked.append(argv)
        if argv[0] == "systemd-run":
            assert argv[-4:] == ["systemctl", "poweroff", "--force", "--force"]
            words = dict(word.split("=", 1) for word in argv if "=" in word)
            assert f"{words['--unit']}.timer" not in self.timers  # systemd refuses a unit that is loaded already
            self.timers[f"{words['--unit']}.timer"] = int(words["--on-boot"])
        elif argv[1] == "stop":
            for unit in argv[2:]:
                del self.timers[unit]
            assert self.timers or not self.armed_by_looks  # never without one, but where it is disarmed
        elif argv[1] == "list-units":
            lines = [f"{unit} loaded active waiting novalite: off\n" for unit in self.timers]
            return command.Result(0, "".join(lines), "")
        else:
            assert argv[1] == "is-system-running"
            return command.Result(int(self.state != "running"), f"{self.state}\n", "")
        return command.Result(0, "", "")

    def changes(self) -> list[str]:
        """Take what it was asked to change since the last time."""
        verbs = [argv[0] if argv[0] == "systemd-run" else argv[1] for argv in self.asked]
        self.asked.clear()
        return [verb for verb in verbs if verb not in ("list-units", "is-system-running")]


@pytest.fixture
def systemd(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    there = Systemd()
    monkeypatch.setattr(switch, "run", there.run)
    monkeypatch.setattr(switch, "BOOTED", str(tmp_path))
    return there


@pytest.fixture
def domains(monkeypatch: pytest.MonkeyPatch) -> list[Domain]:
    """Give the host a libvirt with these domains; a test may change them."""
    listed: list[Domain] = []
    connection = types.SimpleNamespace(listAllDomains=lambda _flags: list(listed))
    monkeypatch.setattr(host_look, "connect", lambda _uri: connection)
    for module in (host_look, counters):
        monkeypatch.setattr(module, "libvirt", Libvirt, raising=False)
    return listed


def answer(ago: float = 0.0) -> dict[str, t.Any]:
    """Return the reading of this machine's clock that an answer so many seconds ago had."""
    return {"boot_id": pathlib.Path(host_look.BOOT_ID).read_text().strip(), "seconds": time.monotonic() - ago}


def look(check_mode: bool = False, **params: t.Any) -> dict[str, t.Any]:
    spec: t.Mapping[str, t.Any] = host_look.ARGUMENT_SPEC
    defaults = {name: option.get("default") for name, option in spec.items()}
    return host_look.run(HostCall({**defaults, "host": "hv1", **params}, check_mode))


def test_a_look_tells_what_novalite_has_there_and_what_runs(systemd: Systemd, domains: list[Domain]) -> None:
    off = "6f1b6a2c-3f0e-4b1d-9a57-000000000009"
    domains += [Domain(MARKED), Domain(FOREIGN, marked=False), Domain(off, active=False)]
    seen = look()
    assert seen["boot_id"] == pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert (seen["libvirt"], seen["guests"], seen["running"]) == (True, [MARKED, off], [MARKED])
    assert (seen["stopping"], seen["switch_s"], seen["complaints"]) == (False, 0, [])


def test_a_libvirt_that_does_not_answer_is_told_of_and_not_waited_for(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = threading.Event()
    monkeypatch.setattr(host_look, "PATIENCE", 0.2)
    monkeypatch.setattr(host_look, "connect", lambda _uri: hangs.wait())
    began = time.monotonic()
    seen = look(switch=60, reading=answer())
    hangs.set()
    assert time.monotonic() - began < 5
    assert (seen["libvirt"], seen["guests"], seen["complaints"]) == (False, [], ["libvirt: no answer within 0.2 s"])
    assert seen["switch_s"]  # the host is looked at all the same


def test_a_shutdown_is_seen(systemd: Systemd, domains: list[Domain]) -> None:
    assert not look()["stopping"]
    systemd.state = "degraded"
    assert not look()["stopping"]
    systemd.state = "stopping"
    assert look()["stopping"]


def test_each_look_has_the_switch_count_from_the_answer_before(systemd: Systemd, domains: list[Domain]) -> None:
    first = look(switch=60)
    assert not first["switch_s"] and systemd.changes() == []  # nobody knows of an answer yet
    reading = {"boot_id": first["boot_id"], "seconds": first["uptime"]}
    assert abs(first["uptime"] - time.monotonic()) < 30
    systemd.armed_by_looks = True
    assert look(switch=60, reading=reading)["switch_s"]
    assert list(systemd.timers.values()) == [int(first["uptime"]) + 60] and systemd.changes() == ["systemd-run"]
    reading["seconds"] += 10
    assert look(switch=60, reading=reading)["switch_s"]
    assert list(systemd.timers.values()) == [int(first["uptime"]) + 70] and systemd.changes() == ["systemd-run", "stop"]


@pytest.mark.parametrize("ago", [0.0, 20.0, 59.0, 61.0, 3600.0])
def test_a_look_that_is_late_prolongs_nothing(ago: float, systemd: Systemd, domains: list[Domain]) -> None:
    """Its controller has counted from that answer on, and may have started the guests elsewhere when it comes."""
    look(switch=60, reading=answer(15))
    for reading in (answer(15 + ago), answer(35 + ago)):
        assert 40 < look(switch=60, reading=reading)["switch_s"] <= 45
    assert look(switch=60, reading=answer(10))["switch_s"] > 45


@pytest.mark.parametrize("ago", [22.0, 59.0, 61.0, 3600.0])
def test_a_host_that_is_looked_at_too_seldom_is_not_powered_off(
    ago: float, systemd: Systemd, domains: list[Domain]
) -> None:
    for _round in range(2):
        seen = look(switch=60, reading=answer(ago))
        assert (seen["switch_s"], systemd.timers) == (0, {})
        assert "look more often" in seen["complaints"][0]


def test_a_reading_of_another_boot_arms_nothing(systemd: Systemd, domains: list[Domain]) -> None:
    assert not look(switch=60, reading={**answer(), "boot_id": "another"})["switch_s"]
    assert systemd.changes() == []


def test_a_timer_of_a_former_version_is_replaced(systemd: Systemd, domains: list[Domain]) -> None:
    systemd.timers["novalite-switch.timer"] = 5
    systemd.armed_by_looks = True
    assert look(switch=60, reading=answer())["switch_s"]
    assert "novalite-switch.timer" not in systemd.timers and systemd.changes() == ["systemd-run", "stop"]


def test_no_switch_is_a_switch_that_is_disarmed(systemd: Systemd, domains: list[Domain]) -> None:
    assert not look(switch=0)["switch_s"] and systemd.changes() == []
    assert 55 < look(switch=60, reading=answer())["switch_s"] <= 60
    systemd.changes()
    assert look()["switch_s"] and systemd.changes() == []  # a look that says nothing of it
    assert not look(switch=0)["switch_s"] and systemd.changes() == ["stop"]


def test_check_mode_says_whether_it_is_armed_and_arms_nothing(systemd: Systemd, domains: list[Domain]) -> None:
    assert not look(True, switch=60, reading=answer())["switch_s"]
    look(switch=60, reading=answer())
    systemd.changes()
    assert look(True)["switch_s"] and systemd.changes() == []


def test_a_switch_that_cannot_be_is_told_of(
    systemd: Systemd, domains: list[Domain], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = look(switch=5, reading=answer())
    assert not seen["switch_s"]
    assert seen["complaints"] == ["switch: novalite_ha_switch 5: choose at least 40 seconds, or 0 for no switch"]
    monkeypatch.setattr(switch, "BOOTED", "/nowhere")
    seen = look(switch=60, reading=answer())
    assert (seen["switch_s"], seen["stopping"]) == (0, False)
    assert "does not run systemd" in seen["complaints"][0]
    assert look(switch=0)["complaints"] == []


def test_hearts_beat_by_the_clock_of_the_storage(
    systemd: Systemd, domains: list[Domain], tmp_path: pathlib.Path
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    assert look(heartbeat=str(shared))["heartbeats"] == {"hv1": 0.0}
    now = (shared / "hv1").stat().st_mtime
    for name, age in (("hv2", 7.5), ("hv3", 600)):
        (shared / name).write_text("\n")
        os.utime(shared / name, (now - age, now - age))
    (shared / ".nfs0001").touch()
    os.symlink("/etc/passwd", shared / "hv4")
    os.utime(shared / "hv1", (1, 1))
    beats = look(heartbeat=str(shared))["heartbeats"]
    assert sorted(beats) == ["hv1", "hv2", "hv3"]  # hv4's is a link
    assert beats["hv1"] == 0.0 and 7.5 <= beats["hv2"] < 60 and 600 <= beats["hv3"] < 660


def test_a_heart_does_not_beat_where_the_storage_is_not(
    systemd: Systemd, domains: list[Domain], tmp_path: pathlib.Path
) -> None:
    seen = look(heartbeat=str(tmp_path / "shared"))
    assert seen["heartbeats"] == {} and "No such file or directory; novalite_ha_heartbeat" in seen["complaints"][0]
    assert not (tmp_path / "shared").exists()
    shared = tmp_path / "mount"
    shared.mkdir()
    (shared / "hv1").symlink_to(tmp_path / "victim")
    assert look(heartbeat=str(shared))["heartbeats"] == {}
    assert not (tmp_path / "victim").exists()
    assert look(True, heartbeat=str(tmp_path))["heartbeats"] == {}
    assert not (tmp_path / "hv1").exists()


@pytest.mark.parametrize("host", ["../hv1", ".hidden", "", "a/b", "x" * 300])
def test_a_name_that_is_no_files_is_refused(host: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(NovaliteError, match="cannot be the name of a file"):
        heartbeat.beat(str(tmp_path), host)
