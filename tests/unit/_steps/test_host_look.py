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
    """Stand-in for systemctl and systemd-run: it keeps one timer, and says what it was asked in `asked`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.timer: str | None = None  # its description
        self.state = "running"

    def run(self, argv: t.Sequence[str], **_options: t.Any) -> command.Result:
        argv = list(argv)
        self.asked.append(argv)
        if argv[0] == "systemd-run":
            assert self.timer is None  # systemd refuses a unit that is loaded already
            self.timer = next(word for word in argv if word.startswith("--description=")).partition("=")[2]
        elif argv[1] == "stop":
            self.timer = None
        elif argv[1] == "show":
            state = "inactive" if self.timer is None else "active"
            return command.Result(0, f"ActiveState={state}\nDescription={self.timer or argv[2]}\n", "")
        elif argv[1] == "is-system-running":
            return command.Result(int(self.state != "running"), f"{self.state}\n", "")
        else:
            assert argv[1] == "restart" and self.timer is not None
        return command.Result(0, "", "")

    def changes(self) -> list[str]:
        """Take what it was asked to change since the last time."""
        verbs = [argv[0] if argv[0] == "systemd-run" else argv[1] for argv in self.asked]
        self.asked.clear()
        return [verb for verb in verbs if verb not in ("show", "is-system-running")]


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
    assert (seen["stopping"], seen["switch_armed"], seen["complaints"]) == (False, False, [])


def test_a_libvirt_that_does_not_answer_is_told_of_and_not_waited_for(
    systemd: Systemd, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs = threading.Event()
    monkeypatch.setattr(host_look, "PATIENCE", 0.2)
    monkeypatch.setattr(host_look, "connect", lambda _uri: hangs.wait())
    began = time.monotonic()
    seen = look(switch=60)
    hangs.set()
    assert time.monotonic() - began < 5
    assert (seen["libvirt"], seen["guests"], seen["complaints"]) == (False, [], ["libvirt: no answer within 0.2 s"])
    assert seen["switch_armed"]  # the host is looked at all the same


def test_a_shutdown_is_seen(systemd: Systemd, domains: list[Domain]) -> None:
    assert not look()["stopping"]
    systemd.state = "degraded"
    assert not look()["stopping"]
    systemd.state = "stopping"
    assert look()["stopping"]


def test_each_look_arms_the_switch_anew(systemd: Systemd, domains: list[Domain]) -> None:
    assert look(switch=60)["switch_armed"]
    (made,) = [argv for argv in systemd.asked if argv[0] == "systemd-run"]
    assert made[-4:] == ["systemctl", "poweroff", "--force", "--force"]
    assert {"--unit=novalite-switch", "--on-active=60", "--timer-property=AccuracySec=1s"} < set(made)
    systemd.changes()
    assert look(switch=60)["switch_armed"] and systemd.changes() == ["restart"]
    assert look(switch=90)["switch_armed"] and systemd.changes() == ["stop", "systemd-run"]


def test_no_switch_is_a_switch_that_is_disarmed(systemd: Systemd, domains: list[Domain]) -> None:
    assert not look()["switch_armed"] and systemd.changes() == []
    look(switch=60)
    systemd.changes()
    assert not look()["switch_armed"] and systemd.changes() == ["stop"]


def test_check_mode_says_whether_it_is_armed_and_arms_nothing(systemd: Systemd, domains: list[Domain]) -> None:
    assert not look(True, switch=60)["switch_armed"]
    look(switch=60)
    systemd.changes()
    assert look(True)["switch_armed"] and systemd.changes() == []


def test_a_switch_that_cannot_be_is_told_of(
    systemd: Systemd, domains: list[Domain], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = look(switch=5)
    assert not seen["switch_armed"]
    assert seen["complaints"] == ["switch: novalite_ha_switch 5: choose at least 30 seconds, or 0 for no switch"]
    monkeypatch.setattr(switch, "BOOTED", "/nowhere")
    seen = look(switch=60)
    assert (seen["switch_armed"], seen["stopping"]) == (False, False)
    assert "does not run systemd" in seen["complaints"][0]
    assert look()["complaints"] == []


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
