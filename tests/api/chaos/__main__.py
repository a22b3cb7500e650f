# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chaos: clients ask the API at random, while its processes and the workers are killed with SIGKILL every few seconds.

    python -m tests.api.chaos --requests 200                          over hosts that are rows (no hypervisor)
    python -m tests.api.chaos --requests 200 --lab <NOVALITE_HOME>    over the lab that tools/lab made there
    ... --postgresql                                                  two API servers, three workers, a PostgreSQL

Over SQLite one API server keeps its own worker. Ends with 0 when every request that was accepted came to a final
state, no run overlapped itself, and nothing is left over in the ledger or, with a lab, on its hosts. At the end
everything is deleted through the API, and looked at once more.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job, run
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import hash_password
from tests.api.chaos import checks
from tests.api.chaos.client import Book, Client, Login
from tests.api.chaos.processes import Service, Victims
from tests.api.jobs.clouds import PLAYBOOKS, PROJECTS, ROOT, JobCloud
from tests.support import postgresql

USER = "chaos"
# How often a process of a kind is killed, beside the others. A worker's end costs its runs all that they did so far.
KINDS = {"arbiter": 1.0, "api": 3.0, "worker": 1.0, "supervisor": 0.5}


class Chaos:
    def __init__(self, cloud: JobCloud, options: argparse.Namespace) -> None:
        self._cloud, self._options = cloud, options
        self._random = random.Random(options.seed)
        self._environment = self._environment_of(options)
        self._logs = pathlib.Path(options.logs or cloud.home)
        self._logs.mkdir(exist_ok=True)
        (cloud.home / "trace").unlink(missing_ok=True)
        shared = cloud.ledger_url is not None
        ports = [_free_port() for _server in range(2 if shared else 1)]
        self._urls = [f"http://127.0.0.1:{port}" for port in ports]
        commands = {
            f"api{number}": ["serve", "--bind", f"127.0.0.1:{port}", *(["--no-worker"] if shared else [])]
            for number, port in enumerate(ports)
        }
        commands |= {f"worker{number}": ["work"] for number in range(3 if shared else 0)}
        self._services = [
            Service(name, command, self._environment, self._logs / f"{name}.log") for name, command in commands.items()
        ]
        self._victims = Victims(self._services, self._supervisors)
        self._killed_at: dict[int, float] = {}
        self.killed: collections.Counter[str] = collections.Counter()
        self.book = Book(options.requests)
        self.seconds = 0.0

    def wreak(self) -> list[str]:
        """Do all of it; returns what was found wrong."""
        try:
            login = self._prepare()
            if before := self._tidy(login):  # of another chaos that was cut off
                return before
            earlier = checks.names(self._cloud)
            clients = [self._client(number, login) for number in range(self._options.clients)]
            began = time.monotonic()
            try:
                for client in clients:
                    client.start()
                self._kill_until_all_asked(clients)
            finally:
                for client in clients:
                    client.stopping.set()
            wrong = self._settle("requests")
            self.seconds = time.monotonic() - began
            wrong += self.book.wrong + checks.requests_ended(self._cloud, self.book.accepted, earlier)
            wrong += checks.at_rest(self._cloud) + self._hosts()
            wrong += checks.overlaps(self._cloud.trace(), self._killed_at)
            return wrong + [f"after everything was deleted: {complaint}" for complaint in self._tidy(login)]
        finally:
            for service in self._services:
                service.ask_to_stop()
            for service in self._services:
                service.stop()

    def summary(self) -> dict[str, t.Any]:
        count = sa.func.count()
        jobs = self._cloud.rows(sa.select(job.c.kind, job.c.state, count).group_by(job.c.kind, job.c.state))
        runs = self._cloud.rows(sa.select(count, sa.func.sum(run.c.attempts)))[0]
        instance = tables.instance
        states = self._cloud.rows(sa.select(instance.c.vm_state, count).group_by(instance.c.vm_state))
        return {
            "seed": self._options.seed,
            "accepted": len(self.book.accepted),
            "clients": dict(sorted(self.book.counts.items())),
            "killed": {**self.killed, "in all": self.killed.total()},
            "jobs": {f"{kind} {state}": number for kind, state, number in sorted(tuple(row) for row in jobs)},
            "runs": runs[0],
            "attempts": runs[1],
            "instances": dict(tuple(row) for row in states),
            "starts of servers": {service.name: len(service.ends) + 1 for service in self._services},
            "seconds": round(self.seconds, 1),
        }

    # - Before

    def _environment_of(self, options: argparse.Namespace) -> dict[str, str]:
        cloud = self._cloud
        environment = {
            **cloud.environment(ROOT / "playbooks" if options.lab else PLAYBOOKS),
            "PWD": str(ROOT),
            "NOVALITE_API_THREADS": "4",
            "ANSIBLE_FORCE_COLOR": "0",
        }
        if options.lab:
            environment["ANSIBLE_INVENTORY"] = str(ROOT / "inventories/lab")
            environment["NOVALITE_IMAGES"] = os.environ.get("NOVALITE_IMAGES", str(ROOT / ".cache/images"))
        else:
            environment["ANSIBLE_NOVALITE_SLEEP"] = "0.5"
        return environment

    def _prepare(self) -> Login:
        for service in self._services:
            service.keep()
        if not self._options.lab:
            password = "of one who asks for much"
            project = PROJECTS["demo"]
            with transaction(self._cloud.engine) as connection:
                words = {"name": USER, "password_hash": hash_password(password), "default_project_id": project}
                user = users.insert_user(connection, words)
                users.grant_role(connection, user["id"], project, "member")
            return Login(USER, password, "demo")
        # an empty ledger needs the hosts and what to launch; the lab's own has all but users
        books = ["playbooks/compute_nodes.yml", "playbooks/seed.yml"] if self._cloud.ledger_url else []
        command = ["ansible-playbook", "-i", "inventories/lab", *books, "playbooks/users.yml"]
        done = subprocess.run(command, env=self._environment, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stdout[-3000:] + done.stderr)
        password = (self._cloud.home / "lab/passwords/demo").read_text().split()[0]
        return Login("demo", password, "demo")

    def _client(self, number: int, login: Login) -> Client:
        options = self._options
        flavor = "m1.nano" if options.lab else "m1.tiny"
        return Client(
            number,
            self._urls,
            login,
            self.book,
            seed=options.seed,
            flavor=flavor,
            image="ami-tiny",
            servers=options.instances,
            pause=options.pause,
        )

    # - While

    def _kill_until_all_asked(self, clients: t.Sequence[Client]) -> None:
        deadline = time.monotonic() + self._options.patience
        next_kill = time.monotonic() + self._pause()
        while any(client.is_alive() for client in clients):
            if time.monotonic() > deadline:
                self.book.complain(f"only {len(self.book.accepted)} requests in {self._options.patience} s")
                return
            self._keep()
            if time.monotonic() > next_kill:
                self._kill()
                next_kill = time.monotonic() + self._pause()
            time.sleep(0.05)

    def _pause(self) -> float:
        return float(self._options.kill_every * self._random.uniform(0.5, 1.5))

    def _keep(self) -> None:
        for service in self._services:
            service.keep()

    def _kill(self) -> None:
        pids_by_kind = self._victims.find()
        if not pids_by_kind:
            return
        all_of_them = [(what, pid) for what, pids in pids_by_kind.items() for pid in pids]
        what, pid = self._random.choices(all_of_them, weights=[KINDS[what] for what, _pid in all_of_them])[0]
        with contextlib.suppress(ProcessLookupError):
            self._killed_at[pid] = time.time()
            os.kill(pid, signal.SIGKILL)
            self.killed[what] += 1

    def _supervisors(self) -> t.Iterable[int]:
        at_work: dict[str, int] = {}
        for note in self._cloud.trace():
            if note["what"] == "start":
                at_work[note["run"]] = note["pid"]
            else:
                at_work.pop(note["run"], None)
        return at_work.values()

    # - After

    def _settle(self, what: str) -> list[str]:
        """Nobody is killed any more, so that there is an end."""
        deadline = time.monotonic() + self._options.patience
        waiting = sa.select(job.c.id).where(job.c.state.in_(["queued", "running"])).limit(1)
        while self._cloud.rows(waiting):
            if time.monotonic() > deadline:
                return [f"{what}: not at rest after {self._options.patience} s"]
            self._keep()
            time.sleep(0.1)
        time.sleep(0.5)  # the last supervisor lets go
        return []

    def _hosts(self) -> list[str]:
        return checks.hosts(self._cloud, self._environment) if self._options.lab else []

    def _tidy(self, login: Login) -> list[str]:
        """Delete everything, as a user would: what is left then belongs to nobody."""
        book = Book(self._options.requests)
        client = Client(0, self._urls, login, book, seed=0, flavor="", image="", servers=0, pause=0.0)
        for server in client.servers():
            client.delete(server["id"])
        wrong = self._settle("deletion of everything") + book.wrong
        return wrong + checks.at_rest(self._cloud) + checks.nothing_left(self._cloud) + self._hosts()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def options_of(argv: t.Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.api.chaos")
    parser.add_argument("--requests", type=int, default=200, help="that are accepted")
    parser.add_argument("--clients", type=int, default=3)
    parser.add_argument("--instances", type=int, default=6, help="at most so many at a time")
    parser.add_argument("--kill-every", type=float, default=4.0, help="seconds")
    parser.add_argument("--pause", type=float, default=1.0, help="longest pause of a client, seconds")
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds for the requests, and for their end")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--home", help="where its files go; kept")
    parser.add_argument("--logs", help="directory for what servers and workers say; default: the home")
    parser.add_argument("--lab", help="home of a lab; its ledger is used unless there is --postgresql")
    parser.add_argument("--postgresql", action="store_true", help="two API servers, three workers")
    return parser.parse_args(argv)


def main() -> int:
    options = options_of()
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))  # by way of all that is to be cleaned up
    with contextlib.ExitStack() as stack:
        scratch = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="novalite-chaos-")))
        url = None
        if options.postgresql:
            url = stack.enter_context(postgresql.shared_server(scratch)).create("chaos")
        home = pathlib.Path(options.lab or options.home or scratch / "home")
        cloud = stack.enter_context(contextlib.closing(JobCloud(home, url)))
        if not options.lab:
            cloud.seed()
        chaos = Chaos(cloud, options)
        wrong = chaos.wreak()
        print(json.dumps({"wrong": wrong, **chaos.summary()}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
