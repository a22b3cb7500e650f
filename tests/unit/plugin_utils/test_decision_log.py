# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The journal's lines: which decisions become one, and what arrives at the system's log."""

from __future__ import annotations

import pathlib
import socket
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.plugin_utils import _decision_log as decision_log

UUID = "5e9ffd77-49b4-4c87-9a1f-8ed1d6ff5a0c"


def test_a_placement_is_told_with_its_reason_and_its_alternates() -> None:
    result = {
        "instances": [{"uuid": UUID, "name": "web", "host": "hv1", "alternates": ["hv2", "hv3"]}],
        "explanations": [{"uuid": UUID, "message": "hv1 has the most free memory"}],
    }
    (line,) = decision_log.decisions("scheduler", result)
    assert line == (
        f"scheduler: Casting to compute hv1 for run_instance of {UUID} (web): hv1 has the most free memory; "
        "alternates: hv2, hv3"
    )


def test_a_request_is_cast_to_the_scheduler_in_novas_words() -> None:
    instance = {"uuid": UUID, "name": "web", "project": {"id": "1", "name": "demo"}}
    lines = decision_log.decisions("server", {"to_build": [instance], "existing": [instance]})
    assert lines == [f"server: Casting to scheduler for demo's instance {UUID} (web)"]


def test_what_finds_no_host_is_told() -> None:
    message = "No valid host was found: ram removed 2"
    result = {"unplaced": [{"instance": {"uuid": UUID, "name": "web"}, "message": message}]}
    (line,) = decision_log.decisions("scheduler", result)
    assert line == f"scheduler: Casting to no compute for {UUID} (web): {message}"


@pytest.mark.parametrize("operation", ["server", "scheduler", "volume"])
def test_every_refusal_is_told(operation: str) -> None:
    lines = decision_log.decisions(operation, {"failed": True, "msg": "Quota exceeded for cores"})
    assert lines == [f"{operation}: refused: Quota exceeded for cores"]


@pytest.mark.parametrize(("operation", "result"), [("flavor", {"flavors": []}), ("server_info", {"servers": [{}]})])
def test_what_decides_nothing_is_not_told(operation: str, result: dict[str, t.Any]) -> None:
    assert decision_log.decisions(operation, result) == []


def test_lines_arrive_under_our_name_one_each(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(path))
        log.settimeout(5)
        monkeypatch.setattr(decision_log, "SOCKET", str(path))
        decision_log.write(["server: refused: name 'a\nsshd: root logged in'", "x" * 5000])
        first, second = log.recv(8192), log.recv(8192)
    assert first.startswith(b"<30>novalite: server: refused: name 'a?sshd: root logged in'")
    assert len(second) < 1024


def test_a_system_without_a_log_is_no_error(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(decision_log, "SOCKET", str(tmp_path / "none"))
    decision_log.write(["scheduler: web goes to hv1"])
    assert capfd.readouterr() == ("", "")
