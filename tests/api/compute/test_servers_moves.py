# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resizes, migrations and evacuations as clients ask for them, their records, and what servers are told to show."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_migrations import migration
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from tests.api import seeds

SERVERS = "/compute/v2.1/servers"
ClientAs = t.Callable[..., FlaskClient]
Does = t.Callable[..., tuple[int, t.Any]]


def at(version: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"compute {version}"}


def flavor_id(api: seeds.Api, name: str) -> str:
    (row,) = api.rows(sa.select(tables.flavor).where(tables.flavor.c.name == name))
    return row.flavorid or str(row.id)


@pytest.fixture
def server(api: seeds.Api) -> str:
    uuid = api.instance("demo", "web", host="hv1")
    api.write(sa.update(tables.compute_host).values(up=False))
    return uuid


@pytest.fixture
def does(server: str, client_as: ClientAs) -> Does:
    def post(body: t.Any, user: str = "demo", version: str = "2.1") -> tuple[int, t.Any]:
        answer = client_as(user).post(f"{SERVERS}/{server}/action", json=body, headers=at(version))
        if answer.status_code < 300:
            return answer.status_code, answer.get_json(silent=True)
        return answer.status_code, next(iter(answer.get_json().values()))["message"]

    return post


def change(api: seeds.Api, uuid: str, **values: t.Any) -> None:
    api.write(sa.update(tables.instance).where(tables.instance.c.uuid == uuid).values(**values))


def status(client_as: ClientAs, server: str) -> str:
    return str(client_as("demo").get(f"{SERVERS}/{server}").get_json()["server"]["status"])


def test_a_resize_waits_for_a_word(api: seeds.Api, server: str, does: Does, client_as: ClientAs) -> None:
    new_flavor_id = flavor_id(api, "m1.small")
    assert does({"resize": {"flavorRef": new_flavor_id, "OS-DCF:diskConfig": "AUTO"}}) == (202, None)
    assert status(client_as, server) == "RESIZE"
    (job,) = api.rows(sa.select(tables_jobs.job))
    assert (job.kind, job.variables) == ("resize", {})
    (move,) = api.rows(sa.select(migration))
    assert (move.type, move.status, move.new_flavor["name"]) == ("resize", "queued", "m1.small")
    code, message = does({"resize": {"flavorRef": new_flavor_id}})
    assert (code, "task_state resize_prep" in message) == (409, True)
    api.write(sa.update(migration).values(status="finished", dest_host="hv2"))
    change(api, server, vm_state="resized", task_state=None)
    assert status(client_as, server) == "VERIFY_RESIZE"
    assert does({"revertResize": None}) == (202, None)
    assert status(client_as, server) == "REVERT_RESIZE"
    change(api, server, task_state=None)
    api.write(sa.update(migration).values(status="finished"))
    assert does({"confirmResize": None})[0] == 204
    kinds = sorted(row.kind for row in api.rows(sa.select(tables_jobs.job)))
    assert kinds == ["confirmResize", "resize", "revertResize"]


@pytest.mark.parametrize(
    ("body", "version", "status_code", "message"),
    [
        ({"resize": {"flavorRef": "no-such"}}, "2.1", 400, "Flavor no-such could not be found"),
        ({"resize": {}}, "2.1", 400, "flavorRef"),
        ({"confirmResize": None}, "2.1", 409, "Cannot 'confirmResize' instance"),
        ({"migrate": None}, "2.1", 403, ""),
        ({"os-migrateLive": {"host": None, "block_migration": "auto"}}, "2.25", 403, ""),
        ({"evacuate": {}}, "2.14", 403, ""),
    ],
)
def test_what_members_cannot_have(does: Does, body: t.Any, version: str, status_code: int, message: str) -> None:
    code, said = does(body, version=version)
    assert (code, message in said) == (status_code, True)


def test_the_same_flavor_is_no_resize(api: seeds.Api, server: str, does: Does) -> None:
    (row,) = api.rows(sa.select(tables.instance).where(tables.instance.c.uuid == server))
    name = row.flavor["name"]
    (flavor,) = api.rows(sa.select(tables.flavor).where(tables.flavor.c.name == name))
    same = {key: getattr(flavor, key) for key in ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap_mb")}
    change(api, server, flavor={**row.flavor, **same})
    answer = does({"resize": {"flavorRef": flavor_id(api, name)}})
    assert answer == (400, "When resizing, instances must change flavor!")


def test_a_manager_migrates_to_where_there_is_room(api: seeds.Api, server: str, does: Does) -> None:
    with transaction(api.engine) as connection:
        users.grant_role(connection, api.users["demo"], api.projects["demo"], "manager")
    for body in ({"migrate": {"host": "hv2"}}, {"os-migrateLive": {"host": "hv2", "block_migration": "auto"}}):
        assert does(body, "demo", "2.60")[0] == 403
    assert does({"evacuate": {}}, "demo", "2.14")[0] == 403
    assert does({"migrate": None}, "demo", "2.60")[0] == 202
    assert [row.kind for row in api.rows(sa.select(tables_jobs.job))] == ["migrate"]


@pytest.mark.parametrize(
    ("body", "version", "answer", "kind", "shown"),
    [
        ({"migrate": None}, "2.1", 202, "migrate", "RESIZE"),
        ({"migrate": {"host": None}}, "2.56", 202, "migrate", "RESIZE"),
        (
            {"os-migrateLive": {"host": None, "block_migration": False, "disk_over_commit": False}},
            "2.1",
            202,
            "live-migration",
            "MIGRATING",
        ),
        ({"os-migrateLive": {"host": None, "block_migration": "auto"}}, "2.30", 202, "live-migration", "MIGRATING"),
        ({"evacuate": {}}, "2.14", 200, "evacuate", "REBUILD"),
        ({"evacuate": {"onSharedStorage": False, "adminPass": "x"}}, "2.1", 200, "evacuate", "REBUILD"),
    ],
)
def test_what_administrators_may(
    api: seeds.Api,
    server: str,
    does: Does,
    client_as: ClientAs,
    body: t.Any,
    version: str,
    answer: int,
    kind: str,
    shown: str,
) -> None:
    assert does(body, "admin", version)[0] == answer
    (job,) = api.rows(sa.select(tables_jobs.job))
    assert (job.kind, status(client_as, server)) == (kind, shown)


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ({"migrate": {"host": "hv1"}}, "2.56"),  # where it is
        ({"migrate": {"host": "hv9"}}, "2.56"),
        ({"migrate": {"host": "hv2"}}, "2.1"),
        ({"os-migrateLive": {"host": None, "block_migration": "auto"}}, "2.1"),
        ({"os-migrateLive": {"host": None, "block_migration": False}}, "2.1"),
        ({"os-migrateLive": {"host": None, "block_migration": False, "force": True}}, "2.68"),
        ({"evacuate": {"onSharedStorage": True}}, "2.14"),
        ({"evacuate": {"host": 1}}, "2.14"),
    ],
)
def test_what_is_no_request(does: Does, body: t.Any, version: str) -> None:
    assert does(body, "admin", version)[0] == 400


def test_a_host_that_answers_is_not_evacuated(api: seeds.Api, does: Does) -> None:
    api.write(sa.update(tables.compute_host).values(up=True, last_seen_at=2**40))
    assert does({"evacuate": {}}, "admin", "2.14") == (400, "Compute service of hv1 is still in use.")


def test_records_of_moves(api: seeds.Api, server: str, does: Does, client_as: ClientAs) -> None:
    does({"os-migrateLive": {"host": None, "block_migration": "auto"}}, "admin", "2.30")
    client = client_as("admin")
    assert client_as("demo").get("/compute/v2.1/os-migrations").status_code == 403
    (old,) = client.get("/compute/v2.1/os-migrations").get_json()["migrations"]
    assert (old["instance_uuid"], old["source_compute"], "migration_type" in old) == (server, "hv1", False)
    path = "/compute/v2.1/os-migrations?limit=1&migration_type=live-migration&changes-since=2020-01-01T00:00:00Z"
    (new,) = client.get(path, headers=at("2.80")).get_json()["migrations"]
    assert (new["migration_type"], new["project_id"]) == ("live-migration", api.projects["demo"])
    assert new["links"][0]["href"].endswith(f"/servers/{server}/migrations/{new['id']}")
    assert client.get("/compute/v2.1/os-migrations?host=hv2").get_json() == {"migrations": []}
    assert client.get("/compute/v2.1/os-migrations?marker=no", headers=at("2.59")).status_code == 400
    own = f"{SERVERS}/{server}/migrations"
    assert client.get(own).status_code == 404  # before 2.23
    (live,) = client.get(own, headers=at("2.23")).get_json()["migrations"]
    assert client.get(f"{own}/{live['id']}", headers=at("2.23")).get_json() == {"migration": live}
    assert client.get(f"{own}/99", headers=at("2.23")).status_code == 404
    assert client.delete(f"{own}/{live['id']}", headers=at("2.24")).status_code == 400


def test_what_is_only_shown(api: seeds.Api, server: str, client_as: ClientAs) -> None:
    client = client_as("demo")
    body = {"accessIPv4": "192.0.2.7", "accessIPv6": "2001:DB8::1", "OS-DCF:diskConfig": "AUTO"}
    shown = client.put(f"{SERVERS}/{server}", json={"server": body}).get_json()["server"]
    assert [shown[key] for key in body] == ["192.0.2.7", "2001:db8::1", "AUTO"]
    assert client.put(f"{SERVERS}/{server}", json={"server": {"accessIPv4": "2001:db8::1"}}).status_code == 400
    again = client.put(f"{SERVERS}/{server}", json={"server": {"accessIPv4": ""}}).get_json()["server"]
    assert (again["accessIPv4"], again["accessIPv6"]) == ("", "2001:db8::1")
