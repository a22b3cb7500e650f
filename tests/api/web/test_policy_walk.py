# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every route of every service, one after the other: who may not, is refused; what is another's, is not there."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import itertools
import json
import pathlib
import re
import time
import typing as t

import pytest
import sqlalchemy as sa
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import users
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import revoke_token
from api.web.policy import POLICY
from tests.api import conftest, foreign
from tests.api.seeds import Api

# Whoever opens another door to everybody says so here.
PUBLIC = {
    "health",
    "identity:tokens:create",
    "identity:users:password",  # with the old one
    "identity:versions",
    "metrics",
    "pages:console",
    "pages:files",
    "pages:login",
    "v1:openapi",
    "version",
}
ROLES = ("any", "reader", "member", "manager", "admin")

# Bodies that are right, by method and the end of the route: only then is an object looked up at all. A route that is
# not named here is asked without one.
BODIES: dict[tuple[str, str], t.Any] = {
    ("PATCH", "/identity/v3/projects/{}"): {"project": {"description": "mine"}},
    ("PATCH", "/identity/v3/users/{}"): {"user": {"description": "mine"}},
    ("POST", "/identity/v3/users/{}/password"): {"user": {"password": "x", "original_password": "y"}},
    ("POST", "/identity/v3/users/{}/application_credentials"): {"application_credential": {"name": "mine"}},
    ("PATCH", "/identity/v3/credentials/{}"): {"credential": {"blob": "mine"}},
    ("PUT", "/compute/v2.1/servers/{}"): {"server": {"name": "mine"}},
    ("POST", "/compute/v2.1/servers/{}/action"): {"os-stop": None},
    ("POST", "/compute/v2.1/servers/{}/metadata"): {"metadata": {"a": "b"}},
    ("PUT", "/compute/v2.1/servers/{}/metadata"): {"metadata": {"a": "b"}},
    ("PUT", "/compute/v2.1/servers/{}/metadata/{}"): {"meta": {"key": "b"}},
    ("PUT", "/compute/v2.1/servers/{}/tags"): {"tags": ["a"]},
    ("PUT", "/network/v2.0/security-groups/{}"): {"security_group": {"name": "mine"}},
    ("PUT", "/network/v2.0/security-groups/{}/tags"): {"tags": ["a"]},
    ("PUT", "/network/v2.0/floatingips/{}"): {"floatingip": {"port_id": None}},
}


@dataclasses.dataclass(frozen=True)
class Route:
    """One method of one path, with ids of `alt`. `kinds` says of which objects of its own."""

    method: str
    path: str
    rule: str
    action: str | None
    kinds: tuple[str, ...]
    decoy: str  # the same path with ids of nobody
    own: str  # and so within the project `demo`

    @property
    def role(self) -> str:
        return POLICY[self.action or ""]

    @property
    def is_page(self) -> bool:
        return self.path.partition("/")[2].partition("/")[0] not in (
            "identity",
            "compute",
            "image",
            "network",
            "volume",
            "v1",
            "ec2",
            "metrics",
            "healthz",
            "readyz",
        )

    @property
    def body(self) -> t.Any:
        return BODIES.get((self.method, foreign.VARIABLE.sub("{}", self.rule)))

    def __str__(self) -> str:
        return f"{self.method} {self.rule}"


@pytest.fixture(scope="module")
def api(seeded: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Api]:
    """One application for all of this module: nothing here may change anything."""
    with conftest.application(seeded, tmp_path_factory.mktemp("walk") / "cloud") as opened:
        yield opened


@pytest.fixture(scope="module")
def objects(api: Api) -> foreign.Objects:
    return foreign.make(api)


@pytest.fixture(scope="module")
def routes(api: Api, objects: foreign.Objects) -> list[Route]:
    walked_routes = []
    for rule in api.app.url_map.iter_rules():
        action = getattr(api.app.view_functions[rule.endpoint], "policy_operation", None)
        for (path, decoy, own), kinds in foreign.paths(rule, objects, api.projects["demo"]):
            for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
                walked_routes.append(Route(method, path, rule.rule, action, kinds, decoy, own))
    assert len(walked_routes) > 40
    return walked_routes


VERSIONS = ("2.1", "latest")  # of Compute: some routes are there in old ones only, some in new ones


def send(
    api: Api, token: str | None, route: Route, path: str | None = None, body: t.Any = None, version: str = "latest"
) -> TestResponse:
    client = api.app.test_client()
    if route.is_page:
        return _send_form(api, client, token, route, path or route.path)
    headers = {"OpenStack-API-Version": f"compute {version}"} if route.path.startswith("/compute") else {}
    if route.path.startswith("/volume"):
        headers = {"OpenStack-API-Version": f"volume {'latest' if version == 'latest' else '3.0'}"}
    if token is not None:
        headers["X-Auth-Token"] = token
    return client.open(
        path or route.path, method=route.method, headers=headers, data=None if body is None else json.dumps(body)
    )


def _send_form(api: Api, client: FlaskClient, token: str | None, route: Route, path: str) -> TestResponse:
    """As a browser does: the token in a cookie, and in a form what shows that the form came from here."""
    session = importlib.import_module("api.dashboard.session")
    if token is None:
        return client.open(path, method=route.method)
    client.set_cookie(session.COOKIE, token)
    form = None
    if route.method == "POST":
        with api.app.test_request_context(headers={"Cookie": f"{session.COOKIE}={token}"}):
            form = {"csrf": session.csrf()}
    return client.open(path, method=route.method, data=form)


def is_refused(route: Route, answer: TestResponse) -> bool:
    """Tell whether nobody was let in: 401, or for a page the way to the login."""
    if route.is_page and route.method == "GET":
        return answer.status_code == 303 and "/login" in answer.headers["Location"]
    return answer.status_code == 401


def test_every_route_has_a_rule(routes: list[Route]) -> None:
    assert [str(route) for route in routes if route.action not in POLICY] == []
    assert {route.role for route in routes} <= {"public", *ROLES}


def test_only_these_are_public(routes: list[Route]) -> None:
    assert {str(route.action) for route in routes if route.role == "public"} <= PUBLIC


@pytest.mark.parametrize("who", ["nobody", "unknown", "revoked", "expired", "disabled", "long"])
def test_without_a_valid_token_nothing_is_told(api: Api, routes: list[Route], who: str) -> None:
    with void_token(api, who) as token:
        wrong = {
            str(route): answer.status_code
            for route in routes
            if route.role != "public" and not is_refused(route, answer := send(api, token, route))
        }
    assert wrong == {}


@contextlib.contextmanager
def void_token(api: Api, who: str) -> t.Iterator[str | None]:
    """A token of an admin that is none any more."""
    if who in ("nobody", "unknown", "long"):
        yield {"nobody": None, "unknown": "nosuch", "long": "x" * 300}[who]
        return
    token = api.token("admin")
    table = tables.tables_identity.token
    with transaction(api.engine) as connection:
        if who == "revoked":
            assert revoke_token(connection, token)
        elif who == "expired":
            admins = table.c.user_id == api.users["admin"]
            connection.execute(sa.update(table).where(admins).values(expires_at=time.time()))
        else:
            connection.execute(sa.update(users.user).where(users.user.c.name == "admin").values(enabled=False))
    yield token
    if who == "disabled":
        api.write(sa.update(users.user).values(enabled=True))


@pytest.mark.parametrize("name", ["reader", "demo"])
def test_who_has_too_little_a_role_is_refused(api: Api, routes: list[Route], name: str) -> None:
    """On each route, before it is looked for an object or into a body."""
    role = {"reader": "reader", "demo": "member"}[name]
    above = ROLES[ROLES.index(role) + 1 :]
    token = api.token(name)
    wrong = {
        str(route): answer.status_code
        for route in routes
        if route.role in above
        if (answer := send(api, token, route, route.own)).status_code != 403
    }
    assert wrong == {}
    assert any(route.role in above for route in routes)


def test_a_token_without_a_project_reaches_no_project(api: Api, routes: list[Route]) -> None:
    token = api.token("demo", None)
    wrong = {
        str(route): answer.status_code
        for route in routes
        if route.role in ("reader", "member", "admin")
        and (answer := send(api, token, route)).status_code not in (401, 403)
        and not is_refused(route, answer)
    }
    assert wrong == {}


def test_what_is_anothers_is_not_there(api: Api, routes: list[Route]) -> None:
    """404, and the answer says no more than about an id that nobody has."""
    token = api.token("demo")
    wrong = {}
    for route, version in itertools.product(routes, VERSIONS):
        if not route.kinds or route.role in ("public", "admin"):
            continue
        answer = send(api, token, route, body=route.body, version=version)
        other = send(api, token, route, route.decoy, body=route.body, version=version)
        if answer.status_code == 400 and route.method != "GET" and route.body is None:
            if other.status_code == 400:  # refused for want of a body, before anything was looked up
                continue
        elif answer.status_code == 404 and _masked(answer, route.path) == _masked(other, route.decoy):
            continue
        wrong[str(route)] = (answer.status_code, other.status_code, answer.get_data(as_text=True)[:300])
    assert wrong == {}


def test_its_owner_sees_it(api: Api, routes: list[Route]) -> None:
    """Else the test above would say nothing."""
    token = api.token("alt")
    wrong = {}
    for route in routes:
        if route.method != "GET" or not route.kinds or route.role not in ("any", "reader") or _needs_more(route):
            continue
        statuses = [send(api, token, route, version=version).status_code for version in VERSIONS]
        if not {200, 204} & set(statuses):
            wrong[str(route)] = statuses
    assert wrong == {}


# What is not there although its owner asks: what would be shown is made by hosts, or lies in a file of theirs.
NOT_SHOWN = re.compile(
    r"/(file|diagnostics|os-server-password|remote-consoles|consoles/novnc|console|stream|events|placement|delete)$"
)


def _needs_more(route: Route) -> bool:
    if {"nothing", "router"} & set(route.kinds):
        return True
    return NOT_SHOWN.search(route.rule) is not None or route.path.endswith(("/key", "/tag", "/nosuch"))


def _masked(answer: TestResponse, path: str) -> str:
    """A body without the ids of the request's path, and without what differs from request to request."""
    text = answer.get_data(as_text=True)
    for part in path.split("/"):
        if len(part) >= 4:
            text = text.replace(part, "*")
    return re.sub(r"req-[0-9a-f-]{36}|value=\"[0-9a-f]{64}\"", "*", text)
