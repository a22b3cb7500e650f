# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two requests at once over PostgreSQL, which lets both read before one of them has written: the answers, and what
there is afterwards, are those of one after the other."""

from __future__ import annotations

import functools
import threading
import time
import typing as t
import uuid

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient
from sqlalchemy import event
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_volumes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import open_ledger
from api.ec2 import ids as ec2_ids
from tests.api import applications, ec2_door, seeds
from tests.api.conftest import cheap
from tests.support import postgresql
from tests.support.cloud import Cloud

COMPUTE, NETWORK, VOLUME = "/compute/v2.1", "/network/v2.0", "/volume/v3"
PAUSE = 0.1  # seconds before each commit, in which the other request reads
ITEMS = ("server", "port", "volume", "group", "aggregate", "flavor", "project")


class Request(t.NamedTuple):
    """A request; `{server}` and so on stand for ids of things that are made for it and another one."""

    user: str
    method: str
    path: str
    body: t.Any = None
    headers: t.Mapping[str, str] = {}


class Pair(t.NamedTuple):
    """Two requests, the codes of their answers in any order, and what a list says afterwards."""

    first: Request
    second: Request
    codes: t.Collection[tuple[int, int]]
    shown: tuple[str, str] = ("", "")  # path and part of the answer, with dots
    after: t.Any = None


def _aggregate(**action: t.Any) -> Request:
    return Request("admin", "POST", f"{COMPUTE}/os-aggregates/{{aggregate}}/action", action)


def _specs(**specs: str) -> Request:
    return Request("admin", "POST", f"{COMPUTE}/flavors/{{flavor}}/os-extra_specs", {"extra_specs": specs})


def _metadata(**items: str) -> Request:
    return Request("demo", "POST", METADATA, {"metadata": items})


METADATA = f"{VOLUME}/volumes/{{volume}}/metadata"
AGGREGATE, SPECS = f"{COMPUTE}/os-aggregates/{{aggregate}}", f"{COMPUTE}/flavors/{{flavor}}/os-extra_specs"
JOINS = Request("demo", "POST", f"{COMPUTE}/servers/{{server}}/action", {"addSecurityGroup": {"name": "{group}"}})
OF_PORT = Request("demo", "PUT", f"{NETWORK}/ports/{{port}}", {"port": {"security_groups": ["{group}"]}})
KEY = Request("demo", "POST", f"{COMPUTE}/os-keypairs", {"keypair": {"name": "{new}"}})
STOP = Request("demo", "POST", "/v1/jobs", {"kind": "stop", "instances": ["{server}"]}, {"Idempotency-Key": "{new}"})
QUOTA = Request("admin", "PUT", f"{COMPUTE}/os-quota-sets/{{project}}", {"quota_set": {"instances": 77}})
DELETES = Request("demo", "DELETE", f"{VOLUME}/volumes/{{volume}}")
TAKES = Request("demo", "POST", f"{VOLUME}/snapshots", {"snapshot": {"volume_id": "{volume}", "force": True}})
SERVER = {"name": "{new}", "imageRef": seeds.IMAGE_ID, "flavorRef": "{flavor}"}
EXTENDS = Request("demo", "POST", f"{VOLUME}/volumes/{{volume}}/action", {"os-extend": {"new_size": 5}})
LESS = Request("demo", "POST", f"{VOLUME}/volumes/{{volume}}/action", {"os-extend": {"new_size": 3}})
NO_HOST_YET = [(202, 202), (202, 400), (400, 202)]

PAIRS: dict[str, Pair] = {
    "hosts into an aggregate": Pair(
        _aggregate(add_host={"host": "hv1"}),
        _aggregate(add_host={"host": "hv2"}),
        [(200, 200)],
        (AGGREGATE, "aggregate.hosts"),
        ["hv1", "hv2"],
    ),
    "the same host into an aggregate": Pair(
        _aggregate(add_host={"host": "hv1"}), _aggregate(add_host={"host": "hv1"}), [(200, 409)]
    ),
    "a host into an aggregate, and its metadata": Pair(
        _aggregate(add_host={"host": "hv1"}),
        _aggregate(set_metadata={"metadata": {"a": "1"}}),
        [(200, 200)],
        (AGGREGATE, "aggregate.metadata"),
        {"a": "1"},
    ),
    "metadata of an aggregate": Pair(
        _aggregate(set_metadata={"metadata": {"a": "1"}}),
        _aggregate(set_metadata={"metadata": {"b": "2"}}),
        [(200, 200)],
        (AGGREGATE, "aggregate.metadata"),
        {"a": "1", "b": "2"},
    ),
    "a host into an aggregate that goes": Pair(
        _aggregate(add_host={"host": "hv1"}), Request("admin", "DELETE", AGGREGATE), [(200, 400), (200, 404)]
    ),
    "extra specs": Pair(_specs(a="1"), _specs(b="2"), [(200, 200)], (SPECS, "extra_specs"), {"a": "1", "b": "2"}),
    "metadata of a volume": Pair(
        _metadata(a="1"), _metadata(b="2"), [(200, 200)], (METADATA, "metadata"), {"a": "1", "b": "2"}
    ),
    "extra specs of a flavor that goes": Pair(
        _specs(a="1"), Request("admin", "DELETE", f"{COMPUTE}/flavors/{{flavor}}"), [(200, 202), (202, 404)]
    ),
    "key pairs of one name": Pair(KEY, KEY, [(201, 409)]),
    "a quota": Pair(QUOTA, QUOTA, [(200, 200)]),
    "an idempotency key": Pair(STOP, STOP, [(202, 202)]),
    "a server into a group": Pair(JOINS, JOINS, [(202, 202)]),
    "a server into a group, and its port": Pair(JOINS, OF_PORT, [(200, 202)]),
    "a port into a group": Pair(OF_PORT, OF_PORT, [(200, 200)]),
    "a server with a port that goes": Pair(
        Request("demo", "POST", f"{COMPUTE}/servers", {"server": {**SERVER, "networks": [{"port": "{free_port}"}]}}),
        Request("demo", "DELETE", f"{NETWORK}/ports/{{free_port}}"),
        [(202, 409), (204, 400), (204, 409)],
    ),
    "a snapshot of a volume that goes": Pair(DELETES, TAKES, [(202, 400), (202, 404)]),
    "a volume becomes larger": Pair(EXTENDS, LESS, NO_HOST_YET, (f"{VOLUME}/volumes/{{volume}}", "volume.size"), 5),
}


@pytest.fixture(scope="module")
def api(postgresql_server: postgresql.Server, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[seeds.Api]:
    home = tmp_path_factory.mktemp("two") / "home"
    home.mkdir()
    url = postgresql_server.create(f"two_{uuid.uuid4().hex}")
    cloud = Cloud(url, open_ledger(str(home), url))
    with cheap():
        seeds.seed(cloud)
    cloud.task("project", projects=[{"name": "demo", "quotas": "unlimited"}])
    cloud.close()
    with applications.application(home, ledger_url=url) as app:
        yield seeds.Api(app)


@pytest.fixture(scope="module")
def clients(api: seeds.Api) -> dict[str, FlaskClient]:
    return {name: api.client_as(name) for name in ("demo", "admin")}


@pytest.fixture
def ids(api: seeds.Api, clients: dict[str, FlaskClient]) -> dict[str, str]:
    """Things for one pair of requests."""
    new = f"n{uuid.uuid4().hex[:12]}"
    demo, admin = clients["demo"], clients["admin"]
    (network,) = api.rows(
        sa.select(tables.network.c.id, tables.network.c.uuid).where(tables.network.c.name == "private")
    )
    server = api.instance("demo", new, host="hv1")
    volume = demo.post(f"{VOLUME}/volumes", json={"volume": {"size": 1}}).get_json()["volume"]["id"]
    api.write(sa.update(tables_volumes.volume).where(tables_volumes.volume.c.id == volume).values(status="available"))
    group = demo.post(f"{NETWORK}/security-groups", json={"security_group": {"name": new}}).get_json()
    aggregate = admin.post(f"{COMPUTE}/os-aggregates", json={"aggregate": {"name": new}}).get_json()
    flavor = admin.post(f"{COMPUTE}/flavors", json={"flavor": {"name": new, "ram": 64, "vcpus": 1, "disk": 1}})
    made = (group["security_group"], aggregate["aggregate"], flavor.get_json()["flavor"])
    numbers = (server, api.vif(server, network.id), volume, *(str(item["id"]) for item in made), api.projects["demo"])
    free = demo.post(f"{NETWORK}/ports", json={"port": {"network_id": network.uuid}}).get_json()["port"]
    return {"new": new, "free_port": free["id"], **dict(zip(ITEMS, numbers))}


def filled(value: t.Any, ids: t.Mapping[str, str]) -> t.Any:
    if isinstance(value, str):
        for name, number in ids.items():
            value = value.replace(f"{{{name}}}", number)
        return value
    if isinstance(value, dict):
        return {key: filled(item, ids) for key, item in value.items()}
    return [filled(item, ids) for item in value] if isinstance(value, list) else value


def at_once(api: seeds.Api, functions: t.Sequence[t.Callable[[], None]]) -> None:
    """Call these functions at once, each of which reads before another one has committed."""

    def wait(_connection: sa.Connection) -> None:
        time.sleep(PAUSE)

    event.listen(api.engine, "commit", wait)
    try:
        threads = [threading.Thread(target=function) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        event.remove(api.engine, "commit", wait)


@pytest.mark.parametrize("what", PAIRS)
def test_two_at_once_are_one_after_the_other(
    api: seeds.Api, clients: dict[str, FlaskClient], ids: dict[str, str], what: str
) -> None:
    pair, answers = PAIRS[what], list[TestResponse]()

    def ask(request: Request) -> None:
        client = api.app.test_client()
        client.environ_base.update(clients[request.user].environ_base)
        version = {"OpenStack-API-Version": "compute 2.60"}
        path, body, headers = (filled(part, ids) for part in (request.path, request.body, dict(request.headers)))
        answers.append(client.open(path, method=request.method, json=body, headers={**version, **headers}))

    at_once(api, [functools.partial(ask, request) for request in (pair.first, pair.second)])
    codes = tuple(sorted(answer.status_code for answer in answers))
    assert codes in {tuple(sorted(allowed)) for allowed in pair.codes}, [answer.get_data() for answer in answers]
    path, part = pair.shown
    if path:
        shown = clients["admin" if path.startswith(COMPUTE) else "demo"].get(filled(path, ids)).get_json()
        for name in part.split("."):
            shown = shown[name]
        assert shown == pair.after


@pytest.mark.parametrize("kind", ["i", "vol", "sg"])
def test_tags_of_two_calls_at_once_are_there_both(api: seeds.Api, ids: dict[str, str], kind: str) -> None:
    resource = ec2_ids.of(kind, ids[{"i": "server", "vol": "volume", "sg": "group"}[kind]])
    with ec2_door.open_door(api) as door:

        def tag(key: str) -> None:
            door.client().create_tags(Resources=[resource], Tags=[{"Key": key, "Value": "x"}])

        at_once(api, [functools.partial(tag, key) for key in ("a", "b")])
        listed = door.client().describe_tags(Filters=[{"Name": "resource-id", "Values": [resource]}])["Tags"]
    assert {entry["Key"] for entry in listed} == {"a", "b"}


def test_tags_of_a_network_are_there_both(api: seeds.Api, clients: dict[str, FlaskClient], ids: dict[str, str]) -> None:
    path = f"{NETWORK}/security-groups/{ids['group']}/tags"
    assert clients["demo"].put(f"{path}/before").status_code == 201

    def tag(name: str) -> None:
        client = api.app.test_client()
        client.environ_base.update(clients["demo"].environ_base)
        assert client.put(f"{path}/{name}").status_code == 201

    at_once(api, [functools.partial(tag, name) for name in ("a", "b")])
    assert sorted(clients["demo"].get(path).get_json()["tags"]) == ["a", "b", "before"]
