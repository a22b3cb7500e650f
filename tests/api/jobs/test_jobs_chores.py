# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chores beside the jobs: by one worker of a home, again and again, and none holds up or outlives it."""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import pathlib
import select
import sys
import time
import types
import typing as t

import pytest

from api.jobs.options import Options
from tests.support.patience import GENEROUS


@pytest.fixture
def chores() -> types.ModuleType:
    """The module, which imports more than those need who only collect tests."""
    from api.jobs import chores

    return chores


def until(condition: t.Callable[[], object]) -> None:
    deadline = time.monotonic() + GENEROUS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lines(path: pathlib.Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def chore(chores: types.ModuleType, code: str, seconds: float = 0.05) -> t.Any:
    return chores.Chore("samples", seconds, (sys.executable, "-c", code), dict(os.environ))


def test_there_are_none_unless_asked_for(chores: types.ModuleType) -> None:
    assert chores.of_options(Options.from_environment({})) == []
    environment = {"NOVALITE_JOBS_SAMPLE_SECONDS": "60", "NOVALITE_INVENTORY": "/etc/hosts.ini"}
    (samples,) = chores.of_options(Options.from_environment(environment))
    assert samples.seconds == 60 and samples.command[1:5] == ("-m", "ansible", "playbook", "-i")
    assert pathlib.Path(samples.command[-1]).is_file() and samples.environment["NOVALITE_HOME"]
    environment = {"NOVALITE_JOBS_WATCH_SECONDS": "10", "NOVALITE_HOME": "/srv/cloud"}
    watch, recovery = chores.of_options(Options.from_environment(environment))
    assert (watch.name, watch.seconds, pathlib.Path(watch.command[-1]).name) == ("watch", 10, "watch.yml")
    (backups,) = chores.of_options(Options.from_environment({"NOVALITE_JOBS_BACKUP_SECONDS": "600"}))
    assert (backups.name, backups.seconds, pathlib.Path(backups.command[-1]).name) == ("backups", 600, "backup_due.yml")
    assert pathlib.Path(backups.command[-1]).is_file() and backups.patience >= 3600  # large disks take hours
    (copies,) = chores.of_options(Options.from_environment({"NOVALITE_JOBS_REPLICATE_SECONDS": "60"}))
    assert (copies.name, copies.seconds, pathlib.Path(copies.command[-1]).name) == ("replicas", 60, "replicate.yml")
    assert pathlib.Path(copies.command[-1]).is_file() and copies.patience >= 3600
    (balance,) = chores.of_options(Options.from_environment({"NOVALITE_JOBS_BALANCE_SECONDS": "900"}))
    assert (balance.name, balance.seconds, pathlib.Path(balance.command[-1]).name) == ("balance", 900, "balance.yml")
    words = json.loads(balance.command[-2])  # it is a turn beside the watch, and moves no more than that may
    assert words == {"balance_watch": True, "balance_every": 900} and pathlib.Path(balance.command[-1]).is_file()
    # rounds go on while guests are built anew, which may take long
    assert pathlib.Path(watch.command[-1]).is_file() and json.loads(watch.command[-2]) == {"watch_recovers": False}
    assert pathlib.Path(recovery.command[-1]).is_file() and recovery.command[-1].endswith("/watch_recover.yml")
    assert recovery.trigger == "/srv/cloud/watch.recover" and recovery.patience >= 3600 and recovery.seconds <= 1


def test_notices_are_one_where_somebody_is_to_be_told(
    chores: types.ModuleType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOVALITE_NOTIFY_WEBHOOK", "https://hooks.example.org/x")
    (notices,) = chores.of_options(Options.from_environment({"NOVALITE_HOME": "/srv/cloud"}))
    assert notices.command[1:] == ("-m", "api.notices") and notices.environment["NOVALITE_HOME"] == "/srv/cloud"
    assert "hooks.example.org" not in " ".join(notices.command)
    monkeypatch.setenv("NOVALITE_NOTIFY_WEBHOOK", "file:///etc/passwd")
    assert chores.of_options(Options.from_environment({})) == []
    assert "nobody is told what needs attention" in caplog.text


def test_it_is_done_again_and_again_by_one_worker(chores: types.ModuleType, tmp_path: pathlib.Path) -> None:
    def writing(name: str) -> list[t.Any]:
        return [chore(chores, f"open({str(tmp_path / 'done')!r}, 'a').write('{name}\\n')")]

    first = chores.Chores(writing("first"), str(tmp_path))
    until(lambda: len(lines(tmp_path / "done")) >= 2)
    second = chores.Chores(writing("second"), str(tmp_path))
    time.sleep(0.3)
    assert "second" not in lines(tmp_path / "done")
    first.stop()
    until(lambda: "second" in lines(tmp_path / "done"))
    second.stop()
    done = len(lines(tmp_path / "done"))
    time.sleep(0.2)
    assert len(lines(tmp_path / "done")) == done


def test_the_watch_stands_by_without_a_process_until_it_may_have_the_lease(
    chores: types.ModuleType, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lock:
        """Lock whose number is 7, and its session a pipe."""

        number, free = 7, False

        def __init__(self) -> None:
            self.ends = os.pipe()

        def may_watch(self) -> bool:
            return self.free

        def hold(self) -> int:
            return self.ends[1]

        def close(self) -> None:
            os.close(self.ends[1])

    monkeypatch.setattr(chores, "STANDBY", 0.05)
    code = "import os; os.write(int(os.environ['SESSION']), os.environ['NOVALITE_WATCH_LOCK'].encode())"
    lock = Lock()
    watch = chores.Chore("watch", 600, (sys.executable, "-c", code), {**os.environ, "SESSION": str(lock.ends[1])})
    worker = chores.Chores([dataclasses.replace(watch, leased=True, watches=True)], str(tmp_path), lock)
    time.sleep(0.3)
    lock.free = True
    with open(lock.ends[0]) as said:
        until(lambda: select.select([said], [], [], 0)[0])
        worker.stop()
        assert said.read() == "7"


def test_rounds_of_the_watch_are_counted_from_their_beginning(chores: types.ModuleType, tmp_path: pathlib.Path) -> None:
    begun = tmp_path / "begun"
    code = f"import time; print(time.time(), file=open({str(begun)!r}, 'a')); time.sleep(1.8)"
    worker = chores.Chores([dataclasses.replace(chore(chores, code, 2), watches=True)], str(tmp_path))
    until(lambda: len(lines(begun)) >= 3)
    worker.stop()
    first, _second, third = (float(line) for line in lines(begun)[:3])
    assert third - first < 7  # 4 and what starts take; from end to beginning it were 8


def test_with_a_trigger_it_is_done_once_for_each(chores: types.ModuleType, tmp_path: pathlib.Path) -> None:
    trigger, output = tmp_path / "trigger", tmp_path / "output"
    code = f"open({str(output)!r}, 'a').write('x'); raise SystemExit(3)"
    triggered = dataclasses.replace(chore(chores, code), trigger=str(trigger))
    worker = chores.Chores([triggered], str(tmp_path))
    try:
        output.touch()
        for before, after in (("", "x"), ("x", "xx")):
            time.sleep(0.3)
            assert output.read_text() == before
            trigger.touch()
            until(lambda: output.read_text() != before)  # noqa: B023  # asked at once
            assert output.read_text() == after
            assert not trigger.exists()
    finally:
        worker.stop()


def test_a_failure_is_told_once_and_its_end_too(
    chores: types.ModuleType, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    well = f"os.path.exists({str(tmp_path / 'well')!r})"
    code = f"import os, sys; print('a line'); sys.exit(None if {well} else 'broken')"
    with caplog.at_level(logging.WARNING):
        worker = chores.Chores([chore(chores, code)], str(tmp_path))
        until(lambda: caplog.messages)
        time.sleep(0.3)
        assert caplog.messages == ["samples: broken"]
        (tmp_path / "well").touch()
        until(lambda: len(caplog.messages) > 1)
        worker.stop()
    assert caplog.messages == ["samples: broken", "samples: well again"]


def test_one_that_hangs_is_ended_with_its_processes(
    chores: types.ModuleType, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(chores, "SHORTEST", 1.0)
    child = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(600)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], start_new_session=True)"
    hanging = chores.Chore("samples", 0.05, (sys.executable, "-c", code), dict(os.environ), str(tmp_path))
    with caplog.at_level(logging.WARNING):
        worker = chores.Chores([hanging], str(tmp_path))
        until(lambda: caplog.messages)
        worker.stop()
    assert caplog.messages[0] == "samples: it was not done within 1 s, and ended"
    assert not lines(pathlib.Path("/proc", lines(tmp_path / "pid")[0], "cmdline"))  # gone, or dead


def test_a_worker_that_stops_does_not_wait_for_it(chores: types.ModuleType, tmp_path: pathlib.Path) -> None:
    worker = chores.Chores(
        [chore(chores, f"open({str(tmp_path / 'on')!r}, 'w'); import time; time.sleep(600)")], str(tmp_path)
    )
    until((tmp_path / "on").exists)
    began = time.monotonic()
    worker.stop()
    assert time.monotonic() - began < 10
