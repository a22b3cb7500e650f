# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users, projects and their quotas at Identity, on the pages of the status page, and by playbooks and the command."""

from __future__ import annotations

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.dashboard import session
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
