# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chaos: requests at random while clients and workers are killed with SIGKILL every few seconds.

    python -m tests.api.chaos --requests 200                          over hosts that are rows (no hypervisor)
    python -m tests.api.chaos --requests 200 --lab <NOVALITE_HOME>    over the lab that tools/lab made there
    ... --ledger-url postgresql://... --workers 3 --clients 2

Ends with 0 when every request came to a final state, no run overlapped itself, and nothing is left over in the ledger
or, with a lab, on its hosts.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tables_jobs import job, run
from api.jobs import supervisor
from tests.api.chaos.client import KINDS
from tests.api.jobs.clouds import PLAYBOOKS, ROOT, JobCloud, overlaps

REST = ("active", "error", "stopped")  # vm_states of instances that nobody is at


class Chaos:
    def __init__(self, cloud: JobCloud, options: argparse.Namespace) -> None:
        self._cloud = cloud
        self._options = options
        self._random = random.Random(options.seed)
        self._clients: list[subprocess.Popen[bytes]] = []
        self._workers: list[subprocess.Popen[bytes]] = []
        self._began = 0.0
        self.killed: collections.Counter[str] = collections.Counter()

    def wreak(self) -> list[str]:
        """Do all of it; returns what was found wrong."""
        options = self._options
        self._began = time.time()
        deadline = time.monotonic() + options.patience
        next_kill = time.monotonic() + self._pause()
        while not self._is_over():
            if time.monotonic() > deadline:
                break
            self._ensure(self._clients, options.clients, self._client)
            self._ensure(self._workers, options.workers, self._worker)
            if time.monotonic() > next_kill:
                self._kill()
                next_kill = time.monotonic() + self._pause()
            time.sleep(0.1)
        # The last ones are left in peace, so that there is an end
        self._ensure(self._workers, options.workers, self._worker)
        while self._open() and time.monotonic() < deadline:
            time.sleep(0.2)
        wrong = self._wrong()
        for one in self._clients:
            one.kill()
            one.wait()
        self._cloud.stop()
        return wrong

    def summary(self) -> str:
        states = self._cloud.rows(sa.select(job.c.kind, job.c.state, sa.func.count()).group_by(job.c.kind, job.c.state))
        shown = ", ".join(f"{kind} {state}: {count}" for kind, state, count in sorted(tuple(row) for row in states))
        runs = self._cloud.rows(sa.select(sa.func.count(), sa.func.sum(run.c.attempts)))[0]
        return (
            f"{shown}; {runs[0]} runs in {runs[1]} attempts; killed {dict(self.killed)}; "
            f"{time.time() - self._began:.0f} s"
        )

    # - Processes

    def _pause(self) -> float:
        return self._options.kill_every * self._random.uniform(0.5, 1.5)

    @staticmethod
    def _ensure(
        found: list[subprocess.Popen[bytes]], count: int, start: t.Callable[[], subprocess.Popen[bytes]]
    ) -> None:
        found[:] = [one for one in found if one.poll() is None]
        while len(found) < count:
            found.append(start())

    def _worker(self) -> subprocess.Popen[bytes]:
        options = self._options
        if options.lab:
            images = os.environ.get("NOVALITE_IMAGES", str(ROOT / ".cache/images"))
            return self._cloud.work(
                ROOT / "playbooks", ANSIBLE_INVENTORY=str(ROOT / "inventories/lab"), NOVALITE_IMAGES=images
            )
        return self._cloud.work(PLAYBOOKS, ANSIBLE_NOVALITE_SLEEP="0.5")

    def _client(self) -> subprocess.Popen[bytes]:
        if self._enough():
            return subprocess.Popen(["sleep", "3600"])  # nothing to ask any more
        options = self._options
        words = {
            "flavor": "m1.nano" if options.lab else "m1.tiny", "requests": options.requests, "seed": options.seed,
            "pause": options.pause, "instances": options.instances,
        }  # fmt: skip
        environment = {**os.environ, "NOVALITE_HOME": str(self._cloud.home)}
        environment["PYTHONPATH"] = f"{ROOT / 'collections'}:{ROOT}"
        if self._cloud.url:
            environment["NOVALITE_LEDGER_URL"] = self._cloud.url
        command = [sys.executable, "-m", "tests.api.chaos.client"]
        with (self._cloud.home / "clients.log").open("ab") as log:
            return subprocess.Popen(
                [*command, *(f"--{name}={value}" for name, value in words.items())],
                env=environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def _kill(self) -> None:
        """One process at random; now and then a supervisor, which nobody but the machine's memory would kill."""
        victims = [("client", one.pid) for one in self._clients] + [("worker", one.pid) for one in self._workers] * 2
        at_work = {note["run"]: note for note in self._cloud.trace()}
        victims += [("supervisor", one["pid"]) for one in at_work.values() if one["what"] == "start"]
        what, pid = self._random.choice(victims)
        if what == "supervisor" and b"supervisor.py" not in _command(pid):
            return  # it ended meanwhile
        try:
            os.kill(pid, signal.SIGKILL)
            self.killed[what] += 1
        except ProcessLookupError:
            pass

    # - What holds

    def _enough(self) -> bool:
        return len(self._cloud.rows(sa.select(job.c.id).where(job.c.kind.in_(KINDS)))) >= self._options.requests

    def _open(self) -> bool:
        return bool(self._cloud.rows(sa.select(job.c.id).where(job.c.state.in_(["queued", "running"])).limit(1)))

    def _is_over(self) -> bool:
        return self._enough() and not self._open()

    def _wrong(self) -> list[str]:
        instance, action = tables.instance, tables.instance_action
        wrong = [
            f"job {row.id} ({row.kind}) is {row.state}"
            for row in self._cloud.rows(sa.select(job).where(job.c.state.in_(["queued", "running"])))
        ]
        for row in self._cloud.rows(sa.select(instance).where(instance.c.deleted == 0)):
            if row.vm_state not in REST or row.task_state:
                wrong.append(f"instance {row.name} is {row.vm_state}/{row.task_state} on {row.host}")
        unfinished = sa.select(action).where(action.c.finished_at.is_(None))
        for row in self._cloud.rows(unfinished):
            wrong.append(f"action {row.action} of {row.instance_uuid} has no end")
        running = self._cloud.rows(sa.select(run).where(run.c.state == "running"))
        wrong += [f"run {row.id} is still running" for row in running]
        wrong += overlaps(self._cloud.trace())
        for row in self._cloud.rows(sa.select(run.c.id)):
            if left := supervisor.processes_of(row.id):
                wrong.append(f"processes {left} of run {row.id} are left")
        wrong += self._cloud.leaks()
        runs = self._cloud.home / "jobs" / "runs"
        wrong += [f"{path} is left" for path in runs.iterdir()]
        if self._options.lab:
            wrong += self._wrong_on_hosts()
        return wrong

    def _wrong_on_hosts(self) -> list[str]:
        done = subprocess.run(
            ["ansible-playbook", "-i", "inventories/lab", "tests/api/chaos/verify.yml"],
            env={**os.environ, "NOVALITE_HOME": str(self._cloud.home), "ANSIBLE_NOCOLOR": "1"},
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return [] if done.returncode == 0 else [f"hosts: {done.stdout[-3000:]}"]


def _command(pid: int) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def options_of(argv: t.Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.api.chaos")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--instances", type=int, default=6, help="at most so many at a time")
    parser.add_argument("--kill-every", type=float, default=5.0, help="seconds")
    parser.add_argument("--pause", type=float, default=1.0, help="longest pause of a client, seconds")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds for all of it")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--home", help="where its files go; kept")
    parser.add_argument("--lab", help="home of a lab; its ledger is used unless there is --ledger-url")
    parser.add_argument("--ledger-url", help="an empty PostgreSQL database")
    return parser.parse_args(argv)


def main() -> int:
    options = options_of()
    with tempfile.TemporaryDirectory(prefix="novalite-chaos-") as scratch:
        cloud = JobCloud(pathlib.Path(options.lab or options.home or f"{scratch}/home"), options.ledger_url)
        try:
            if not options.lab:
                cloud.seed()
            chaos = Chaos(cloud, options)
            wrong = chaos.wreak()
            print(json.dumps({"seed": options.seed, "wrong": wrong, "summary": chaos.summary()}, indent=1))
        finally:
            cloud.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
