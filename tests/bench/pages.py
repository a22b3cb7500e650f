# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""pages.*: the status page's pages for an administrator, over 40 hosts and 2,000 guests: at most 200 ms each.

Times are of the application alone, without a server and a network: medians of several rounds. `times_login` is how many
times as long as the form to log in, which needs no ledger, in the same run.
"""

from __future__ import annotations

import pathlib
import statistics
import tempfile
import time
import typing as t

import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.dashboard import session
from tests.api import applications
from tests.api.doors import User
from tests.support.cloud import Cloud, sqlite
from tests.support.grown import grow
from tests.support.rows import DEMO

GOAL_MS = 200.0
HOSTS, CROWD = 40, 57  # guests of each host that is no quiet one: 2,021 in all
ROUNDS = 7
LOGIN = "/login"


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    if not ("pages.".startswith(prefix) or prefix.startswith("pages")):
        return
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        cloud = Cloud(sqlite(home))
        grown = grow(cloud.engine, HOSTS, CROWD)
        cloud.task("floating_pool", floating_pools=[{"name": "public", "cidr": "198.51.100.0/29", "interface": "eth0"}])
        cloud.write(sa.update(tables.floating_ip).values(project_id=DEMO, released_at=0))
        with cloud.engine.connect() as connection:
            network = connection.execute(sa.select(tables.network.c.uuid).limit(1)).scalar_one()
            floating_ip = connection.execute(sa.select(tables.floating_ip.c.id).limit(1)).scalar_one()
            action = connection.execute(sa.select(sa.func.max(tables.instance_action.c.id))).scalar_one()
        with applications.application(home) as app:
            client = app.test_client()
            admin = User(t.cast(t.Any, cloud), client, DEMO, "admin", "")
            client.set_cookie(session.COOKIE, admin.token)
            paths = {
                "overview": "/",
                "instances": "/instances",
                "instances_of_all": "/instances?all_projects=true&sort=name",
                "instances_searched": "/instances?all_projects=true&q=g17",
                "instance": f"/instances/{grown.uuids[3]}",
                "launch": "/instances/launch",
                "networks": "/networks",
                "network": f"/networks/{network}",
                "hosts": "/hosts",
                "host": "/hosts/hv11",
                "jobs": "/jobs?all_projects=true",
                "run": f"/runs/{action}",
                "new_volume": "/volumes/new",
                "associate": f"/floating-ips/{floating_ip}/associate",
                **{path: f"/{path}" for path in ("images", "volumes", "security-groups", "floating-ips", "keys")},
                **{path: f"/{path}" for path in ("users", "projects", "quotas")},
            }
            login = _milliseconds(client, LOGIN)
            for name, path in paths.items():
                bench = f"pages.{name.replace('-', '_')}_ms"
                if bench.startswith(prefix) or prefix in ("", "pages"):
                    yield _figure(bench, _milliseconds(client, path), login)
        cloud.close()


def _milliseconds(client: FlaskClient, path: str) -> float:
    """Return how long the page takes, the first time aside: that compiles its template and statements."""
    times = []
    for _round in range(1 + ROUNDS):
        began = time.perf_counter()
        answer = client.get(path)
        times.append(1000 * (time.perf_counter() - began))
        assert answer.status_code == 200, (path, answer.status)
    return statistics.median(times[1:])


def _figure(name: str, ours: float, login: float) -> dict[str, t.Any]:
    figures = {"ours": round(ours, 1), "reference": GOAL_MS, "ratio": round(ours / GOAL_MS, 3), "unit": "ms"}
    return {"bench": name, **figures, "login_ms": round(login, 2), "times_login": round(ours / login, 1)}
