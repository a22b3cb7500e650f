# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.callback.progress import CallbackModule
from ansible_collections.novalite.cloud.plugins.module_utils._model.plain_text import is_plain
from ansible_collections.novalite.cloud.plugins.plugin_utils._progress import Progress

SERVER, SCHEDULER, STATE = "server", "scheduler", "server_state"


def instance(number: int, host: str | None = None, vm_state: str = "building", **more: t.Any) -> dict[str, t.Any]:
    state = {"vm_state": vm_state, "task_state": "spawning" if vm_state == "building" else None}
    return {"uuid": f"u-{number}", "name": f"web-{number}", "host": host, **state, **more}


def launched(count: int, hosts: int = 2) -> Progress:
    progress = Progress(0)
    progress.learned(SERVER, {"to_build": [instance(number) for number in range(count)]}, 1)
    placed = [instance(number, f"hv{number % hosts}") for number in range(count)]
    progress.learned(SCHEDULER, {"instances": placed}, 2)
    return progress


def text(progress: Progress, now: float, width: int = 80, height: int = 24) -> list[str]:
    return [line for line, _kind in progress.table(width, height, now)]


def test_each_instance_has_its_hosts_step_and_the_seconds_at_it() -> None:
    progress = launched(2)
    progress.started("hv0", "Make the disks", 3)
    lines = text(progress, 5.5)
    assert lines[2].split() == ["web-0", "hv0", "Make", "the", "disks", "2.5", "4.5"]
    assert lines[3].split()[:2] == ["web-1", "hv1"]
    assert "waits for hv1" in lines[3]
    assert lines[0].endswith("0 of 2 done")


def test_what_became_of_it_stays() -> None:
    progress = launched(2)
    fault = {"code": 500, "message": "no\x1b[2Jdisk"}
    ends = [instance(0, "hv0", "active"), instance(1, "hv1", "error", fault=fault)]
    progress.learned(STATE, {"instances": ends}, 9)
    progress.started("hv0", "Something else", 10)
    progress.ended("hv0", "Something else", 11)
    lines = progress.table(80, 24, 12)
    assert [kind for _text, kind in lines[2:]] == ["done", "failed"]
    assert lines[2][0].split()[2:] == ["active", "8.0"]
    assert "error: no?[2Jdisk" in lines[3][0]  # a fault cannot move the cursor


def test_one_that_failed_goes_on_where_it_is_built_next() -> None:
    progress = launched(1)
    progress.started("hv0", "Start", 3)
    progress.ended("hv0", "Start", 4, failed=True)
    progress.learned(SCHEDULER, {"instances": [instance(0, "hv1")]}, 5)
    progress.started("hv1", "Start", 6)
    [line] = text(progress, 7)[2:]
    assert line.split()[:3] == ["web-0", "hv1", "Start"]


def test_a_host_without_instances_is_shown_while_it_works() -> None:
    progress = Progress(0)
    progress.started("localhost", "Ask for them", 1)
    assert text(progress, 2)[2].split()[:2] == ["-", "localhost"]
    progress.ended("localhost", "Ask for them", 3)
    assert len(text(progress, 4)) == 1


def test_where_room_is_short_those_that_are_done_go_first() -> None:
    progress = launched(50)
    progress.learned(STATE, {"instances": [instance(number, "hv0", "active") for number in range(0, 50, 2)]}, 3)
    lines = text(progress, 4, height=30)
    assert len(lines) == 30
    assert sum("waits for hv1" in line for line in lines) == 25
    assert lines[-1].strip() == "and 23 more: 23 done"


@given(
    st.integers(0, 40),
    st.integers(20, 200),
    st.integers(3, 60),
    st.text(max_size=80),
    st.lists(st.sampled_from(["hv0", "hv1", "localhost"]), max_size=6),
)
def test_a_table_fits_whatever_it_holds(count: int, width: int, height: int, step: str, hosts: list[str]) -> None:
    progress = launched(count)
    progress.title = step
    for host in hosts:
        progress.started(host, step, 3)
    lines = text(progress, 5, width, height)
    assert len(lines) <= height
    assert all(len(line) <= width and is_plain(line) for line in lines)


def test_the_summary_tells_each_steps_time_and_the_slowest_host() -> None:
    progress = Progress(0)
    for host, seconds in (("hv0", 1.0), ("hv1", 2.5)):
        progress.started(host, "Make the disks", 1)
        assert progress.ended(host, "Make the disks", 1 + seconds) == seconds
    progress.started("hv0", "Blink", 4)
    progress.ended("hv0", "Blink", 4.01)
    lines = [line.split() for line in progress.summary(5)]
    assert lines[1] == ["Make", "the", "disks", "2.50", "2", "hv1", "(2.50", "s)"]
    assert lines[2][:3] == ["1", "shorter", "steps"]
    assert lines[3] == ["In", "all", "5.00"]


def test_whatever_a_task_returns_it_does_not_fail() -> None:
    progress = Progress(0)
    odd: t.Any
    for odd in ({}, {"instances": None}, {"instances": ["x", {}, {"uuid": "u"}]}, {"to_build": "text"}, {"hosts": []}):
        progress.learned(SERVER, odd, 1)
        progress.learned("server_action", odd, 1)
    assert progress.instances == {}


def test_a_mistake_in_the_table_costs_the_table_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def spill(*_: t.Any, **__: t.Any) -> float:
        raise RuntimeError("spilled")

    monkeypatch.setattr(Progress, "ended", spill)
    callback = CallbackModule()
    callback.progress = Progress(0)
    task = types.SimpleNamespace(action="x.y.z", get_name=lambda: "Do it")
    result = types.SimpleNamespace(host=types.SimpleNamespace(get_name=lambda: "hv1"), task=task, result={})
    callback._ended(result, "ok")
    assert callback.progress is None  # from here on it does as the default callback
    assert "gives up: spilled" in capsys.readouterr().err


def test_steps_of_one_trip_are_told_apart() -> None:
    progress = Progress(0)
    for host, seconds in (("hv0", 2.0), ("hv1", 3.0)):
        progress.started(host, "Make them", 10)
        progress.ended(host, "Make them", 10 + seconds)
        progress.parted(host, "Make them", [("Make the disks", 0.5), ("Start", seconds - 1)], 10 + seconds)
    lines = progress.summary(20)
    assert not any(line.startswith("Make them") for line in lines)
    disks = next(line.split() for line in lines if line.startswith("Make the disks"))
    assert disks[3:] == ["0.50", "2", "hv0", "(0.50", "s)"]
    assert next(line.split() for line in lines if line.startswith("Start"))[1:] == ["2.00", "2", "hv1", "(2.00", "s)"]
