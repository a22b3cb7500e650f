# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cloud whose hosts are rows, and workers that run playbooks over them: everything of a job but the hypervisors."""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import typing as t
import uuid

import sqlalchemy as sa
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import recorded
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job_event, run, run_job
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.server import server
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger_module import operation_of, run_operation
from api.jobs import queue

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLAYBOOKS = pathlib.Path(__file__).with_name("playbooks")
PROJECTS = {"demo": "d" * 32, "other": "e" * 32}


class JobCloud:
    """The ledger at `url` with two projects, two hosts, and jobs; workers have their files in `home`."""

    def __init__(self, home: pathlib.Path, url: str | None = None) -> None:
        self.home = home
        self.url = url
        home.mkdir(exist_ok=True)
        self.engine = open_ledger(None if url else str(home), url)
        self.workers: list[subprocess.Popen[bytes]] = []

    def seed(self, addresses: str = "10.20.0.0/24") -> None:
        facts = {
            "domain_type": "qemu",
            "machine": "pc",
            "emulator": "/usr/bin/qemu-system-x86_64",
            "disk_cache": "none",
            "arch": "x86_64",
            "hypervisor_type": "QEMU",
            "hypervisor_version": 7002000,
        }
        host = {
            "enabled": True,
            "up": True,
            "last_seen_at": int(time.time()),
            "aggregates": [],
            "traits": [],
            "vcpus": 8,
            "memory_mb": 65536,
            "disk_gb": 1000,
            "reserved_vcpus": 0,
            "reserved_memory_mb": 512,
            "reserved_disk_gb": 0,
            "cpu_ratio": 64.0,
            "ram_ratio": 1.0,
            "disk_ratio": 1.0,
            "facts": facts,
        }
        image = {
            "id": str(uuid.uuid4()),
            "name": "ami-tiny",
            "disk_format": "qcow2",
            "source": "/images/tiny",
            "checksum": "sha256:" + "0" * 64,
            "size": 1000,
            "virtual_size": 1024**3,
            "properties": {},
            "created_at": 1,
        }
        with transaction(self.engine) as connection:
            connection.execute(
                sa.insert(tables.project),
                [{"id": number, "name": name, "created_at": 1} for name, number in PROJECTS.items()],
            )
            connection.execute(
                sa.insert(tables.quota),
                [
                    {"project_id": number, "resource": resource, "hard_limit": -1}
                    for number in PROJECTS.values()
                    for resource in ("instances", "cores", "ram")
                ],
            )
            connection.execute(
                sa.insert(tables.flavor).values(name="m1.tiny", vcpus=1, memory_mb=512, root_gb=1, extra_specs={})
            )
            connection.execute(sa.insert(tables.image).values(image))
            connection.execute(sa.insert(tables.compute_host), [{"name": name, **host} for name in ("hv1", "hv2")])
        network = {"name": "private", "cidr": addresses, "bridge": "br100"}
        self.run("network", networks=[network])

    def run(self, operation: str, check_mode: bool = False, **args: t.Any) -> dict[str, t.Any]:
        """Run a controller module's operation as a task does."""
        module = importlib.import_module(f"ansible_collections.novalite.cloud.plugins.modules.{operation}")
        validated = ArgumentSpecValidator(module.ARGUMENT_SPEC, **module.SPEC_RULES).validate(args)
        assert validated.error_messages == []
        ledger = {"home": None if self.url else str(self.home), "ledger_url": self.url}
        return run_operation(operation_of(operation), {**validated.validated_parameters, **ledger}, check_mode)

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

    def delete(self, uuids: t.Sequence[str], project: str = "demo") -> dict[str, t.Any]:
        with transaction(self.engine) as connection:
            request_id = actions.new_request_id()
            recorded.mark(connection, instances_by(connection, uuids=uuids), request_id)
            return queue.enqueue(
                connection, "terminate", instances=uuids, project_id=PROJECTS[project], request_id=request_id
            )

    def job(self, job_id: str) -> dict[str, t.Any]:
        with reading(self.engine) as connection:
            return queue.get(connection, job_id)

    def jobs(self) -> list[dict[str, t.Any]]:
        with reading(self.engine) as connection:
            return queue.list_jobs(connection, limit=1000)

    def instances(self, uuids: t.Sequence[str]) -> dict[str, t.Any]:
        with reading(self.engine) as connection:
            return {instance["uuid"]: instance for instance in instances_by(connection, uuids=uuids, deleted=True)}

    def rows(self, query: t.Any) -> list[t.Any]:
        with reading(self.engine) as connection:
            return list(connection.execute(query).all())

    def write(self, statement: t.Any) -> None:
        with transaction(self.engine) as connection:
            connection.execute(statement)

    def cancel(self, job_id: str) -> dict[str, t.Any]:
        with transaction(self.engine) as connection:
            return queue.cancel(connection, job_id)

    def wait(
        self, *job_ids: str, seconds: float = 60, states: t.Collection[str] = queue.FINAL
    ) -> list[dict[str, t.Any]]:
        """The jobs once all of them are in one of `states`. Raises AssertionError when that takes too long."""
        deadline = time.monotonic() + seconds
        while True:
            found = [self.job(job_id) for job_id in job_ids]
            if all(job["state"] in states for job in found):
                return found
            assert time.monotonic() < deadline, [(job["kind"], job["state"], job["message"]) for job in found]
            time.sleep(0.05)

    # --- Workers ----------------------------------------------------------------------------------------------------

    def environment(self, playbooks: pathlib.Path = PLAYBOOKS) -> dict[str, str]:
        """The environment of a worker, or of an API server with one."""
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        return {
            **inherited,
            "NOVALITE_HOME": str(self.home),
            **({"NOVALITE_LEDGER_URL": self.url} if self.url else {}),
            "NOVALITE_PLAYBOOKS": str(playbooks),
            "NOVALITE_JOBS_TRACE": str(self.home / "trace"),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_INVENTORY": "localhost,",
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "PYTHONPATH": f"{ROOT / 'collections'}:{ROOT}",
        }

    def work(self, playbooks: pathlib.Path = PLAYBOOKS, **environment: str) -> subprocess.Popen[bytes]:
        """Start a worker. `environment` goes to it, and what begins with ANSIBLE_ on to its playbooks."""
        words = {**self.environment(playbooks), **environment}
        with (self.home / "workers.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "api.jobs"],
                env=words,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.workers.append(process)
        return process

    def stop(self) -> None:
        for process in self.workers:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.workers:
            process.wait(20)
        self.workers.clear()

    # --- What must hold ---------------------------------------------------------------------------------------------

    def trace(self) -> list[dict[str, t.Any]]:
        path = self.home / "trace"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def leaks(self) -> list[str]:
        """What in the ledger belongs to nothing: claims and addresses without an instance, sums that are none."""
        found = self.run("ledger_repair", check_mode=True, build_timeout=0)
        return [
            f"{correction['kind']} {correction['name']}: {correction['reason']}" for correction in found["corrections"]
        ]

    def close(self) -> None:
        self.stop()
        self.engine.dispose()


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
