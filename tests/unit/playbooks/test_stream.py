# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps of launches and moves while they happen: `novalite events -f` reads what a run of ansible-playbook tells."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._host.waiting import wait_until
from ansible_collections.novalite.cloud.plugins.plugin_utils import _events
from tests.support.patience import GENEROUS
from tests.unit.playbooks.answering import Hosts
from tests.unit.playbooks.controller import ROOT

SECONDS = 0.4  # of each step
SERVERS = json.dumps({"servers": [{"name": "web", "flavor": "m1.nano", "image": "tiny"}]})
COMMAND = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from api.cli import main; main()"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="/run is root's")


class Follower:
    """`novalite events -f` with more words, and when each of its lines came."""

    def __init__(self, hosts: Hosts, *words: str) -> None:
        self.lines: list[tuple[float, str]] = []
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, "events", "-f", *words],
            env=hosts.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.lines.append((time.time(), line))

    def end(self, signals: signal.Signals) -> int:
        self.process.send_signal(signals)
        status = self.process.wait(GENEROUS)
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return status


@pytest.fixture
def hosts(seeded: pathlib.Path, tmp_path: pathlib.Path) -> Hosts:
    """Hosts that both answer, and take their time."""
    hosts = Hosts(tmp_path)
    shutil.rmtree(hosts.home)
    shutil.copytree(seeded, hosts.home)
    (tmp_path / "dead").write_text("")
    (tmp_path / "slow").write_text(json.dumps({"seconds": SECONDS, "collections": str(ROOT / "collections")}))
    # the guest is not there yet, and its move is let in
    arriving: dict[str, t.Any] = {"domain_info": {"domains": []}, "disk_move": {"door": {"port": 1}}}
    (tmp_path / "failing").write_text(json.dumps({"hv2": arriving}))
    return hosts


@contextlib.contextmanager
def following(hosts: Hosts, *words: str) -> t.Iterator[Follower]:
    before = set(_events._followers(str(hosts.home)))
    follower = Follower(hosts, *words)
    try:
        wait_until(lambda: set(_events._followers(str(hosts.home))) - before, GENEROUS, "nobody follows")
        yield follower
    finally:
        if follower.process.poll() is None:
            follower.end(signal.SIGKILL)


def slowness() -> float:
    """Seconds that this machine takes now for what a question to a host takes: some processes, one after another."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-I", "-c", "import json"], check=True)
    return 10 * (time.monotonic() - began)


def lateness(path: pathlib.Path, lines: list[tuple[float, str]]) -> dict[tuple[str, str], float]:
    """Seconds from each step's start on its host to the first line about it: the most, where it was repeated."""
    started = collections.defaultdict(list)
    for note in map(json.loads, (path / "started").read_text().splitlines()):
        started[note["host"], note["step"]].append(note["at"])
    seen: dict[tuple[str, str], list[float]] = collections.defaultdict(list)
    under_way: set[tuple[str, str]] = set()
    for at, event in ((at, json.loads(line)) for at, line in lines):
        step = event["host"], event["step"]
        if step not in under_way:
            seen[step].append(at)
        (under_way.discard if event["kind"] == "end" else under_way.add)(step)
    assert {step: len(times) for step, times in started.items()} == {step: len(times) for step, times in seen.items()}
    return {step: round(max(b - a for a, b in zip(times, seen[step])), 2) for step, times in started.items()}


def test_each_step_of_a_launch_and_of_a_move_shows_within_a_second(hosts: Hosts, tmp_path: pathlib.Path) -> None:
    with following(hosts, "-o", "json") as follower:
        slow = [slowness()]  # before and after, since others use the machine meanwhile
        played = [hosts.play("launch.yml", "-e", SERVERS), hosts.play("migrate.yml", "-e", "server=web")]
        slow.append(slowness())
        assert [done.returncode for done in played] == [0, 0], "".join(done.stdout for done in played)
        assert follower.end(signal.SIGINT) == 0
    late = lateness(tmp_path, follower.lines)
    assert max(late.values()) < 1.0 + max(slow), late
    steps = {step for _host, step in late}
    assert {
        "Make the disks",
        "Define and start the domains",
        "Send the disks",
        "Put the received disks in place",
    } <= steps
    events = [json.loads(line) for _at, line in follower.lines]
    assert ["web"] in [event["servers"] for event in events if event["step"] == "Make the disks"]
    assert not _events._followers(str(hosts.home))


def test_the_steps_of_one_server_are_lines_for_people(hosts: Hosts) -> None:
    killed = Follower(hosts)
    wait_until(lambda: _events._followers(str(hosts.home)), GENEROUS, "nobody follows")
    killed.end(signal.SIGKILL)
    with following(hosts) as everybody:
        assert len(_events._followers(str(hosts.home))) == 1  # what was left is gone
        explained = {"ANSIBLE_CALLBACKS_ENABLED": "novalite.cloud.explain"}
        done = hosts.play("launch.yml", "-e", SERVERS, "-e", "explain=true", **explained)
        assert done.returncode == 0, done.stdout
        with following(hosts, "web") as follower:
            assert hosts.play("reboot.yml", "-e", "server=web").returncode == 0
            assert hosts.play("launch.yml", "-e", SERVERS.replace("web", "other")).returncode == 0
            follower.end(signal.SIGINT)
        everybody.end(signal.SIGINT)
    lines = [line[10:].rstrip() for _at, line in everybody.lines]
    assert "hv1  web  Make the disks: begins" in lines or "hv2  web  Make the disks: begins" in lines
    assert [line for line in lines if "other  Make the disks: " in line and line.endswith(" s, changed")]
    assert follower.lines and {line.split()[2] for _at, line in follower.lines} == {"web"}
    said = [line for line in done.stdout.splitlines() if line.startswith("...  ") and ": Make the disks" in line]
    begin, end = said
    assert re.fullmatch(rf"{re.escape(begin)}, \d+\.\d+ s, changed", end)
