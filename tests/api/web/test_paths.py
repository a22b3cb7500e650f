# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute and Block Storage are asked with a project's id in the path or without one, whichever their clients write."""

from __future__ import annotations

import collections
import re

import pytest
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from tests.api import foreign
from tests.api.seeds import Api

PROJECT = "/volume/v3/<project>"
COMPUTE = "/compute/v2.1"
LATEST = {"OpenStack-API-Version": "compute latest, volume latest"}


def _masked(answer: TestResponse) -> str:
    """The body without what differs from request to request: its id, the time, the address in links."""
    return re.sub(r"req-[0-9a-f-]{36}|[0-9]{2}:[0-9]{2}:[0-9.]{2,}|/[0-9a-f]{32}\b", "", answer.get_data(as_text=True))


def test_each_route_answers_the_same_with_a_project_in_its_path_and_without(api: Api) -> None:
    """Every route of the two services, whatever its method, of one's own project."""
    objects, project = foreign.make(api), api.projects["alt"]
    with transaction(api.engine) as connection:
        users.grant_role(connection, api.users["admin"], project, "admin")
    client = api.client_as("admin", "alt")
    asked: collections.Counter[int] = collections.Counter()
    for rule in api.app.url_map.iter_rules():
        methods = sorted((rule.methods or set()) - {"HEAD", "OPTIONS", "DELETE"})
        if not (rule.rule.startswith(PROJECT) or rule.rule.startswith(f"{COMPUTE}/")) or rule.rule == f"{COMPUTE}/":
            continue
        for (path, _decoy, _own), _kinds in foreign.paths(rule, objects, project):
            bare = path.replace(f"/volume/v3/{project}", "/volume/v3", 1)
            named = path if bare != path else path.replace(COMPUTE, f"{COMPUTE}/{project}", 1)
            for method in methods:
                answers = [client.open(at, method=method, json={}, headers=LATEST) for at in (bare, named)]
                statuses = [answer.status_code for answer in answers]
                assert statuses[0] // 100 == statuses[1] // 100, (method, bare, named)
                assert (statuses[0] == 404) == (statuses[1] == 404), (method, bare, named)
                assert method != "GET" or _masked(answers[0]) == _masked(answers[1]), (method, bare, named)
                asked[statuses[0]] += 1
    assert asked[200] > 90, asked


@pytest.mark.parametrize(("path", "status"), [("/compute/v2.1/{}/servers", 400), ("/volume/v3/{}/volumes", 404)])
def test_another_projects_id_in_the_path_is_refused(api: Api, path: str, status: int) -> None:
    client = api.client_as("demo")
    for project in (api.projects["alt"], "0" * 32, "abc"):
        assert client.get(path.format(project)).status_code == status
    assert client.get(path.format("nosuch")).status_code == 404
    assert api.client_as(None).get(path.format(api.projects["demo"])).status_code == 401


def test_pages_lead_on_where_they_were_asked_for(api: Api) -> None:
    project = api.projects["demo"]
    for name in ("a", "b"):
        api.instance("demo", name, host="hv1")
    for base in (COMPUTE, f"{COMPUTE}/{project}"):
        body = api.client_as("demo").get(f"{base}/servers?limit=1").get_json()
        assert body["servers_links"][0]["href"].startswith(f"http://localhost{base}/servers?")


def test_access_rules_are_about_the_path_that_a_client_writes(api: Api) -> None:
    """Access rules are about the path that a client writes."""
    client = api.client_as("demo")
    user = api.users["demo"]
    rules = [{"service": "compute", "method": "GET", "path": "/v2.1/servers"}]
    body = {"application_credential": {"name": "narrow", "access_rules": rules}}
    made = client.post(f"/identity/v3/users/{user}/application_credentials", json=body).get_json()
    secret = {key: made["application_credential"][key] for key in ("id", "secret")}
    identity = {"methods": ["application_credential"], "application_credential": secret}
    token = client.post("/identity/v3/auth/tokens", json={"auth": {"identity": identity}}).headers["X-Subject-Token"]
    client.environ_base["HTTP_X_AUTH_TOKEN"] = token
    assert client.get("/compute/v2.1/servers").status_code == 200
    assert client.get(f"/compute/v2.1/{api.projects['demo']}/servers").status_code == 401
