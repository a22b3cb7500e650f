# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects, users, roles, application credentials and EC2 credentials."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import credential_records
from api.openstack.identity import views
from tests.api.identity.test_identity_tokens import ask, by_password, in_project
from tests.api.seeds import Api, password

V3 = "/identity/v3"
Json = dict[str, t.Any]


def test_projects_by_an_admin(api: Api) -> None:
    admin = api.client_as("admin")
    made = admin.post(f"{V3}/projects", json={"project": {"name": "new", "domain_id": "default", "enabled": True}})
    assert made.status_code == 201
    project = made.get_json()["project"]
    assert len(project["id"]) == 32 and project["description"] == ""
    path = f"{V3}/projects/{project['id']}"
    assert admin.post(f"{V3}/projects", json={"project": {"name": "new"}}).status_code == 409
    assert admin.patch(path, json={"project": {"name": "demo"}}).status_code == 409
    changed = admin.patch(path, json={"project": {"name": "newer", "description": "x", "enabled": False}})
    assert changed.get_json()["project"] == {**project, "name": "newer", "description": "x", "enabled": False}
    assert [record["name"] for record in admin.get(f"{V3}/projects").get_json()["projects"]] == ["alt", "demo", "newer"]
    assert admin.get(f"{V3}/projects/newer").status_code == 404  # by name: clients expect it, and list then
    assert len(admin.get(f"{V3}/projects?name=newer").get_json()["projects"]) == 1
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == admin.delete(path).status_code == 404
    for wrong in ({"name": ""}, {"name": "x" * 65}, {"name": " x"}, {"name": "x", "more": 1}, {"name": "\n"}):
        assert admin.post(f"{V3}/projects", json={"project": wrong}).status_code == 400, wrong
    assert admin.post(f"{V3}/projects", json={"project": {"name": "x", "domain_id": "y"}}).status_code == 404
    assert admin.post(f"{V3}/projects", json={"project": {"name": "x", "parent_id": "y"}}).status_code == 404


def test_a_project_in_use_stays(api: Api) -> None:
    api.instance("alt", "web")
    assert api.client_as("admin").delete(f"{V3}/projects/{api.projects['alt']}").status_code == 409


def test_others_see_their_own_projects(api: Api) -> None:
    demo = api.client_as("demo")
    assert demo.get(f"{V3}/projects").status_code == 403  # clients ask for one's own then
    assert [project["name"] for project in demo.get(f"{V3}/auth/projects").get_json()["projects"]] == ["demo"]
    mine = f"{V3}/users/{api.users['demo']}/projects"
    assert [project["name"] for project in demo.get(mine).get_json()["projects"]] == ["demo"]
    assert demo.get(f"{V3}/projects/{api.projects['demo']}").status_code == 200
    assert demo.get(f"{V3}/projects/{api.projects['alt']}").status_code == 404
    assert demo.get(f"{V3}/users/{api.users['alt']}/projects").status_code == 404
    unscoped = api.client_as("demo", None)
    assert [project["name"] for project in unscoped.get(f"{V3}/auth/projects").get_json()["projects"]] == ["demo"]


def test_users_by_an_admin(api: Api) -> None:
    admin = api.client_as("admin")
    made = admin.post(
        f"{V3}/users",
        json={
            "user": {
                "name": "ann",
                "password": "secret",
                "email": "a@example.org",
                "enabled": True,
                "default_project_id": api.projects["alt"],
            }
        },
    )
    assert made.status_code == 201 and "secret" not in made.get_data(as_text=True)
    user = made.get_json()["user"]
    path = f"{V3}/users/{user['id']}"
    assert admin.post(f"{V3}/users", json={"user": {"name": "ann"}}).status_code == 409
    assert ask(api, by_password("ann", "secret", **in_project("alt"))).status_code == 401  # no role yet
    role = f"{V3}/projects/{api.projects['alt']}/users/{user['id']}/roles"
    assert admin.get(role).get_json()["roles"] == []
    member = f"{role}/{views.role_id('member')}"
    assert admin.head(member).status_code == 404
    assert admin.put(member).status_code == admin.put(member).status_code == admin.head(member).status_code == 204
    assert [granted["name"] for granted in admin.get(role).get_json()["roles"]] == ["member"]
    token = ask(api, by_password("ann", "secret", **in_project("alt")))
    assert token.status_code == 201
    assignments = admin.get(f"{V3}/role_assignments?user.id={user['id']}&include_names=True").get_json()[
        "role_assignments"
    ]
    assert [(assignment["role"]["name"], assignment["scope"]["project"]["name"]) for assignment in assignments] == [
        ("member", "alt")
    ]
    # a new password
    assert admin.patch(path, json={"user": {"password": "other", "name": "anna"}}).status_code == 200
    assert admin.patch(path, json={"user": {"id": user["id"], "enabled": True}}).status_code == 200
    assert admin.patch(path, json={"user": {"id": api.users["demo"]}}).status_code == 400
    mine = {"X-Auth-Token": token.headers["X-Subject-Token"]}
    assert api.app.test_client().get(f"{V3}/auth/catalog", headers=mine).status_code == 401
    assert ask(api, by_password("anna", "other")).status_code == 201
    assert admin.delete(member).status_code == 204
    assert admin.delete(member).status_code == 404
    assert ask(api, by_password("anna", "other", **in_project("alt"))).status_code == 401
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == 404
    bad = ({"name": ""}, {"name": "b", "password": ""}, {"name": "b", "default_project_id": "x"}, {"name": " b"})
    for wrong in bad:
        assert admin.post(f"{V3}/users", json={"user": wrong}).status_code == 400, wrong


def test_others_see_themselves(api: Api) -> None:
    demo = api.client_as("demo")
    assert demo.get(f"{V3}/users/{api.users['demo']}").get_json()["user"]["name"] == "demo"
    assert demo.get(f"{V3}/users/{api.users['alt']}").status_code == 404
    assert demo.get(f"{V3}/users").status_code == 403


def test_ones_own_password(api: Api) -> None:
    demo = api.client_as("demo")
    path = f"{V3}/users/{api.users['demo']}/password"

    def change(old: str, new: str) -> int:
        return demo.post(path, json={"user": {"original_password": old, "password": new}}).status_code

    assert change("wrong", "x") == 401
    unknown = {"user": {"original_password": "x", "password": "y"}}
    assert demo.post(f"{V3}/users/{'0' * 32}/password", json=unknown).status_code == 401
    assert change(password("demo"), "") == 400
    assert change(password("demo"), "new one") == 204
    assert demo.get(f"{V3}/auth/projects").status_code == 401  # the token is void
    assert change("new one", "newer") == 204
    assert ask(api, by_password("demo")).status_code == 401
    assert ask(api, by_password("demo", "newer")).status_code == 201


def test_ones_own_password_is_changed_without_a_token(api: Api) -> None:
    """As in Keystone: the one that there is, is in the body."""
    nobody, path = api.client_as(None), f"{V3}/users/{api.users['demo']}/password"
    for old, status in (("wrong", 401), (password("demo"), 204)):
        body = {"user": {"original_password": old, "password": "new one"}}
        assert nobody.post(path, json=body).status_code == status
    assert ask(api, by_password("demo", "new one")).status_code == 201


def credential(api: Api, name: str = "demo", status: int = 201, **fields: t.Any) -> Json:
    client = api.client_as(name)
    path = f"{V3}/users/{api.users[name]}/application_credentials"
    answer = client.post(path, json={"application_credential": {"name": "ac1", **fields}})
    assert answer.status_code == status, answer.get_json()
    return dict(answer.get_json()).get("application_credential", {})


def by_credential(record: Json, secret: str | None = None, **more: t.Any) -> Json:
    fields = {"id": record["id"], "secret": secret or record["secret"], **more}
    return {"auth": {"identity": {"methods": ["application_credential"], "application_credential": fields}}}


def test_application_credentials(api: Api) -> None:
    record = credential(
        api, secret=None, expires_at=None, access_rules=[], roles=[], unrestricted=False, description=None
    )
    assert len(record["secret"]) > 40 and record["project_id"] == api.projects["demo"]
    assert [role["name"] for role in record["roles"]] == ["member", "reader"]
    answer = ask(api, by_credential(record))
    token = answer.get_json()["token"]
    assert answer.status_code == 201 and token["project"]["name"] == "demo"
    assert token["application_credential"] == {"id": record["id"], "name": "ac1", "restricted": True}
    by_name: Json = {"name": "ac1", "secret": record["secret"], "user": {"name": "demo", "domain": {"id": "default"}}}
    identity: Json = {"methods": ["application_credential"], "application_credential": by_name}
    assert ask(api, {"auth": {"identity": identity}}).status_code == 201
    identity["application_credential"]["user"] = {"name": "alt", "domain": {"id": "default"}}
    assert ask(api, {"auth": {"identity": identity}}).status_code == 401
    assert ask(api, by_credential(record, "x" * 40)).status_code == 401
    assert ask(api, by_credential({"id": "nosuch"}, "x" * 40)).status_code == 401
    assert ask(api, {"auth": {**by_credential(record)["auth"], "scope": in_project("alt")}}).status_code == 401
    assert ask(api, {"auth": {**by_credential(record)["auth"], "scope": "unscoped"}}).status_code == 401

    mine = f"{V3}/users/{api.users['demo']}/application_credentials"
    demo = api.client_as("demo")
    assert demo.post(mine, json={"application_credential": {"name": "ac1"}}).status_code == 409
    (listed,) = demo.get(mine).get_json()["application_credentials"]
    assert listed["id"] == record["id"] and "secret" not in listed
    assert demo.get(f"{mine}/{record['id']}").get_json()["application_credential"] == listed
    for other in ("alt", "admin"):
        assert api.client_as(other).get(mine).status_code == 404
        assert api.client_as(other).delete(f"{mine}/{record['id']}").status_code == 404
    held = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
    plain = api.app.test_client()
    assert plain.post(mine, json={"application_credential": {"name": "ac2"}}, headers=held).status_code == 403
    ec2 = f"{V3}/users/{api.users['demo']}/credentials/OS-EC2"
    assert plain.post(ec2, json={"tenant_id": api.projects["demo"]}, headers=held).status_code == 403
    assert plain.get(ec2, headers=held).status_code == 403
    assert demo.delete(f"{mine}/{record['id']}").status_code == 204
    assert plain.get(mine, headers=held).status_code == 401  # its tokens went with it


def test_an_application_credential_has_no_more_than_its_user(api: Api) -> None:
    credential(api, status=400, roles=[{"name": "admin"}])
    credential(api, status=400, expires_at="2001-01-01T00:00:00")
    credential(api, status=400, expires_at="soon")
    credential(api, status=400, secret="short")
    credential(api, status=400, access_rules=[{"path": "/"}])
    record = credential(api, roles=[{"name": "reader"}], expires_at="2099-01-01T00:00:00Z")
    answer = ask(api, by_credential(record))
    assert [role["name"] for role in answer.get_json()["token"]["roles"]] == ["reader"]
    held = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
    rescoped = {"methods": ["token"], "token": {"id": answer.headers["X-Subject-Token"]}}
    again = ask(api, {"auth": {"identity": rescoped}}).get_json()["token"]
    assert [role["name"] for role in again["roles"]] == ["reader"]
    with transaction(api.engine) as connection:
        users.grant_role(connection, api.users["demo"], api.projects["alt"], "member")
    assert ask(api, {"auth": {"identity": rescoped, "scope": in_project("alt")}}).status_code == 401
    with transaction(api.engine) as connection:
        users.revoke_role(connection, api.users["demo"], api.projects["demo"], "member")
    assert api.app.test_client().get(f"{V3}/auth/projects", headers=held).status_code == 401
    assert ask(api, by_credential(record)).status_code == 401


def test_ec2_credentials(api: Api) -> None:
    demo = api.client_as("demo")
    path = f"{V3}/users/{api.users['demo']}/credentials/OS-EC2"
    made = demo.post(path, json={"tenant_id": api.projects["demo"]})
    assert made.status_code == 201
    record = made.get_json()["credential"]
    assert len(record["access"]) == len(record["secret"]) == 32
    assert demo.post(path, json={"tenant_id": api.projects["alt"]}).status_code == 404
    assert demo.get(path).get_json()["credentials"] == [record]
    assert demo.get(f"{path}/{record['access']}").get_json()["credential"] == record
    for other in ("alt", "admin"):
        assert api.client_as(other).get(f"{path}/{record['access']}").status_code == 404
    seal = api.seal
    with transaction(api.engine) as connection:
        stored = connection.execute(sa.select(tables.tables_identity.ec2_credential.c.secret)).scalar_one()
        assert record["secret"] not in stored
        ec2_credential = credential_records.ec2_credential(connection, seal, record["access"])
        assert ec2_credential is not None
        assert (ec2_credential["secret"], ec2_credential["user_name"], ec2_credential["project_name"]) == (
            record["secret"],
            "demo",
            "demo",
        )
        assert ec2_credential["roles"] == ["member"]
        users.update_user(connection, api.users["demo"], {"enabled": False})
        assert credential_records.ec2_credential(connection, seal, record["access"]) is None
        users.update_user(connection, api.users["demo"], {"enabled": True})
    demo = api.client_as("demo")
    assert demo.delete(f"{path}/{record['access']}").status_code == 204
    assert demo.delete(f"{path}/{record['access']}").status_code == 404


def test_what_is_the_same_for_everybody(api: Api) -> None:
    reader = api.client_as("reader")
    roles = {role["name"]: role["id"] for role in reader.get(f"{V3}/roles").get_json()["roles"]}
    assert set(roles) == {"reader", "member", "manager", "admin"}
    assert reader.get(f"{V3}/roles/{roles['member']}").get_json()["role"]["name"] == "member"
    assert reader.get(f"{V3}/roles/member").status_code == 404
    assert len(reader.get(f"{V3}/roles?name=member").get_json()["roles"]) == 1
    assert reader.get(f"{V3}/domains/default").get_json()["domain"]["name"] == "Default"
    assert reader.get(f"{V3}/domains/Default").status_code == 404
    assert reader.get(f"{V3}/regions/RegionOne").get_json()["region"]["id"] == "RegionOne"
    assert len(reader.get(f"{V3}/regions").get_json()["regions"]) == 1
    assert reader.get(f"{V3}/regions?parent_region_id=RegionOne").get_json()["regions"] == []
    (compute,) = reader.get(f"{V3}/services?type=compute").get_json()["services"]
    assert reader.get(f"{V3}/services/{compute['id']}").get_json()["service"]["name"] == "nova"
    public = reader.get(f"{V3}/endpoints?service_id={compute['id']}&interface=public").get_json()["endpoints"]
    assert [endpoint["url"] for endpoint in public] == ["http://localhost/compute/v2.1"]
    for path in ("roles", "domains", "regions", "services", "endpoints"):
        assert api.client_as(None).get(f"{V3}/{path}").status_code == 401


def test_lists_are_filtered_by_parts_of_names(api: Api) -> None:
    admin = api.client_as("admin")

    def names(kind: str, query: str) -> list[str]:
        return [record["name"] for record in admin.get(f"{V3}/{kind}?{query}").get_json()[kind]]

    assert names("projects", "name__contains=em") == ["demo"]
    assert names("projects", "name__contains=EM") == []
    assert names("projects", "name__icontains=EM&name__startswith=d") == ["demo"]
    assert names("projects", "name__endswith=t") == ["alt"]
    assert names("projects", "name__istartswith=A&name__iendswith=T") == ["alt"]
    assert names("domains", "name__contains=efau") == ["Default"]
    assert set(names("roles", "name__contains=er")) == {"manager", "member", "reader"}
    assert names("projects", "nosuch__contains=x") == []
