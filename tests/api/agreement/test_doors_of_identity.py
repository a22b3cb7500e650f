# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users, projects and their quotas at Identity, on the pages of the status page, and by playbooks and the command."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.__main__ import main
from api.dashboard import session
from api.web import policy
from tests.api.dashboard.test_pages_forms import send
from tests.api.dashboard.visitor import Visitor
from tests.api.seeds import Api

USER, PROJECT = tables.tables_identity.user.c, tables.project.c
V3 = "/identity/v3"


def test_pages_make_things_in_the_domain_in_which_identity_makes_them(api: Api) -> None:
    admin = api.client_as("admin")
    acme = admin.post(f"{V3}/domains", json={"domain": {"name": "Acme"}}).get_json()["domain"]["id"]
    lab = {"project": {"name": "lab", "domain_id": acme}}
    project = admin.post(f"{V3}/projects", json=lab).get_json()["project"]["id"]
    (role,) = admin.get(f"{V3}/roles?name=admin").get_json()["roles"]
    admin.put(f"{V3}/projects/{project}/users/{api.users['admin']}/roles/{role['id']}")
    api.projects["lab"] = project
    visitor = Visitor(api, None)
    visitor.client.set_cookie(session.COOKIE, api.token("admin", "lab"))
    lab_admin = api.client_as("admin", "lab")
    lab_admin.post(f"{V3}/users", json={"user": {"name": "one"}})
    lab_admin.post(f"{V3}/projects", json={"project": {"name": "one"}})
    send(visitor, "/users/new", name="two", password="a secret")
    send(visitor, "/projects/new", name="two")
    assert api.rows(sa.select(USER.domain_id).where(USER.display_name.in_(["one", "two"]))) == [(acme,)] * 2
    assert api.rows(sa.select(PROJECT.domain_id).where(PROJECT.display_name.in_(["one", "two"]))) == [(acme,)] * 2


def test_the_command_makes_keys_for_whom_identity_makes_them(
    api: Api, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A user without a role in a project could do nothing with a pair of keys for it."""
    settings = api.app.extensions["settings"]
    monkeypatch.setenv("NOVALITE_HOME", settings.home)
    path = f"{V3}/users/{api.users['demo']}/credentials/OS-EC2"
    assert api.client_as("demo").post(path, json={"tenant_id": api.projects["alt"]}).status_code == 404
    assert main(["ec2-credential", "--user", "demo", "--project", "alt"]) == 1
    assert "user 'demo' has no role in project 'alt'" in capsys.readouterr().err
    pair = api.client_as("demo").post(path, json={"tenant_id": api.projects["demo"]}).get_json()["credential"]
    assert main(["ec2-credential", "--user", "demo", "--project", "demo"]) == 0
    assert json.loads(capsys.readouterr().out) == {name: pair[name] for name in ("access", "secret")}


def test_an_id_of_a_role_goes_before_its_name(api: Api) -> None:
    """As Keystone reads the roles of trusts and of application credentials."""
    demo = api.client_as("demo")
    member, reader = (demo.get(f"{V3}/roles?name={name}").get_json()["roles"][0]["id"] for name in ("member", "reader"))
    roles = [{"id": reader, "name": "member"}]
    trust = {
        "trustor_user_id": api.users["demo"],
        "trustee_user_id": api.users["alt"],
        "project_id": api.projects["demo"],
        "impersonation": False,
    }
    credentials = f"{V3}/users/{api.users['demo']}/application_credentials"
    for answer, word in (
        (demo.post(f"{V3}/OS-TRUST/trusts", json={"trust": {**trust, "roles": roles}}), "trust"),
        (
            demo.post(credentials, json={"application_credential": {"name": "x", "roles": roles}}),
            "application_credential",
        ),
    ):
        assert [role["id"] for role in answer.get_json()[word]["roles"]] == [reader] != [member]


def test_quotas_of_networks_and_volumes_are_set_by_who_may_set_them_at_their_services(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(policy.POLICY, "compute:quotas:write", "member")
    demo, visitor, own = api.client_as("demo"), Visitor(api, "demo"), api.projects["demo"]
    page = f"/projects/{own}/quotas"
    limits = {str(field["name"]): str(field["value"]) for field in visitor.get(page).all("input")}
    limits.pop("csrf")
    assert "instances" in limits and not {"networks", "volumes", "gigabytes", "snapshots"} & limits.keys()
    assert demo.put(f"/network/v2.0/quotas/{own}", json={"quota": {"network": 7}}).status_code == 403
    send(visitor, page, 403, **limits, networks="7")
    volumes = {"quota_set": {"volumes": 7}}
    assert demo.put(f"/volume/v3/{own}/os-quota-sets/{own}", json=volumes).status_code == 403
    send(visitor, page, 403, **limits, volumes="7")
    send(visitor, page, **{**limits, "instances": "7"})
    quota = tables.quota.c
    assert api.rows(sa.select(quota.resource, quota.hard_limit).where(quota.project_id == own)) == [("instances", 7)]


def test_each_service_takes_the_limits_that_its_own_does(api: Api) -> None:
    """Nova and the pages refuse a limit below what there is, Neutron and Cinder take it."""
    admin, own = api.client_as("admin"), api.projects["demo"]
    api.instance("demo", "one")
    assert admin.post("/network/v2.0/networks", json={"network": {"name": "mine"}}).status_code == 201
    api.run("volume", project="demo", volumes=[{"name": "data", "size": 1}])
    for path, body, status in (
        (f"/compute/v2.1/os-quota-sets/{own}", {"quota_set": {"instances": 0}}, 400),
        (f"/network/v2.0/quotas/{own}", {"quota": {"network": 0}}, 200),
        (f"/volume/v3/{own}/os-quota-sets/{own}", {"quota_set": {"volumes": 0}}, 200),
    ):
        assert admin.put(path, json=body).status_code == status, path
