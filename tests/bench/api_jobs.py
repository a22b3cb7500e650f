# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""api.one_added_s, api.to_active, api.burst20: over HTTP, from POST /servers until GET /servers/{id} says ACTIVE.

The API runs as `make api` has it, with its worker. The reference is launch.yml by hand, with as many servers of the
same flavor and image, until the playbook ends; neither waits for guests to boot. `ours` of api.one_added_s is the
difference of the two, its reference the goal.
"""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import time
import typing as t

import requests

from tests.bench.cloud import IMAGES, REPOSITORY, Cloud

GOAL_ADDED_S = 1.0
SIZES = {"api.one_added_s": (1, 5), "api.to_active": (1, 5), "api.burst20": (20, 3)}  # requests, rounds
PATIENCE = 600  # seconds
LOOK = 0.05  # seconds between two looks at one server
COMPUTE = "/compute/v2.1"


def run(prefix: str) -> t.Iterator[dict[str, t.Any]]:
    sizes = {name: size for name, size in SIZES.items() if name.startswith(prefix)}
    if not sizes:
        return
    with Cloud(instances=20) as cloud, Api(cloud) as api:
        _playbook(cloud, 1)  # the image is on the host from here on
        for name, (count, rounds) in sizes.items():
            times, references = [], []
            for _round in range(rounds):
                times.append(api.launch(count))
                api.delete()
                references.append(_playbook(cloud, count))
            through, alone = statistics.median(times), statistics.median(references)
            if name == "api.one_added_s":
                figure = {**_figure(name, through - alone, GOAL_ADDED_S), "api_s": round(through, 3)}
                yield {**figure, "launch_yml_s": round(alone, 3)}
            else:
                yield _figure(name, through, alone)


def _figure(name: str, ours: float, reference: float) -> dict[str, t.Any]:
    figures = {"ours": round(ours, 3), "reference": round(reference, 3), "ratio": round(ours / reference, 3)}
    return {"bench": name, **figures, "unit": "s"}


def _playbook(cloud: Cloud, count: int) -> float:
    variables = {"name": "bench", "count": count}
    seconds = cloud.playbook(
        "playbooks/launch.yml", **variables, flavor="m1.nano", image="ami-tiny", key="test", wait_for="running"
    )
    cloud.playbook("playbooks/terminate.yml", **variables)
    return seconds


class Api:
    """The API server over a cloud, and one user of it."""

    def __init__(self, cloud: Cloud) -> None:
        cloud.playbook("playbooks/users.yml")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            bind = f"127.0.0.1:{probe.getsockname()[1]}"
        self._url = f"http://{bind}"
        self._password = (cloud.home / "lab/passwords/demo").read_text().split()[0]
        environment = {
            **os.environ,
            "NOVALITE_HOME": str(cloud.home),
            "NOVALITE_INVENTORY": str(cloud.inventory),
            "NOVALITE_IMAGES": str(IMAGES),
            "PYTHONPATH": f"{REPOSITORY / 'collections'}:{REPOSITORY}",
        }
        environment.pop("NOVALITE_LEDGER_URL", None)
        self._log = (pathlib.Path(cloud.home) / "api.log").open("wb")
        self._server = subprocess.Popen(
            [sys.executable, "-m", "api", "serve", "--bind", bind],
            env=environment,
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
        )
        self._session = requests.Session()
        self._session.trust_env = False
        self._ids: list[str] = []

    def __enter__(self) -> Api:
        try:
            self._wait_for("/readyz")
            self._log_in()
            flavors, images = self._get(f"{COMPUTE}/flavors")["flavors"], self._get("/image/v2/images")["images"]
            self._wanted = {
                "flavorRef": next(flavor["id"] for flavor in flavors if flavor["name"] == "m1.nano"),
                "imageRef": next(image["id"] for image in images if image["name"] == "ami-tiny"),
                "key_name": "test",
            }
        except BaseException:
            self.__exit__()
            raise
        time.sleep(5)  # a worker that has just begun is no measure of one that waits
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.send_signal(signal.SIGTERM)
        self._server.wait()
        self._session.close()
        self._log.close()

    def launch(self, count: int) -> float:
        """Ask `count` times for one server; the seconds until the last one is ACTIVE."""
        began = time.perf_counter()
        self._ids = [self._create(f"burst-{number}") for number in range(count)]
        for server_id in self._ids:
            while (status := self._get(f"{COMPUTE}/servers/{server_id}")["server"]["status"]) != "ACTIVE":
                if status != "BUILD" or time.perf_counter() - began > PATIENCE:
                    raise SystemExit(f"server {server_id} came to {status}")
                time.sleep(LOOK)
        seconds = time.perf_counter() - began
        self._wait_for_worker()
        return seconds

    def delete(self) -> None:
        for server_id in self._ids:
            self._ask("DELETE", f"{COMPUTE}/servers/{server_id}", 204)
        self._wait_for_worker()

    def _create(self, name: str) -> str:
        answer = self._ask("POST", f"{COMPUTE}/servers", 202, {"server": {"name": name, **self._wanted}})
        return str(answer.json()["server"]["id"])

    def _log_in(self) -> None:
        user = {"name": "demo", "password": self._password, "domain": {"id": "default"}}
        scope = {"project": {"name": "demo", "domain": {"id": "default"}}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": scope}}
        answer = self._ask("POST", "/identity/v3/auth/tokens", 201, body)
        self._session.headers["X-Auth-Token"] = answer.headers["X-Subject-Token"]

    def _get(self, path: str) -> t.Any:
        return self._ask("GET", path, 200).json()

    def _ask(self, verb: str, path: str, good: int, body: t.Any = None) -> requests.Response:
        answer = self._session.request(verb, self._url + path, json=body, timeout=60)
        if answer.status_code != good:
            raise SystemExit(f"{verb} {path}: {answer.status_code} {answer.text[:500]}")
        return answer

    def _wait_for(self, path: str) -> None:
        deadline = time.perf_counter() + PATIENCE
        while time.perf_counter() < deadline:
            try:
                if self._session.get(self._url + path, timeout=5).status_code == 200:
                    return
            except requests.RequestException:
                pass
            time.sleep(0.2)
        raise SystemExit(f"the API does not answer at {path}")

    def _wait_for_worker(self) -> None:
        """Until the worker has nothing to do."""
        deadline = time.perf_counter() + PATIENCE
        while time.perf_counter() < deadline:
            if not any(self._get(f"/v1/jobs?state={state}")["jobs"] for state in ("queued", "running")):
                return
            time.sleep(0.1)
        raise SystemExit("the worker does not come to an end")
