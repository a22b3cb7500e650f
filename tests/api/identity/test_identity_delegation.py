# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trusts, access rules of application credentials, and credentials that are kept: never more than their users have."""

from __future__ import annotations

import hashlib
import json
import time
import typing as t

import pytest
import sqlalchemy as sa
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.sealing import Seal
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from api.openstack.identity import views
from api.web.access_rules import is_within
from tests.api.identity.test_identity_records import by_credential, credential
from tests.api.identity.test_identity_tokens import ask, by_password, in_project
from tests.api.seeds import Api

V3 = "/identity/v3"
TRUSTS = f"{V3}/OS-TRUST/trusts"
SERVERS = "/compute/v2.1/servers"
Json = dict[str, t.Any]


def give(api: Api, status: int = 201, **fields: t.Any) -> Json:
    """A trust of demo's for alt."""
    trust = {
        "trustor_user_id": api.users["demo"],
        "trustee_user_id": api.users["alt"],
        "project_id": api.projects["demo"],
        "impersonation": True,
        "roles": [{"name": "member"}],
        **fields,
    }
    answer = api.client_as("demo").post(TRUSTS, json={"trust": trust})
    assert answer.status_code == status, answer.get_json()
    return dict(answer.get_json()).get("trust", {})


def by_trust(trust: Json, name: str = "alt") -> Json:
    scope: Json = {"OS-TRUST:trust": {"id": trust["id"]}}
    return by_password(name, **scope)


def held(answer: TestResponse) -> dict[str, str]:
    assert answer.status_code == 201, answer.get_json()
    return {"X-Auth-Token": answer.headers["X-Subject-Token"]}


def get(api: Api, headers: dict[str, str], path: str = SERVERS) -> int:
    return api.app.test_client().get(path, headers=headers).status_code


def test_a_trust(api: Api) -> None:
    ends = "2099-01-01T00:00:00.123456Z"
    trust = give(api, expires_at=ends, remaining_uses=2)
    assert trust["expires_at"] == ends and [role["name"] for role in trust["roles"]] == ["member"]
    answer = ask(api, by_trust(trust))
    token = answer.get_json()["token"]
    assert (token["user"]["name"], token["project"]["name"]) == ("demo", "demo")
    assert token["OS-TRUST:trust"]["trustee_user"] == {"id": api.users["alt"]}
    assert [role["name"] for role in token["roles"]] == ["member", "reader"]
    assert get(api, held(answer)) == 200
    assert ask(api, by_trust(trust, "reader")).status_code == 401  # it is alt's
    assert ask(api, by_trust(trust, "demo")).status_code == 401
    alone = ask(api, by_trust(trust))
    assert ask(api, by_trust(trust)).status_code == 401  # both uses were had
    demo, alt, admin = (api.client_as(name) for name in ("demo", "alt", "admin"))
    path = f"{TRUSTS}/{trust['id']}"
    assert [client.get(path).status_code for client in (demo, alt, admin, api.client_as("reader"))] == [
        200,
        200,
        200,
        404,
    ]
    assert alt.get(path).get_json()["trust"]["remaining_uses"] == 0
    role_id = views.role_id("member")
    assert [role["id"] for role in alt.get(f"{path}/roles").get_json()["roles"]] == [role_id]
    assert alt.get(f"{path}/roles/{role_id}").status_code == alt.head(f"{path}/roles/{role_id}").status_code == 200
    assert alt.head(f"{path}/roles/{views.role_id('admin')}").status_code == 404
    assert len(demo.get(f"{TRUSTS}?trustor_user_id={api.users['demo']}").get_json()["trusts"]) == 1
    assert len(alt.get(f"{TRUSTS}?trustee_user_id={api.users['alt']}").get_json()["trusts"]) == 1
    assert len(admin.get(TRUSTS).get_json()["trusts"]) == 1
    assert alt.get(f"{TRUSTS}?trustor_user_id={api.users['demo']}").status_code == alt.get(TRUSTS).status_code == 403
    assert alt.delete(path).status_code == 403
    assert get(api, held(alone)) == 200
    assert demo.delete(path).status_code == 204
    assert get(api, held(alone)) == 401
    assert demo.get(path).status_code == 404


def test_a_trust_without_impersonation(api: Api) -> None:
    answer = ask(api, by_trust(give(api, impersonation=False, roles=[{"id": views.role_id("reader")}])))
    token = answer.get_json()["token"]
    assert (token["user"]["name"], token["project"]["name"]) == ("alt", "demo")
    assert [role["name"] for role in token["roles"]] == ["reader"]


def test_what_is_no_trust(api: Api) -> None:
    give(api, 404, roles=[{"name": "admin"}])
    give(api, 404, roles=[{"id": views.role_id("manager")}])
    give(api, 404, project_id=api.projects["alt"])  # demo has no role there
    give(api, 404, trustee_user_id="0" * 32)
    give(api, 403, trustor_user_id=api.users["alt"])
    give(api, 403, roles=[])
    for wrong in (
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"remaining_uses": 0},
        {"allow_redelegation": True},
        {"project_id": None},
    ):
        give(api, 400, **wrong)


@pytest.mark.parametrize("loss", ["role", "trustor", "trustee", "project", "password", "expiry"])
def test_a_trust_gives_what_its_trustor_has_now(api: Api, loss: str) -> None:
    trust = give(api)
    headers = held(ask(api, by_trust(trust)))
    assert get(api, headers) == 200
    with transaction(api.engine) as connection:
        if loss == "role":
            users.revoke_role(connection, api.users["demo"], api.projects["demo"], "member")
            users.grant_role(connection, api.users["demo"], api.projects["demo"], "reader")
        elif loss in ("trustor", "trustee"):
            name = {"trustor": "demo", "trustee": "alt"}[loss]
            users.update_user(connection, api.users[name], {"enabled": False})
        elif loss == "password":
            users.update_user(connection, api.users["alt"], {"password_hash": "x"})
        elif loss == "expiry":
            ended = sa.update(tables.tables_identity.trust).values(expires_at=time.time())
            connection.execute(ended)
        else:
            connection.execute(sa.update(tables.project).values(enabled=False))
    assert get(api, headers) == 401
    assert ask(api, by_trust(trust)).status_code == 401


def test_a_token_of_a_trust_makes_nothing_that_lasts(api: Api) -> None:
    trust = give(api, roles=[{"name": "reader"}])
    answer = ask(api, by_trust(trust))
    headers = held(answer)
    client = api.app.test_client()
    own = f"{V3}/users/{api.users['demo']}"
    assert client.post(SERVERS, json={"server": {}}, headers=headers).status_code == 403  # it is a reader's
    for path, body in (
        (f"{own}/application_credentials", {"application_credential": {"name": "x"}}),
        (f"{own}/credentials/OS-EC2", {"tenant_id": api.projects["demo"]}),
        (f"{V3}/credentials", {"credential": {"type": "cert", "blob": "x"}}),
        (TRUSTS, {"trust": {"trustor_user_id": api.users["demo"], "trustee_user_id": "x", "impersonation": True}}),
    ):
        assert client.post(path, json=body, headers=headers).status_code == 403, path
    assert get(api, headers, f"{V3}/credentials") == get(api, headers, f"{own}/credentials/OS-EC2") == 403
    again = {"methods": ["token"], "token": {"id": answer.headers["X-Subject-Token"]}}
    for scope in ({}, {"scope": in_project("demo")}, {"scope": "unscoped"}):
        assert ask(api, {"auth": {"identity": again, **scope}}).status_code == 403


def test_a_credential_of_an_application_is_no_way_to_trusts(api: Api) -> None:
    record = credential(api, unrestricted=True)
    headers = held(ask(api, by_credential(record)))
    trust = {"trustor_user_id": api.users["demo"], "trustee_user_id": api.users["alt"], "impersonation": True}
    client = api.app.test_client()
    assert client.post(TRUSTS, json={"trust": trust}, headers=headers).status_code == 403
    own_trust = give(api, trustee_user_id=api.users["demo"], trustor_user_id=api.users["demo"])
    scope = {"OS-TRUST:trust": {"id": own_trust["id"]}}
    assert ask(api, {"auth": {**by_credential(record)["auth"], "scope": scope}}).status_code == 401
    assert get(api, headers, f"{V3}/credentials") == 403


def rule(path: str, method: str = "GET", service: str = "compute") -> Json:
    return {"path": path, "method": method, "service": service}


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/v2.1/servers", "/compute/v2.1/servers", True),
        ("/compute/v2.1/servers", "/compute/v2.1/servers", True),
        ("/v2.1/servers", "/compute/v2.1/servers/detail", False),
        ("/v2.1/servers", "/network/v2.1/servers", False),
        ("/v2.1/servers/*", "/compute/v2.1/servers/x", True),
        ("/v2.1/servers/{server_id}", "/compute/v2.1/servers/x", True),
        ("/v2.1/servers/{server_id}", "/compute/v2.1/servers/x/ips", False),
        ("/v2.1/*/x/ips", "/compute/v2.1/servers/x/ips", True),
        ("/v2.1/**", "/compute/v2.1/servers/x/ips", True),
        ("/**", "/compute/v2.1/servers", True),
        ("/**", "/v1/jobs", False),
        ("/v2.1/server.", "/compute/v2.1/servers", False),
        ("/v2.1/(servers|flavors)", "/compute/v2.1/servers", False),
        ("/v2.1/{", "/compute/v2.1/{", True),
    ],
)
def test_patterns_of_access_rules(pattern: str, path: str, expected: bool) -> None:
    assert is_within([rule(pattern)], "GET", path) is expected
    assert not is_within([rule(pattern)], "POST", path)
    assert not is_within([], "GET", path)


def test_a_pattern_that_is_made_to_take_long_does_not() -> None:
    began = time.monotonic()
    assert not is_within([rule("/" + "**a" * 70)], "GET", "/compute/" + "a" * 20000 + "b")
    assert time.monotonic() - began < 5


def test_access_rules(api: Api) -> None:
    record = credential(api, access_rules=[rule("/v2.1/servers"), rule("/v2.1/flavors/*")], unrestricted=True)
    assert [entry["path"] for entry in record["access_rules"]] == ["/v2.1/servers", "/v2.1/flavors/*"]
    answer = ask(api, by_credential(record))
    assert answer.get_json()["token"]["application_credential"]["access_rules"] == record["access_rules"]
    headers = held(answer)
    assert get(api, headers) == get(api, headers, "/compute/v2.1/flavors/1") == 200
    for path in (
        "/compute/v2.1/flavors",
        f"{SERVERS}/detail",
        "/network/v2.0/networks",
        f"{V3}/auth/projects",
        "/v1/jobs",
    ):
        assert get(api, headers, path) == 401, path
    client = api.app.test_client()
    client.set_cookie("novalite_session", headers["X-Auth-Token"])
    assert client.get("/instances").status_code == 303  # to the login
    again = ask(api, {"auth": {"identity": {"methods": ["token"], "token": {"id": headers["X-Auth-Token"]}}}})
    assert get(api, held(again)) == 200 and get(api, held(again), "/compute/v2.1/flavors") == 401
    demo = api.client_as("demo")
    own = f"{V3}/users/{api.users['demo']}"
    listed = demo.get(f"{own}/access_rules").get_json()["access_rules"]
    assert {entry["id"] for entry in listed} == {entry["id"] for entry in record["access_rules"]}
    first = f"{own}/access_rules/{listed[0]['id']}"
    assert demo.get(first).get_json()["access_rule"] == listed[0]
    assert api.client_as("alt").get(first).status_code == api.client_as("admin").get(first).status_code == 404
    assert demo.delete(first).status_code == 403  # it is in use
    shared = credential(api, name="demo", access_rules=[{"id": listed[0]["id"]}], **{"description": "x"}, status=409)
    assert shared == {}  # the name is taken
    assert demo.delete(f"{own}/application_credentials/{record['id']}").status_code == 204
    assert get(api, headers) == 401
    for entry in listed:
        assert demo.delete(f"{own}/access_rules/{entry['id']}").status_code == 204
    assert demo.get(f"{own}/access_rules").get_json()["access_rules"] == []
    assert demo.delete(first).status_code == 404


def test_a_bounded_credential_makes_no_other_one(api: Api) -> None:
    rules = [rule("/v3/users/**", "POST", "identity"), rule("/v3/users/**", "GET", "identity")]
    headers = held(ask(api, by_credential(credential(api, access_rules=rules, unrestricted=True))))
    path = f"{V3}/users/{api.users['demo']}/application_credentials"
    assert get(api, headers, path) == 200
    more = {"application_credential": {"name": "free", "unrestricted": True}}
    assert api.app.test_client().post(path, json=more, headers=headers).status_code == 403


def test_the_end_of_a_credential_keeps_its_microseconds(api: Api) -> None:
    record = credential(api, expires_at="2030-06-01T10:20:30.654321Z")
    assert record["expires_at"] == "2030-06-01T10:20:30.654321"
    path = f"{V3}/users/{api.users['demo']}/application_credentials/{record['id']}"
    shown = api.client_as("demo").get(path).get_json()["application_credential"]
    assert shown["expires_at"] == "2030-06-01T10:20:30.654321"
    soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + 60)) + ".250001"
    short = credential(api, name="demo", expires_at=soon, status=409)
    assert short == {}
    answer = api.client_as("demo").post(
        path.rpartition("/")[0], json={"application_credential": {"name": "b", "expires_at": soon}}
    )
    token = ask(api, by_credential(answer.get_json()["application_credential"])).get_json()["token"]
    assert token["expires_at"] == f"{soon}Z"


def test_kept_credentials(api: Api) -> None:
    demo, alt, admin = (api.client_as(name) for name in ("demo", "alt", "admin"))
    path = f"{V3}/credentials"
    made = demo.post(path, json={"credential": {"type": "cert", "blob": "the secret text"}})
    assert made.status_code == 201
    record = made.get_json()["credential"]
    assert (record["type"], record["blob"], record["user_id"]) == ("cert", "the secret text", api.users["demo"])
    (row,) = api.rows(sa.select(tables.tables_identity.credential))
    assert "secret" not in row.blob
    assert demo.get(f"{path}/{record['id']}").get_json()["credential"] == record
    assert [entry["id"] for entry in demo.get(path).get_json()["credentials"]] == [record["id"]]
    assert alt.get(path).get_json()["credentials"] == []
    assert alt.get(f"{path}?user_id={api.users['demo']}").get_json()["credentials"] == []
    for method in (alt.get, alt.delete):
        assert method(f"{path}/{record['id']}").status_code == 404
    assert len(admin.get(f"{path}?user_id={api.users['demo']}&type=cert").get_json()["credentials"]) == 1
    changed = demo.patch(f"{path}/{record['id']}", json={"credential": {"blob": "new", "type": "totp"}})
    assert changed.get_json()["credential"] == {**record, "blob": "new", "type": "totp"}
    for wrong in ({"user_id": api.users["alt"]}, {"type": "ec2"}):
        assert demo.patch(f"{path}/{record['id']}", json={"credential": wrong}).status_code == 400
    other = {"type": "cert", "blob": "x", "user_id": api.users["alt"]}
    assert demo.post(path, json={"credential": other}).status_code == 404
    assert admin.post(path, json={"credential": other}).status_code == 201
    assert demo.delete(f"{path}/{record['id']}").status_code == 204
    assert demo.get(f"{path}/{record['id']}").status_code == 404


def test_kept_credentials_are_ec2s_pairs(api: Api) -> None:
    demo = api.client_as("demo")
    path, project = f"{V3}/credentials", api.projects["demo"]
    own = f"{V3}/users/{api.users['demo']}/credentials/OS-EC2"
    pair = demo.post(own, json={"tenant_id": project}).get_json()["credential"]
    (listed,) = demo.get(path).get_json()["credentials"]
    assert (
        json.loads(listed["blob"]) == {"access": pair["access"], "secret": pair["secret"]} and len(listed["id"]) == 64
    )
    blob = '{"access":"181920","secret":"secretKey"}'
    fields = {"type": "ec2", "project_id": project, "blob": blob}
    made = demo.post(path, json={"credential": fields})
    assert made.status_code == 201, made.get_json()
    record = made.get_json()["credential"]
    assert record["blob"] == blob
    assert demo.post(path, json={"credential": fields}).status_code == 409
    assert demo.get(f"{own}/181920").get_json()["credential"]["secret"] == "secretKey"
    again = {"credential": {**fields, "blob": '{"access":"x y","secret":"mySecret"}'}}
    changed = demo.patch(f"{path}/{record['id']}", json=again).get_json()["credential"]
    assert (changed["id"], changed["blob"]) == (record["id"], again["credential"]["blob"])
    assert demo.get(f"{own}/181920").status_code == 404 and demo.get(f"{own}/x y").status_code == 200
    for wrong in (
        {**fields, "project_id": None},
        {**fields, "blob": "x"},
        {**fields, "blob": '{"access":"a","secret":"short"}'},
        {**fields, "blob": json.dumps({"access": "a" * 33, "secret": "secretKey"})},
    ):
        assert demo.post(path, json={"credential": wrong}).status_code == 400, wrong
    foreign = {
        "credential": {**fields, "project_id": api.projects["alt"], "blob": '{"access":"b","secret":"secretKey"}'}
    }
    assert demo.post(path, json=foreign).status_code == 404
    assert demo.delete(f"{path}/{record['id']}").status_code == 204
    assert demo.delete(f"{path}/{listed['id']}").status_code == 204
    assert demo.get(own).get_json()["credentials"] == []


@pytest.mark.parametrize("kind", ["cert", "ec2", "pair"])
def test_a_credential_that_cannot_be_read_hides_no_other(api: Api, kind: str) -> None:
    demo, admin = api.client_as("demo"), api.client_as("admin")
    path, pairs, project = (
        f"{V3}/credentials",
        f"{V3}/users/{api.users['demo']}/credentials/OS-EC2",
        api.projects["demo"],
    )

    def blob(access: str) -> str:
        return json.dumps({"access": access, "secret": "secretKey"})

    def make(access: str) -> str:
        if kind == "pair":
            made = demo.post(pairs, json={"tenant_id": project}).get_json()["credential"]
            return hashlib.sha256(made["access"].encode()).hexdigest()
        made = demo.post(path, json={"credential": {"type": kind, "project_id": project, "blob": blob(access)}})
        return str(made.get_json()["credential"]["id"])

    lost, mended, other = make("lost"), make("mended"), make("other")
    sealed = Seal(b"another key's".ljust(32)).encrypt("x")
    kept, pair = tables.tables_identity.credential, tables.tables_identity.ec2_credential
    api.write(sa.update(kept).where(kept.c.id.in_([lost, mended])).values(blob=sealed))
    mine = pair.c.credential_id.in_([lost, mended])
    api.write(sa.update(pair).where(mine).values(secret=sealed, blob=None if kind == "pair" else sealed))
    for client in (demo, admin):
        listed = {entry["id"]: entry["blob"] for entry in client.get(path).get_json()["credentials"]}
        assert listed.keys() == {lost, mended, other} and listed[lost] is None is listed[mended] and listed[other]
        assert client.get(f"{path}/{other}").get_json()["credential"]["blob"] == listed[other]
        assert client.get(f"{path}/{lost}").status_code == 503
        assert client.patch(f"{path}/{lost}", json={"credential": {"project_id": project}}).status_code == 503
    assert len(demo.get(pairs).get_json()["credentials"]) == (0 if kind == "cert" else 3)
    again = demo.patch(f"{path}/{mended}", json={"credential": {"blob": blob("again")}}).get_json()["credential"]
    assert demo.get(f"{path}/{mended}").get_json()["credential"] == again and again["blob"] == blob("again")
    assert demo.delete(f"{path}/{lost}").status_code == 204 == admin.delete(f"{path}/{other}").status_code
    assert [entry["id"] for entry in demo.get(path).get_json()["credentials"]] == [mended]
