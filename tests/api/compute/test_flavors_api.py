# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flavors and key pairs of the Compute API, asked as clients ask it."""

from __future__ import annotations

import typing as t

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.support.examples import part_of

PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPcCEGnhBBf9ysTNhO3L4ajAqB7KVm0yONdzSpeo+wr5 test"


def make(cloud: Cloud, name: str, **values: t.Any) -> int:
    row = {"vcpus": 1, "memory_mb": 512, "root_gb": 1, "extra_specs": {}, **values}
    return int(cloud.insert(tables.flavor, name=name, **row))


def names(body: t.Any) -> list[str]:
    return [flavor["name"] for flavor in body["flavors"]]


# --- Flavors --------------------------------------------------------------------------------------------------------


def test_a_flavor_in_the_first_and_in_the_last_version(cloud: Cloud, doors: Doors) -> None:
    number = make(cloud, "m1.tiny", extra_specs={"hw:cpu_policy": "shared"})
    url = f"http://localhost/compute/v2.1/flavors/{number}"
    links = [{"rel": "self", "href": url}, {"rel": "bookmark", "href": url.replace("/v2.1", "")}]
    old = {
        "id": str(number),
        "name": "m1.tiny",
        "vcpus": 1,
        "ram": 512,
        "disk": 1,
        "swap": "",
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": True,
        "rxtx_factor": 1.0,
        "links": links,
    }
    new = {**old, "swap": 0, "description": None, "extra_specs": {"hw:cpu_policy": "shared"}}
    assert doors.reader.get(f"/flavors/{number}") == {"flavor": old}
    assert doors.reader.get(f"/flavors/{number}", version="2.96") == {"flavor": new}
    assert doors.reader.get("/flavors/detail", version="2.96") == {"flavors": [new]}
    assert doors.reader.get("/flavors") == {"flavors": [{"id": str(number), "name": "m1.tiny", "links": links}]}
    assert doors.reader.get("/flavors/m1.tiny", 404)["itemNotFound"]["code"] == 404


def test_flavors_are_filtered_sorted_and_paged(cloud: Cloud, doors: Doors) -> None:
    make(cloud, "a", flavorid="3", memory_mb=100)
    make(cloud, "b", flavorid="1", memory_mb=300, root_gb=5)
    make(cloud, "c", flavorid="2", memory_mb=200)
    make(cloud, "hidden", flavorid="9", is_public=False)
    assert names(doors.member.get("/flavors")) == ["b", "c", "a"]
    assert names(doors.member.get("/flavors?sort_key=memory_mb&sort_dir=desc")) == ["b", "c", "a"]
    assert names(doors.member.get("/flavors?minRam=200")) == ["b", "c"]
    assert names(doors.member.get("/flavors/detail?minDisk=2")) == ["b"]
    assert names(doors.member.get("/flavors?is_public=None")) == ["b", "c", "a"]
    assert names(doors.admin.get("/flavors")) == ["b", "c", "a"]
    assert names(doors.admin.get("/flavors?is_public=None")) == ["b", "c", "a", "hidden"]
    assert names(doors.admin.get("/flavors?is_public=False")) == ["hidden"]
    doors.member.get("/flavors/9", 404)
    doors.admin.get("/flavors/9")
    body = doors.member.get("/flavors?limit=2")
    assert names(body) == ["b", "c"] and body["flavors_links"][0]["rel"] == "next"
    path = body["flavors_links"][0]["href"].partition("/compute/v2.1")[2]
    assert doors.member.get(path).keys() == {"flavors"} and names(doors.member.get(path)) == ["a"]
    for query in ("limit=x", "limit=-1", "marker=77", "sort_key=colour", "sort_dir=up", "minRam=x", "minDisk=-1"):
        doors.member.get(f"/flavors?{query}", 400)
    doors.admin.get("/flavors?is_public=maybe", 400)


def test_an_administrator_makes_and_removes_flavors(doors: Doors) -> None:
    flavor_body = {
        "name": "m1.nano",
        "ram": 512,
        "vcpus": "1",
        "disk": 1,
        "id": "77",
        "swap": 0,
        "OS-FLV-EXT-DATA:ephemeral": 0,
        "os-flavor-access:is_public": True,
        "rxtx_factor": 1.0,
    }
    doors.member.post("/flavors", {"flavor": flavor_body}, 403)
    made = doors.admin.post("/flavors", {"flavor": flavor_body}, 200, version="2.61")["flavor"]
    assert (made["id"], made["ram"], made["description"], made["extra_specs"]) == ("77", 512, None, {})
    doors.admin.post("/flavors", {"flavor": {**flavor_body, "name": "other"}}, 409)
    doors.admin.post("/flavors", {"flavor": {**flavor_body, "id": "78"}}, 409)
    auto = doors.admin.post("/flavors", {"flavor": {"name": "auto", "ram": 1, "vcpus": 1, "disk": 0}}, 200)["flavor"]
    assert len(auto["id"]) == 36
    put = {"flavor": {"description": "small"}}
    doors.admin.put("/flavors/77", put, 404)
    assert doors.admin.put("/flavors/77", put, version="2.55")["flavor"]["description"] == "small"
    doors.member.delete("/flavors/77", 403)
    doors.admin.delete("/flavors/77", 202)
    doors.admin.delete("/flavors/77", 404)


@pytest.mark.parametrize(
    "more",
    [
        {"ram": 0},
        {"ram": "x"},
        {"vcpus": -1},
        {"disk": 2**31},
        {"id": " 7"},
        {"id": "a/b"},
        {"name": ""},
        {"name": " "},
        {"colour": "red"},
        {"description": "only since 2.55"},
        {"os-flavor-access:is_public": "maybe"},
        {"swap": None},
    ],
)
def test_a_flavor_that_cannot_be(doors: Doors, more: dict[str, t.Any]) -> None:
    doors.admin.post("/flavors", {"flavor": {"name": "x", "ram": 1, "vcpus": 1, "disk": 1, **more}}, 400)
    assert doors.rows(tables.flavor) == []


def test_extra_specs(cloud: Cloud, doors: Doors) -> None:
    path = f"/flavors/{make(cloud, 'm1.tiny')}/os-extra_specs"
    body = {"extra_specs": {"hw:cpu_policy": "shared", "n": 2}}
    doors.member.post(path, body, 403)
    assert doors.admin.post(path, body, 200) == {"extra_specs": {"hw:cpu_policy": "shared", "n": "2"}}
    assert doors.member.get(path) == {"extra_specs": {"hw:cpu_policy": "shared", "n": "2"}}
    assert doors.admin.put(f"{path}/n", {"n": "3"}) == {"n": "3"}
    assert doors.member.get(f"{path}/n") == {"n": "3"}
    doors.admin.put(f"{path}/n", {"m": "3"}, 400)
    doors.admin.put(f"{path}/novalite:disk_backend", {"novalite:disk_backend": "tape"}, 400)
    doors.admin.delete(f"{path}/n", 200)
    doors.admin.delete(f"{path}/n", 404)
    doors.member.get(f"{path}/n", 404)
    doors.admin.post(path, {"extra_specs": {"a/b": "c"}}, 400)


def test_a_private_flavor_is_given_to_projects(cloud: Cloud, doors: Doors) -> None:
    public, private = make(cloud, "a"), make(cloud, "b", is_public=False)
    assert doors.admin.get(f"/flavors/{private}/os-flavor-access") == {"flavor_access": []}
    doors.admin.get(f"/flavors/{public}/os-flavor-access", 404)
    doors.member.get(f"/flavors/{private}/os-flavor-access", 403)
    access = doors.admin.post(f"/flavors/{private}/action", {"addTenantAccess": {"tenant": doors.other}}, 200)
    assert access == {"flavor_access": [{"flavor_id": str(private), "tenant_id": doors.other}]}
    doors.admin.post(f"/flavors/{private}/action", {"addTenantAccess": {"tenant": doors.other}}, 409)
    assert doors.admin.get(f"/flavors/{private}/os-flavor-access") == access
    doors.stranger.get(f"/flavors/{private}")
    doors.member.get(f"/flavors/{private}", 404)
    taken = doors.admin.post(f"/flavors/{private}/action", {"removeTenantAccess": {"tenant": doors.other}}, 200)
    assert taken == {"flavor_access": []}
    doors.stranger.get(f"/flavors/{private}", 404)
    doors.admin.post(f"/flavors/{private}/action", {"removeTenantAccess": {"tenant": doors.other}}, 404)
    doors.admin.post(f"/flavors/{private}/action", {"giveAway": {"tenant": doors.other}}, 400)


# --- Key pairs ------------------------------------------------------------------------------------------------------


def test_a_key_is_imported(doors: Doors) -> None:
    body = {"keypair": {"name": "test", "public_key": PUBLIC_KEY, "type": "ssh"}}
    made = doors.member.post("/os-keypairs", body, 201, version="2.10")["keypair"]
    assert made.keys() == {"name", "public_key", "fingerprint", "type", "user_id"}
    assert (made["public_key"], made["user_id"]) == (PUBLIC_KEY, doors.member.id)
    taken = doors.member.post("/os-keypairs", body, 409, version="2.10")["conflictingRequest"]
    assert taken["message"] == "Key pair 'test' already exists."
    (listed,) = doors.member.get("/os-keypairs", version="2.10")["keypairs"]
    assert listed == {"keypair": {key: made[key] for key in ("name", "public_key", "fingerprint", "type")}}
    assert "type" not in doors.member.get("/os-keypairs")["keypairs"][0]["keypair"]
    shown = doors.member.get("/os-keypairs/test")["keypair"]
    assert (shown["deleted"], shown["deleted_at"], shown["name"]) == (False, None, "test")
    assert shown["user_id"] == doors.member.id
    doors.reader.get("/os-keypairs/test", 404)
    doors.stranger.get("/os-keypairs/test", 404)
    doors.stranger.delete("/os-keypairs/test", 404)
    doors.reader.delete("/os-keypairs/test", 403)
    doors.member.delete("/os-keypairs/test", 204, version="2.10")
    doors.member.delete("/os-keypairs/test", 404)


def test_a_shared_key_is_a_managers_to_remove(cloud: Cloud, doors: Doors) -> None:
    values = {"name": "test", "type": "ssh", "public_key": PUBLIC_KEY, "fingerprint": "", "created_at": 0}
    cloud.insert(tables.keypair, project_id=doors.project, user_id="", **values)  # a playbook's
    refused = doors.member.delete("/os-keypairs/test", 403)["forbidden"]
    assert "ask them, or a manager" in refused["message"]
    doors.member.post("/os-keypairs", {"keypair": {"name": "test"}}, 200)
    doors.member.delete("/os-keypairs/test", 202)  # its own
    doors.member.delete("/os-keypairs/test", 403)
    doors.admin.delete("/os-keypairs/test", 202)
    doors.member.get("/os-keypairs/test", 404)


def test_a_key_is_made_and_told_once(doors: Doors) -> None:
    made = doors.member.post("/os-keypairs", {"keypair": {"name": "new"}}, 200)["keypair"]
    key = serialization.load_pem_private_key(made["private_key"].encode(), None)
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    assert made["public_key"].startswith(public.decode())
    assert "private_key" not in doors.member.get("/os-keypairs/new")["keypair"]
    assert all(made["private_key"] not in str(value) for row in doors.rows(tables.keypair) for value in row.values())
    doors.member.delete("/os-keypairs/new", 202)
    doors.member.post("/os-keypairs", {"keypair": {"name": "new", "type": "ssh"}}, 400, version="2.92")


@pytest.mark.parametrize(
    "more",
    [
        {"public_key": "ssh-rsa AAAA"},
        {"public_key": f"{PUBLIC_KEY}\n{PUBLIC_KEY}"},
        {"public_key": ""},
        {"name": ""},
        {"name": "a/b"},
        {"name": " a"},
        {"name": "x" * 256},
        {"type": "x509"},
        {"type": "dsa"},
        {"colour": "red"},
    ],
)
def test_a_key_that_cannot_be(doors: Doors, more: dict[str, t.Any]) -> None:
    doors.member.post("/os-keypairs", {"keypair": {"name": "a", "public_key": PUBLIC_KEY, **more}}, 400, version="2.10")
    assert doors.rows(tables.keypair) == []


def test_keys_are_paged_and_counted(cloud: Cloud, doors: Doors) -> None:
    cloud.insert(tables.quota, project_id=doors.project, resource="key_pairs", hard_limit=3)
    for name in "abc":
        doors.member.post("/os-keypairs", {"keypair": {"name": name, "public_key": PUBLIC_KEY}}, 200)
    over = doors.member.post("/os-keypairs", {"keypair": {"name": "d", "public_key": PUBLIC_KEY}}, 403)
    assert "key_pairs" in over["forbidden"]["message"]
    body = doors.member.get("/os-keypairs?limit=2", version="2.35")
    assert [key_pair["keypair"]["name"] for key_pair in body["keypairs"]] == ["a", "b"]
    assert body["keypairs_links"][0]["href"].endswith("limit=2&marker=b")
    assert len(doors.member.get("/os-keypairs?limit=2&marker=b", version="2.35")["keypairs"]) == 1
    doors.member.get("/os-keypairs?marker=zz", 400, version="2.35")


def test_another_users_keys_are_for_administrators(doors: Doors) -> None:
    doors.member.get(f"/os-keypairs?user_id={doors.admin.id}", 403, version="2.10")
    doors.admin.get(f"/os-keypairs?user_id={doors.member.id}", version="2.10")
    body = {"keypair": {"name": "a", "public_key": PUBLIC_KEY, "user_id": doors.admin.id}}
    doors.member.post("/os-keypairs", body, 403, version="2.10")
    doors.admin.get("/os-keypairs?user_id=nobody", 404, version="2.10")
    with transaction(doors.cloud.engine) as connection:
        users.update_user(connection, doors.stranger.id, {"default_project_id": doors.other})
    body["keypair"]["user_id"] = doors.stranger.id
    made = doors.admin.post("/os-keypairs", body, 201, version="2.10")["keypair"]
    assert made["user_id"] == doors.stranger.id
    assert doors.stranger.get("/os-keypairs/a")["keypair"]["public_key"] == PUBLIC_KEY
    doors.admin.get("/os-keypairs/a", 404, version="2.10")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=6,
)
FIELDS = st.dictionaries(
    st.sampled_from(["name", "id", "ram", "vcpus", "disk", "swap", "public_key", "type", "user_id", "description"]),
    JSON | st.sampled_from(["1", 1, "a", PUBLIC_KEY, "ssh"]),
)


@settings(max_examples=part_of(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["flavor", "keypair", "extra_specs", "addTenantAccess"]),
    FIELDS | JSON,
    st.sampled_from(["2.1", "2.55", "2.96"]),
    st.text(max_size=9),
)
def test_nothing_is_answered_with_5xx(doors: Doors, key: str, inner: t.Any, version: str, number: str) -> None:
    for method, path in (
        ("POST", "/flavors"),
        ("POST", "/os-keypairs"),
        ("PUT", "/flavors/x"),
        ("POST", "/flavors/x/os-extra_specs"),
        ("PUT", "/flavors/x/os-extra_specs/name"),
        ("POST", "/flavors/x/action"),
    ):
        for body in ({key: inner}, inner):
            answer = doors.admin.ask(method, path, body, version)
            assert answer.status_code < 500, (path, body, answer.get_data(as_text=True))
    for path in ("/flavors/", "/os-keypairs/", "/flavors?marker=", "/flavors?sort_key=", "/os-keypairs?marker="):
        answer = doors.client.get(doors.base + path + number, headers=doors.admin.headers)
        assert answer.status_code < 500, path
