# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""api.burst20, api.one: from the request to ACTIVE through the queue, beside launch.yml alone.

A request is what a POST writes: the server's records and its job, in one transaction each; what HTTP costs is
api.post_servers_ms. A worker waits as it does beside the API. `ours` ends when the last server is ACTIVE, the
reference when the playbook ends; neither waits for guests to boot.
"""

from __future__ import annotations

import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger import actions, recorded, tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.servers import server
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.views import instances_by
from api.jobs import queue
from tests.bench.cloud import IMAGES, REPOSITORY, Cloud

SIZES = {"api.one": (1, 5), "api.burst20": (20, 3)}  # requests, rounds
PATIENCE = 600  # seconds
LOOK = 0.02


def run(wanted: str) -> t.Iterator[dict[str, t.Any]]:
    sizes = {name: size for name, size in SIZES.items() if name.startswith(wanted)}
    if not sizes:
        return
    with Cloud(instances=20) as cloud, Requests(cloud) as requests:
        _playbook(cloud, 1)  # the image is on the host from here on
        for name, (count, rounds) in sizes.items():
            ours, reference = [], []
            for _round in range(rounds):
                ours.append(requests.launch(count))
                requests.terminate()
                reference.append(_playbook(cloud, count))
            us, them = statistics.median(ours), statistics.median(reference)
            figures = {"ours": round(us, 3), "reference": round(them, 3), "ratio": round(us / them, 3)}
            yield {"bench": name, **figures, "unit": "s"}


def _playbook(cloud: Cloud, count: int) -> float:
    wanted = {"name": "bench", "count": count}
    seconds = cloud.playbook(
        "playbooks/launch.yml", **wanted, flavor="m1.nano", image="ami-tiny", key="test", spawn_wait_for_ssh=False
    )
    cloud.playbook("playbooks/terminate.yml", **wanted)
    return seconds


class Requests:
    """What the API's processes do, and a worker."""

    def __init__(self, cloud: Cloud) -> None:
        self._engine = open_ledger(str(cloud.home))
        environment = {
            **os.environ,
            "NOVALITE_HOME": str(cloud.home),
            "NOVALITE_INVENTORY": str(cloud.inventory),
            "NOVALITE_IMAGES": str(IMAGES),
            "PYTHONPATH": f"{REPOSITORY / 'collections'}:{REPOSITORY}",
        }
        environment.pop("NOVALITE_LEDGER_URL", None)
        self._log = (pathlib.Path(cloud.home) / "worker.log").open("wb")
        self._worker = subprocess.Popen(
            [sys.executable, "-m", "api.jobs"],
            env=environment, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
        )  # fmt: skip
        self._uuids: list[str] = []
        with reading(self._engine) as connection:
            self._project = connection.execute(
                sa.select(tables.project.c.id).where(tables.project.c.name == "demo")
            ).scalar_one()
        time.sleep(5)  # it has come up

    def __enter__(self) -> Requests:
        return self

    def __exit__(self, *_error: object) -> None:
        self._worker.send_signal(signal.SIGTERM)
        self._worker.wait()
        self._log.close()
        self._engine.dispose()

    def launch(self, count: int) -> float:
        """Ask `count` times for one server; the seconds until the last one is ACTIVE."""
        self._uuids = []
        began = time.perf_counter()
        for number in range(count):
            asked = {"name": f"burst-{number}", "flavor": "m1.nano", "image": "ami-tiny", "key": "test"}
            with transaction(self._engine) as connection:
                made = server(connection, {"project": "demo", "servers": [asked]})
                self._enqueue(connection, "launch", [made["to_build"][0]["uuid"]], made["request_id"])
            self._uuids.append(made["to_build"][0]["uuid"])
        instance = tables.instance
        query = sa.select(instance.c.vm_state).where(instance.c.uuid.in_(self._uuids))
        while True:
            with reading(self._engine) as connection:
                states = connection.execute(query).scalars().all()
            if set(states) == {"active"}:
                seconds = time.perf_counter() - began
                self._wait()
                return seconds
            if "error" in states or time.perf_counter() - began > PATIENCE:
                raise SystemExit(f"the burst came to {states}")
            time.sleep(LOOK)

    def terminate(self) -> None:
        request_id = actions.new_request_id()
        with transaction(self._engine) as connection:
            recorded.mark(connection, instances_by(connection, uuids=self._uuids), request_id)
            self._enqueue(connection, "terminate", self._uuids, request_id)
        self._wait()

    def _enqueue(self, connection: sa.Connection, kind: str, uuids: list[str], request_id: str) -> None:
        queue.enqueue(connection, kind, instances=uuids, project_id=self._project, request_id=request_id)

    def _wait(self) -> None:
        """Until the worker has nothing to do."""
        deadline = time.perf_counter() + PATIENCE
        while time.perf_counter() < deadline:
            with reading(self._engine) as connection:
                jobs = [one for state in ("queued", "running") for one in queue.list_jobs(connection, state=state)]
            if not jobs:
                return
            time.sleep(0.1)
        raise SystemExit("the worker does not come to an end")
