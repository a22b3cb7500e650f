"""api.*: requests to the Compute API under gunicorn, one worker on one core, the ledger on the disk.

Times are a client's over a kept connection, from the last byte sent to the last byte read. Beside POST /servers stands
a bare Flask route that inserts one row (same worker, same disk, requests in turn), beside the list of 1,000 servers one
that serves the same body out of memory.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import create, new_servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import issue_token
from tests.api import seeds
from tests.support.cloud import Cloud, sqlite

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
GOAL_MS = 10.0
WARM_UP, REQUESTS = 40, 300
CLIENTS = 2  # at once, for the rates
LISTED = 1000
LISTS = 15
QUOTA = 100_000  # finite: what the project has is counted with every request
START_SECONDS = 30


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    names = ["api.post_servers_ms", "api.post_servers_vs_flask", "api.detail1000"]
    if not any(name.startswith(prefix) for name in names):
        return
    with _served() as (asker, fill):
        if names[0].startswith(prefix) or names[1].startswith(prefix):
            times, rates = _posts(asker)
            if names[0].startswith(prefix):
                yield {
                    **_figure(names[0], statistics.median(times["ours"]), GOAL_MS, "ms"),
                    "flask_ms": round(statistics.median(times["bare"]), 3),
                }
            if names[1].startswith(prefix):
                yield _figure(names[1], rates["ours"], rates["bare"], "1/s")
        if names[2].startswith(prefix):
            fill()
            yield _figure(names[2], *_lists(asker), "ms")


def _figure(name: str, ours: float, reference: float, unit: str) -> dict[str, t.Any]:
    return {
        "bench": name,
        "ours": round(ours, 3),
        "reference": round(reference, 3),
        "ratio": round(ours / reference, 3),
        "unit": unit,
    }


class Asker:
    """Makes requests to the server on `port` with a token of the project's."""

    def __init__(self, port: int, token: str, home: pathlib.Path) -> None:
        self._port, self.home = port, home
        self._headers = {
            "X-Auth-Token": token,
            "OpenStack-API-Version": "compute 2.96",
            "Content-Type": "application/json",
        }

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.connect()
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def ask(
        self, connection: http.client.HTTPConnection, verb: str, path: str, body: bytes | None = None
    ) -> tuple[bytes, float]:
        """The answer, and the milliseconds that it took."""
        started = time.perf_counter()
        connection.request(verb, path, body, self._headers)
        answer = connection.getresponse()
        data = answer.read()
        seconds = time.perf_counter() - started
        if answer.status not in (200, 202):
            raise SystemExit(f"{verb} {path}: {answer.status} {data[:500]!r}")
        return data, 1000 * seconds


PATHS = {"ours": "/compute/v2.1/servers", "bare": "/bare/insert"}


def _body(name: str) -> bytes:
    """Body that `openstack server create` sends."""
    device = {
        "uuid": seeds.IMAGE_ID,
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "local",
        "delete_on_termination": True,
    }
    server = {
        "name": name,
        "flavorRef": "2",
        "imageRef": seeds.IMAGE_ID,
        "key_name": "test",
        "min_count": 1,
        "max_count": 1,
        "networks": "auto",
        "block_device_mapping_v2": [device],
    }
    return json.dumps({"server": server}).encode()


def _posts(asker: Asker) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Milliseconds of each request, one after the other, and requests a second from several clients."""
    times: dict[str, list[float]] = {key: [] for key in PATHS}
    connection = asker.connect()
    for number in range(WARM_UP + REQUESTS):
        for key, path in PATHS.items():
            _answer, milliseconds = asker.ask(connection, "POST", path, _body(f"server-{number}"))
            if number >= WARM_UP:
                times[key].append(milliseconds)
    rates: dict[str, list[float]] = {key: [] for key in PATHS}
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        for round_ in range(3):
            for key, path in PATHS.items():
                started = time.perf_counter()
                many = [pool.submit(_many, asker, path, f"r{round_}-{number}") for number in range(CLIENTS)]
                for future in many:
                    future.result()
                rates[key].append(CLIENTS * REQUESTS / 2 / (time.perf_counter() - started))
    return times, {key: max(several) for key, several in rates.items()}


def _many(asker: Asker, path: str, name: str) -> None:
    connection = asker.connect()
    for number in range(REQUESTS // 2):
        asker.ask(connection, "POST", path, _body(f"{name}-{number}"))


def _lists(asker: Asker) -> tuple[float, float]:
    connection = asker.connect()
    path = f"/compute/v2.1/servers/detail?limit={LISTED}"
    data, _first = asker.ask(connection, "GET", path)
    if len(json.loads(data)["servers"]) != LISTED:
        raise SystemExit("the list is not whole")
    (asker.home / "list.json").write_bytes(data)
    ours, bare = [], []
    for _round in range(LISTS):
        ours.append(asker.ask(connection, "GET", path)[1])
        bare.append(asker.ask(connection, "GET", "/bare/list")[1])
    return statistics.median(ours), statistics.median(bare)


@contextlib.contextmanager
def _served() -> t.Iterator[tuple[Asker, t.Callable[[], None]]]:
    """A server over a new ledger; with it, what makes the project's servers LISTED active ones and no others."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="novalite-bench-") as directory, socket.socket() as probe:
        home = pathlib.Path(directory)
        cloud = Cloud(sqlite(home))
        token = _seed(cloud)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        command = [sys.executable, "-m", "tests.bench.api_server", str(home), str(port), str(cores[-1])]
        with subprocess.Popen(command, cwd=REPOSITORY) as server:
            try:
                asker = Asker(port, token, home)
                _wait(asker)
                if len(cores) > 1:
                    os.sched_setaffinity(0, set(cores[:-1]))
                yield asker, lambda: _fill(cloud.engine)
            finally:
                os.sched_setaffinity(0, set(cores))
                server.terminate()
                cloud.close()


def _wait(asker: Asker) -> None:
    for _look in range(START_SECONDS * 10):
        with contextlib.suppress(OSError):
            asker.ask(asker.connect(), "GET", "/compute/v2.1")
            return
        time.sleep(0.1)
    raise SystemExit("the server does not answer")


def _seed(cloud: Cloud) -> str:
    seeds.seed(cloud)
    table, user = tables.project, tables.tables_identity.user
    ((project,),) = cloud.rows(sa.select(table.c.id).where(table.c.name == "demo"))
    ((demo,),) = cloud.rows(sa.select(user.c.id).where(user.c.name == "demo"))
    for resource, limit in {"instances": QUOTA, "cores": QUOTA, "ram": QUOTA * 1024, "jobs": QUOTA}.items():
        cloud.insert(tables.quota, project_id=project, resource=resource, hard_limit=limit)
    with transaction(cloud.engine) as connection:
        return issue_token(connection, demo, project).text


def _fill(engine: sa.Engine) -> None:
    with transaction(engine) as connection:
        project = connection.execute(sa.select(tables.project.c.id).where(tables.project.c.name == "demo")).scalar_one()
        connection.execute(sa.update(tables.instance).values(deleted=tables.instance.c.id))
        create_request = new_servers.CreateRequest(
            "listed",
            "2",
            seeds.IMAGE_ID,
            min_count=LISTED,
            max_count=LISTED,
            metadata={"a": "b"},
            labels=create.Labels(tags=("x",)),
        )
        made = new_servers.create(connection, project, create_request, request_id="req-bench")
        connection.execute(
            sa.update(tables.instance)
            .where(tables.instance.c.uuid.in_(made.uuids))
            .values(vm_state="active", task_state=None, power_state=1, host="hv1", launched_at=int(time.time()))
        )
        # more addresses than the seeded network has
        vifs = connection.execute(sa.select(tables.vif).where(tables.vif.c.instance_uuid.in_(made.uuids))).all()
        connection.execute(
            sa.insert(tables.fixed_ip),
            [
                {"network_id": vif.network_id, "ip": 0x0A150000 + number, "owner": f"vif:{vif.id}"}
                for number, vif in enumerate(vifs)
            ],
        )
