# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Domains, groups, roles of one's own and their assignments, nested projects and tags."""

from __future__ import annotations

import typing as t

from flask.testing import FlaskClient

from api.openstack.identity import views
from tests.api.identity.test_identity_tokens import ask, by_password, in_project
from tests.api.seeds import Api

V3 = "/identity/v3"
Json = dict[str, t.Any]


def make(client: FlaskClient, plural: str, status: int = 201, **fields: t.Any) -> Json:
    word = plural[:-1]
    answer = client.post(f"{V3}/{plural}", json={word: fields})
    assert answer.status_code == status, answer.get_json()
    return dict(answer.get_json()).get(word, {})


def names(client: FlaskClient, path: str) -> list[str]:
    answer = client.get(f"{V3}/{path}")
    assert answer.status_code == 200, answer.get_json()
    plural = path.partition("?")[0].rpartition("/")[2]
    return [item["name"] for item in answer.get_json()[plural]]


def in_domain(name: str, secret: str, domain: Json, **scope: t.Any) -> Json:
    body = by_password(name, secret, **scope)
    body["auth"]["identity"]["password"]["user"]["domain"] = domain
    return body


def status(api: Api, token: str, path: str = "auth/projects") -> int:
    return api.app.test_client().get(f"{V3}/{path}", headers={"X-Auth-Token": token}).status_code


def put(client: FlaskClient, path: str, expected: int = 204) -> None:
    answer = client.put(f"{V3}/{path}")
    assert answer.status_code == expected, answer.get_json()


def test_domains_by_an_admin(api: Api) -> None:
    admin, demo = api.client_as("admin"), api.client_as("demo")
    domain = make(admin, "domains", name="Acme", description="x")
    path = f"{V3}/domains/{domain['id']}"
    assert domain["enabled"] and len(domain["id"]) == 32
    for taken in ("Acme", "ACME", "default"):
        make(admin, "domains", 409, name=taken)
    assert names(admin, "domains") == ["Acme", "Default"]
    assert names(admin, "domains?name=acme") == ["Acme"]
    assert names(demo, "domains") == ["Default"]
    assert demo.get(path).status_code == 404
    assert demo.post(f"{V3}/domains", json={"domain": {"name": "mine"}}).status_code == 403
    assert admin.delete(path).status_code == 403  # while it is enabled
    assert admin.patch(path, json={"domain": {"enabled": False}}).get_json()["domain"]["enabled"] is False
    assert names(admin, "domains?enabled=false") == ["Acme"]
    assert admin.delete(path).status_code == 204
    assert admin.get(path).status_code == admin.delete(path).status_code == 404
    admin.patch(f"{V3}/domains/default", json={"domain": {"description": "x"}})
    assert admin.delete(f"{V3}/domains/default").status_code == 403


def test_what_a_domain_holds(api: Api) -> None:
    """The same names as in another domain, logins by it, and their end with it."""
    admin = api.client_as("admin")
    domain = make(admin, "domains", name="Acme")
    project = make(admin, "projects", name="demo", domain_id=domain["id"])
    assert (project["name"], project["domain_id"], project["parent_id"]) == ("demo", domain["id"], domain["id"])
    user = make(admin, "users", name="demo", password="acme's", domain_id=domain["id"])
    make(admin, "users", 409, name="demo", domain_id=domain["id"])
    make(admin, "projects", 409, name="demo", domain_id=domain["id"])
    assert len(admin.get(f"{V3}/users?name=demo").get_json()["users"]) == 2
    assert (
        names(admin, f"users?domain_id={domain['id']}")
        == ["demo"]
        == names(admin, f"projects?domain_id={domain['id']}")
    )
    put(admin, f"projects/{project['id']}/users/{user['id']}/roles/{views.role_id('member')}")
    scope: Json = {"project": {"name": "demo", "domain": {"name": "acme"}}}
    for named in ({"name": "Acme"}, {"name": "acme"}, {"id": domain["id"]}):
        answer = ask(api, in_domain("demo", "acme's", named, **scope))
        assert answer.status_code == 201, answer.get_json()
        token = answer.get_json()["token"]
        assert token["user"]["domain"] == {"id": domain["id"], "name": "Acme"} == token["project"]["domain"]
        assert (token["user"]["name"], token["project"]["id"]) == ("demo", project["id"])
    text = answer.headers["X-Subject-Token"]
    assert ask(api, by_password("demo", "acme's")).status_code == 401  # in the default domain
    assert ask(api, in_domain("demo", "acme's", {"id": domain["id"], "name": "Default"})).status_code == 401
    assert ask(api, in_domain("demo", "acme's", {"name": "Acme"}, **in_project("demo"))).status_code == 401
    assert status(api, text) == 200
    admin.patch(f"{V3}/domains/{domain['id']}", json={"domain": {"enabled": False}})
    assert status(api, text) == 401
    assert ask(api, in_domain("demo", "acme's", {"name": "Acme"})).status_code == 401
    admin.patch(f"{V3}/domains/{domain['id']}", json={"domain": {"enabled": True}})
    assert status(api, text) == 401  # what has ended stays so
    assert ask(api, in_domain("demo", "acme's", {"name": "Acme"})).status_code == 201
    admin.patch(f"{V3}/domains/{domain['id']}", json={"domain": {"enabled": False}})
    assert admin.delete(f"{V3}/domains/{domain['id']}").status_code == 204
    assert admin.get(f"{V3}/users/{user['id']}").status_code == 404
    assert admin.get(f"{V3}/projects/{project['id']}").status_code == 404


def test_a_role_in_a_domain(api: Api) -> None:
    admin, demo = api.client_as("admin"), api.client_as("demo")
    domain = make(admin, "domains", name="Acme")
    scope: Json = {"domain": {"name": "Acme"}}
    assert ask(api, by_password("demo", **scope)).status_code == 401
    role = f"domains/{domain['id']}/users/{api.users['demo']}/roles/{views.role_id('reader')}"
    assert admin.head(f"{V3}/{role}").status_code == 404
    put(admin, role)
    assert admin.head(f"{V3}/{role}").status_code == 204
    assert names(demo, "auth/domains") == ["Acme"]
    answer = ask(api, by_password("demo", **scope))
    token = answer.get_json()["token"]
    assert token["domain"] == {"id": domain["id"], "name": "Acme"} and "project" not in token
    assert [entry["name"] for entry in token["roles"]] == ["reader"]
    text = answer.headers["X-Subject-Token"]
    held = {"X-Auth-Token": text}
    plain = api.app.test_client()
    assert plain.get("/compute/v2.1/servers", headers=held).status_code == 401  # it is for no project
    assert plain.get(f"{V3}/domains/{domain['id']}", headers=held).status_code == 200
    assert admin.delete(f"{V3}/{role}").status_code == 204
    assert status(api, text) == 401
    assert ask(api, by_password("demo", **scope)).status_code == 401


def test_disabled_projects_and_users_end_tokens(api: Api) -> None:
    admin = api.client_as("admin")
    token = ask(api, by_password("alt", **in_project("alt"))).headers["X-Subject-Token"]
    path = f"{V3}/projects/{api.projects['alt']}"
    admin.patch(path, json={"project": {"enabled": False}})
    assert status(api, token) == 401
    assert ask(api, by_password("alt", **in_project("alt"))).status_code == 401
    admin.patch(path, json={"project": {"enabled": True}})
    assert status(api, token) == 401
    assert ask(api, by_password("alt", **in_project("alt"))).status_code == 201


def test_groups(api: Api) -> None:
    admin, demo = api.client_as("admin"), api.client_as("demo")
    group = make(admin, "groups", name="ops", description="x", email="ops@example.org")
    assert group["email"] == "ops@example.org" and group["domain_id"] == "default"
    path = f"groups/{group['id']}"
    make(admin, "groups", 409, name="ops")
    assert names(admin, "groups?name=ops") == ["ops"] and names(admin, "groups?name__contains=foo") == []
    changed = admin.patch(f"{V3}/{path}", json={"group": {"description": "", "email": "new@example.org"}})
    assert changed.get_json()["group"] == {**group, "description": "", "email": "new@example.org"}
    for method in (demo.get, demo.delete):
        assert method(f"{V3}/{path}").status_code == 403
    member = f"{path}/users/{api.users['demo']}"
    assert admin.head(f"{V3}/{member}").status_code == 404
    put(admin, member)
    put(admin, member)
    assert admin.head(f"{V3}/{member}").status_code == 204
    assert names(admin, f"{path}/users") == ["demo"]
    assert names(demo, f"users/{api.users['demo']}/groups") == ["ops"]
    assert demo.get(f"{V3}/users/{api.users['alt']}/groups").status_code == 404
    # what a group may, its members may, as long as they are in it
    role = f"projects/{api.projects['alt']}/{path}/roles/{views.role_id('member')}"
    put(admin, role)
    answer = ask(api, by_password("demo", **in_project("alt")))
    assert [entry["name"] for entry in answer.get_json()["token"]["roles"]] == ["member", "reader"]
    token = answer.headers["X-Subject-Token"]
    assert names(demo, "auth/projects") == ["alt", "demo"]
    assert admin.delete(f"{V3}/{member}").status_code == 204
    assert admin.delete(f"{V3}/{member}").status_code == 404
    assert status(api, token) == 401
    put(admin, member)
    assert ask(api, by_password("demo", **in_project("alt"))).status_code == 201
    assert admin.delete(f"{V3}/{path}").status_code == 204
    assert ask(api, by_password("demo", **in_project("alt"))).status_code == 401


def test_roles_of_ones_own_give_no_rights(api: Api) -> None:
    admin, demo = api.client_as("admin"), api.client_as("demo")
    role = make(admin, "roles", name="auditor", description="looks")
    assert role["domain_id"] is None and role["options"] == {}
    make(admin, "roles", 409, name="auditor")
    make(admin, "roles", 409, name="admin")
    assert demo.post(f"{V3}/roles", json={"role": {"name": "root"}}).status_code == 403
    path = f"{V3}/roles/{role['id']}"
    assert admin.patch(path, json={"role": {"name": "inspector"}}).get_json()["role"]["name"] == "inspector"
    assert "inspector" in names(admin, "roles")
    for name in ("admin", "reader"):
        ours = f"{V3}/roles/{views.role_id(name)}"
        assert admin.delete(ours).status_code == admin.patch(ours, json={"role": {"name": "x"}}).status_code == 403
    user = make(admin, "users", name="ann", password="ann's")
    put(admin, f"projects/{api.projects['alt']}/users/{user['id']}/roles/{role['id']}")
    answer = ask(api, by_password("ann", "ann's", **in_project("alt")))
    assert answer.get_json()["token"]["roles"] == [{"id": role["id"], "name": "inspector"}]
    token = answer.headers["X-Subject-Token"]
    held = {"X-Auth-Token": token}
    assert api.app.test_client().get("/compute/v2.1/servers", headers=held).status_code == 403
    assert admin.delete(path).status_code == 204
    assert status(api, token) == 401  # it was the last role there
    assert ask(api, by_password("ann", "ann's", **in_project("alt"))).status_code == 401


def test_a_role_of_a_domain_named_as_one_with_rights_has_none(api: Api) -> None:
    admin = api.client_as("admin")
    role = make(admin, "roles", name="admin", domain_id="default")
    assert names(admin, "roles?domain_id=default") == ["admin"]
    user = make(admin, "users", name="ann", password="ann's")
    put(admin, f"projects/{api.projects['alt']}/users/{user['id']}/roles/{role['id']}")
    assert ask(api, by_password("ann", "ann's", **in_project("alt"))).status_code == 401
    assert assigned(admin, f"user.id={user['id']}") == [("admin", "ann", "alt")]
    assert assigned(admin, f"user.id={user['id']}&effective") == []
    other = make(admin, "domains", name="Acme")
    project = make(admin, "projects", name="p", domain_id=other["id"])
    put(admin, f"projects/{project['id']}/users/{user['id']}/roles/{role['id']}", 403)


def assigned(client: FlaskClient, query: str) -> list[tuple[str, str, str]]:
    assignments = client.get(f"{V3}/role_assignments?include_names&{query}").get_json()["role_assignments"]
    return [
        (
            item["role"]["name"],
            item.get("user", item.get("group"))["name"],
            item["scope"].get("project", item["scope"].get("domain"))["name"],
        )
        for item in assignments
    ]


def test_role_assignments(api: Api) -> None:
    admin = api.client_as("admin")
    group = make(admin, "groups", name="ops")
    put(admin, f"groups/{group['id']}/users/{api.users['alt']}")
    put(admin, f"projects/{api.projects['demo']}/groups/{group['id']}/roles/{views.role_id('member')}")
    put(admin, f"domains/default/groups/{group['id']}/roles/{views.role_id('reader')}")
    assert assigned(admin, f"group.id={group['id']}") == [("member", "ops", "demo"), ("reader", "ops", "Default")]
    assert assigned(admin, f"user.id={api.users['alt']}") == [("member", "alt", "alt")]
    assert assigned(admin, f"scope.domain.id=default&role.id={views.role_id('reader')}") == [
        ("reader", "ops", "Default")
    ]
    assert assigned(admin, f"user.id={api.users['alt']}&effective&scope.project.id={api.projects['demo']}") == [
        ("reader", "alt", "demo"),
        ("member", "alt", "demo"),
    ]
    assert assigned(admin, "scope.system=all") == []
    assignments = admin.get(f"{V3}/role_assignments?user.id={api.users['demo']}").get_json()["role_assignments"]
    assert [sorted(item) for item in assignments] == [["links", "role", "scope", "user"]]
    for wrong in (f"effective&group.id={group['id']}", "scope.OS-INHERIT:inherited_to=x"):
        assert admin.get(f"{V3}/role_assignments?{wrong}").status_code == 400
    assert api.client_as("demo").get(f"{V3}/role_assignments").status_code == 403


def test_nested_projects_and_inherited_roles(api: Api) -> None:
    admin, demo = api.client_as("admin"), api.client_as("demo")
    top = make(admin, "projects", name="top")
    middle = make(admin, "projects", name="middle", parent_id=top["id"])
    low = make(admin, "projects", name="low", parent_id=middle["id"])
    assert low["parent_id"] == middle["id"] and low["domain_id"] == "default"
    assert names(admin, f"projects?parent_id={top['id']}") == ["middle"]
    assert set(names(admin, "projects?parent_id=default")) == {"alt", "demo", "top"}
    path = f"{V3}/projects/{middle['id']}"
    shown = admin.get(f"{path}?parents_as_list&subtree_as_list").get_json()["project"]
    assert [entry["project"]["name"] for entry in shown["parents"]] == ["top"]
    assert [entry["project"]["name"] for entry in shown["subtree"]] == ["low"]
    ids = admin.get(f"{V3}/projects/{top['id']}?subtree_as_ids").get_json()["project"]["subtree"]
    assert ids == {middle["id"]: {low["id"]: None}}
    above = admin.get(f"{V3}/projects/{low['id']}?parents_as_ids").get_json()["project"]["parents"]
    assert above == {middle["id"]: {top["id"]: {"default": None}}}
    assert admin.get(f"{path}?parents_as_list&parents_as_ids").status_code == 400
    assert admin.patch(path, json={"project": {"parent_id": low["id"]}}).status_code == 403
    assert admin.patch(path, json={"project": {"enabled": False}}).status_code == 403  # low is enabled
    assert admin.delete(path).status_code == 403
    last = make(admin, "projects", name="4", parent_id=low["id"])
    last = make(admin, "projects", name="5", parent_id=last["id"])
    make(admin, "projects", 403, name="6", parent_id=last["id"])
    # a role that is inherited holds below, and not there
    member = f"projects/{top['id']}/users/{api.users['demo']}/roles/{views.role_id('member')}/inherited_to_projects"
    put(admin, f"OS-INHERIT/{member}")
    assert admin.head(f"{V3}/OS-INHERIT/{member}").status_code == 204
    assert names(demo, "auth/projects") == ["4", "5", "demo", "low", "middle"]
    assert ask(api, by_password("demo", **in_project("top"))).status_code == 401
    token = ask(api, by_password("demo", **in_project("low"))).headers["X-Subject-Token"]
    assert status(api, token) == 200
    inherited = f"scope.OS-INHERIT:inherited_to=projects&user.id={api.users['demo']}"
    assert assigned(admin, inherited) == [("member", "demo", "top")]
    assert ("member", "demo", "low") in assigned(admin, f"{inherited}&effective")
    assert ("member", "demo", "top") not in assigned(admin, f"{inherited}&effective")
    assert admin.delete(f"{V3}/OS-INHERIT/{member}").status_code == 204
    assert status(api, token) == 401
    put(
        admin,
        f"OS-INHERIT/domains/default/users/{api.users['demo']}/roles/{views.role_id('reader')}/inherited_to_projects",
    )
    answer = ask(api, by_password("demo", **in_project("alt")))
    assert [entry["name"] for entry in answer.get_json()["token"]["roles"]] == ["reader"]


def test_projects_that_act_as_domains(api: Api) -> None:
    admin = api.client_as("admin")
    acting = make(admin, "projects", name="Acme", is_domain=True)
    assert acting["is_domain"] and acting["domain_id"] is None
    project = make(admin, "projects", name="inner", domain_id=acting["id"])
    assert project["domain_id"] == acting["id"]
    assert names(admin, "projects?is_domain=true") == ["Acme", "Default"]
    assert admin.get(f"{V3}/projects/{acting['id']}").get_json()["project"] == acting
    assert admin.delete(f"{V3}/projects/{acting['id']}").status_code == 403
    admin.patch(f"{V3}/projects/{acting['id']}", json={"project": {"enabled": False}})
    assert admin.delete(f"{V3}/projects/{acting['id']}").status_code == 204


def test_project_tags(api: Api) -> None:
    admin, demo = api.client_as("admin"), api.client_as("demo")
    make(admin, "projects", name="tagged", tags=["a", "b"])
    (project,) = admin.get(f"{V3}/projects?name=tagged").get_json()["projects"]
    assert project["tags"] == ["a", "b"]
    for query, expected in (
        ("tags=a,b", True),
        ("tags=a,c", False),
        ("tags-any=a,c", True),
        ("not-tags=a,c", True),
        ("not-tags=a,b", False),
        ("not-tags-any=a", False),
    ):
        assert ("tagged" in names(admin, f"projects?{query}")) is expected, query
    path = f"{V3}/projects/{project['id']}/tags"
    assert admin.get(path).get_json()["tags"] == ["a", "b"]
    assert admin.put(f"{path}/c").status_code == 201
    assert admin.head(f"{path}/c").status_code == 204 and admin.head(f"{path}/d").status_code == 404
    assert admin.delete(f"{path}/a").status_code == 204 and admin.delete(f"{path}/a").status_code == 404
    assert admin.put(path, json={"tags": ["x"]}).get_json()["tags"] == ["x"]
    assert admin.put(f"{path}/a,b").status_code == 400
    assert admin.put(path, json={"tags": [str(number) for number in range(81)]}).status_code == 400
    assert demo.get(path).status_code == 404 and demo.put(f"{path}/c").status_code == 403
    assert admin.delete(path).status_code == 204
    assert admin.get(path).get_json()["tags"] == []


def test_attributes_of_projects(api: Api) -> None:
    admin = api.client_as("admin")
    project = make(admin, "projects", name="blue", color="blue", tags=["x"])
    path = f"{V3}/projects/{project['id']}"
    assert admin.get(path).get_json()["project"]["color"] == "blue"
    changed = admin.patch(path, json={"project": {"description": "x", "color": None}}).get_json()["project"]
    assert changed["tags"] == ["x"] and "color" not in changed


def test_options_and_attributes_of_users(api: Api) -> None:
    admin = api.client_as("admin")
    rules = [["password", "totp"], ["password", "token"]]
    options = {"ignore_password_expiry": True, "multi_factor_auth_rules": rules}
    user = make(admin, "users", name="ann", password="ann's", options=options, team="blue", project_id="x")
    assert user["options"] == options and (user["team"], user["project_id"]) == ("blue", "x")
    assert ask(api, by_password("ann", "ann's")).status_code == 201  # of what there is, the first rule is kept
    path = f"{V3}/users/{user['id']}"
    admin.patch(path, json={"user": {"options": {"multi_factor_auth_rules": rules[1:]}}})
    assert ask(api, by_password("ann", "ann's")).status_code == 401
    changed = admin.patch(path, json={"user": {"options": {"multi_factor_auth_rules": None, "lock_password": True}}})
    assert changed.get_json()["user"]["options"] == {"ignore_password_expiry": True, "lock_password": True}
    assert ask(api, by_password("ann", "ann's")).status_code == 201
    own = {"user": {"original_password": "ann's", "password": "x"}}
    assert api.app.test_client().post(f"{path}/password", json=own).status_code == 403
