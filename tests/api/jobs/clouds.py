# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cloud whose hosts are rows, and workers that run playbooks over them: everything of a job but the hypervisors."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import api_created
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job_event, run, run_job
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.instances import actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.server import server
from api.jobs import queue
from tests.api import started
from tests.support.cloud import Cloud, sqlite
from tests.support.patience import GENEROUS
from tests.support.rows import DEMO, OTHER, QEMU, a_flavor, an_image

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOKS = pathlib.Path(__file__).with_name("playbooks")
PROJECTS = {"demo": DEMO, "other": OTHER}


class JobCloud(Cloud):
    """The ledger at `url`, or in `home`, with two projects, two hosts, and jobs; workers have their files in `home`."""

    def __init__(self, home: pathlib.Path, url: str | None = None) -> None:
        home.mkdir(exist_ok=True)
        super().__init__(url or sqlite(home))
        self.home = home
        self.ledger_url = url  # None: it is in `home`
        self.workers: list[started.Process] = []

    def seed(self, addresses: str = "10.20.0.0/24") -> None:
        facts = {**QEMU, "domain_type": "qemu", "machine": "pc", "emulator": "/usr/bin/qemu-system-x86_64"}
        facts["disk_cache"] = "none"
        for name, number in PROJECTS.items():
            self.project(name, number)
            for resource in ("instances", "cores", "ram"):
                self.insert(tables.quota, project_id=number, resource=resource, hard_limit=-1)
        self.insert(tables.flavor, **a_flavor())
        self.insert(tables.image, **an_image(), created_at=1)
        for name in ("hv1", "hv2"):
            room = {"vcpus": 8, "memory_mb": 65536, "disk_gb": 1000, "reserved_memory_mb": 512, "cpu_ratio": 64.0}
            self.host(name, last_seen_at=int(time.time()), facts=facts, **room)
        self.run("network", networks=[{"name": "private", "cidr": addresses, "bridge": "br100"}])

    # --- What the API does ------------------------------------------------------------------------------------------

    def create(self, name: str, count: int = 1, project: str = "demo", **more: t.Any) -> dict[str, t.Any]:
        """Record `count` servers and the job that builds them."""
        with transaction(self.engine) as connection:
            asked = {"name": name, "count": count, "flavor": "m1.tiny", "image": "ami-tiny"}
            made = server(connection, {"project": project, "servers": [asked]})
            return queue.enqueue(
                connection,
                "launch",
                instances=[instance["uuid"] for instance in made["to_build"]],
                project_id=PROJECTS[project],
                request_id=made["request_id"],
                **more,
            )

    def terminate(self, uuids: t.Sequence[str], project: str = "demo") -> dict[str, t.Any]:
        with transaction(self.engine) as connection:
            request_id = actions.new_request_id()
            api_created.mark(connection, instances_by(connection, uuids=uuids), request_id)
            return queue.enqueue(
                connection, "terminate", instances=uuids, project_id=PROJECTS[project], request_id=request_id
            )

    def job(self, job_id: str) -> dict[str, t.Any]:
        with reading(self.engine) as connection:
            return job_records.get(connection, job_id)

    def jobs(self) -> list[dict[str, t.Any]]:
        with reading(self.engine) as connection:
            return job_records.list_jobs(connection, limit=1000)

    def instances(self, uuids: t.Sequence[str]) -> dict[str, t.Any]:
        with reading(self.engine) as connection:
            return {instance["uuid"]: instance for instance in instances_by(connection, uuids=uuids, deleted=True)}

    def cancel(self, job_id: str) -> dict[str, t.Any]:
        with transaction(self.engine) as connection:
            return queue.cancel(connection, job_id)

    def wait(
        self, *job_ids: str, seconds: float = GENEROUS, states: t.Collection[str] = job_records.FINAL
    ) -> list[dict[str, t.Any]]:
        """The jobs once all of them are in one of `states`. Raises AssertionError when that takes too long."""
        deadline = time.monotonic() + seconds
        while True:
            jobs = [self.job(job_id) for job_id in job_ids]
            if all(job["state"] in states for job in jobs):
                return jobs
            assert time.monotonic() < deadline, [(job["kind"], job["state"], job["message"]) for job in jobs]
            time.sleep(0.05)

    # --- Workers ----------------------------------------------------------------------------------------------------

    def environment(self, playbooks: pathlib.Path = PLAYBOOKS) -> dict[str, str]:
        """The environment of a worker, or of an API server with one."""
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        return {
            **inherited,
            "NOVALITE_HOME": str(self.home),
            **({"NOVALITE_LEDGER_URL": self.ledger_url} if self.ledger_url else {}),
            "NOVALITE_PLAYBOOKS": str(playbooks),
            "NOVALITE_JOBS_TRACE": str(self.home / "trace"),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_INVENTORY": "localhost,",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "PYTHONPATH": f"{ROOT / 'collections'}:{ROOT}",
        }

    def work(self, playbooks: pathlib.Path = PLAYBOOKS, **environment: str) -> started.Process:
        """Start a worker. `environment` goes to it, and what begins with ANSIBLE_ on to its playbooks."""
        words = {**self.environment(playbooks), **environment}
        process = started.start("api.jobs", environment=words, log=self.home / "workers.log")
        self.workers.append(process)
        return process

    def stop(self) -> None:
        for process in self.workers:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.workers:
            process.wait(GENEROUS)
        self.workers.clear()

    # --- What must hold ---------------------------------------------------------------------------------------------

    def trace(self) -> list[dict[str, t.Any]]:
        path = self.home / "trace"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def leaks(self) -> list[str]:
        """List what in the ledger belongs to nothing: claims and addresses without an instance, sums that are none."""
        heal_result = self.run("ledger_heal", check_mode=True, build_timeout=0)
        return [
            f"{correction['kind']} {correction['name']}: {correction['reason']}"
            for correction in heal_result["corrections"]
        ]

    def close(self) -> None:
        self.stop()
        super().close()


def overlaps(trace: t.Sequence[t.Mapping[str, t.Any]]) -> list[str]:
    """Runs that were at work twice at once. One whose supervisor was killed ended when the next one had the lock."""
    at_work: dict[str, int] = {}
    wrong = []
    for note in trace:
        if note["what"] == "start":
            before = at_work.get(note["run"])
            if before is not None and pathlib.Path(f"/proc/{before}").exists():
                wrong.append(f"run {note['run']} began in {note['pid']} while {before} lives")
            at_work[note["run"]] = note["pid"]
        else:
            at_work.pop(note["run"], None)
    return wrong


__all__ = ["PLAYBOOKS", "PROJECTS", "JobCloud", "job_event", "overlaps", "run", "run_job"]
