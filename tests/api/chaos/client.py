# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One who asks, as a process of the API does: records and job in one transaction. It is killed while it does that.

    python -m tests.api.chaos.client --flavor m1.tiny --image ami-tiny --requests 200 --seed 7

Creates, deletes, reboots (when there is such a job) and cancels at random, until the ledger has that many jobs of it.
"""

from __future__ import annotations

import argparse
import os
import random
import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger import (
    actions,
    recorded,
    server_actions,
    servers,
    tables,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.engine import open_ledger, reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tables_jobs import job
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.views import instances_by
from api.jobs import queue

KINDS = ("launch", "terminate", "reboot")
MOST_INSTANCES = 6  # at a time: hosts of a lab are small


class Client:
    def __init__(self, engine: sa.Engine, options: argparse.Namespace) -> None:
        self._engine = engine
        self._options = options
        self._random = random.Random(options.seed + os.getpid())
        with reading(engine) as connection:
            self._project = connection.execute(
                sa.select(tables.project.c.id).where(tables.project.c.name == options.project)
            ).scalar_one()

    def ask_until_done(self) -> None:
        while self._made() < self._options.requests:
            choice = self._random.choices(
                [self._create, self._delete, self._reboot, self._cancel], weights=[5, 5, 3, 1]
            )[0]
            try:
                with transaction(self._engine) as connection:
                    choice(connection)
                    # here a client may be killed: nothing of it must be there then
                    time.sleep(self._random.random() * 0.05)
            except ConflictError:
                pass  # it is at work otherwise, or another one was quicker
            except NovaliteError as error:
                print(f"refused: {error}", flush=True)
            time.sleep(self._random.random() * self._options.pause)

    def _made(self) -> int:
        with reading(self._engine) as connection:
            count = sa.select(sa.func.count()).select_from(job).where(job.c.kind.in_(KINDS))
            return int(connection.execute(count).scalar_one())

    def _instances(self, connection: sa.Connection) -> list[dict[str, t.Any]]:
        return instances_by(connection, project_id=self._project)

    def _create(self, connection: sa.Connection) -> None:
        count = self._random.choice([1, 1, 2])
        if len(self._instances(connection)) + count > self._options.instances:
            return
        asked = {
            "name": f"chaos-{uuid.uuid4().hex[:8]}", "count": count, "flavor": self._options.flavor,
            "image": self._options.image,
        }  # fmt: skip
        made = servers.server(connection, {"project": self._options.project, "servers": [asked]})
        uuids = [one["uuid"] for one in made["to_build"]]
        self._enqueue(connection, "launch", uuids, made["request_id"])

    def _delete(self, connection: sa.Connection) -> None:
        found = [one for one in self._instances(connection) if one["task_state"] != "deleting"]
        if not found:
            return
        one, request_id = self._random.choice(found), actions.new_request_id()
        recorded.mark(connection, [one], request_id)
        self._enqueue(connection, "terminate", [one["uuid"]], request_id)

    def _reboot(self, connection: sa.Connection) -> None:
        found = [one for one in self._instances(connection) if one["vm_state"] == "active"]
        if not found:
            return
        one, request_id = self._random.choice(found), actions.new_request_id()
        kind = self._random.choice(["SOFT", "HARD"])
        server_actions.begin(connection, "reboot", [one["uuid"]], request_id=request_id, details={"type": kind})
        self._enqueue(connection, "reboot", [one["uuid"]], request_id)

    def _cancel(self, connection: sa.Connection) -> None:
        found = queue.list_jobs(connection, project_id=self._project, kind="launch", limit=5)
        if found:
            queue.cancel(connection, self._random.choice(found)["id"])

    def _enqueue(self, connection: sa.Connection, kind: str, uuids: list[str], request_id: str) -> None:
        queue.enqueue(connection, kind, instances=uuids, project_id=self._project, request_id=request_id)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", default="demo")
    parser.add_argument("--flavor", default="m1.tiny")
    parser.add_argument("--image", default="ami-tiny")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--instances", type=int, default=MOST_INSTANCES)
    parser.add_argument("--pause", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    engine = open_ledger(os.environ["NOVALITE_HOME"] if "NOVALITE_LEDGER_URL" not in os.environ else None)
    Client(engine, parser.parse_args()).ask_until_done()


if __name__ == "__main__":
    main()
