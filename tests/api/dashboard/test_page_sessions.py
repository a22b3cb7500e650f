# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sessions and forms of the status page."""

from __future__ import annotations

import time

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from api.dashboard import session
from tests.api import scenes, seeds
from tests.api.dashboard.visitor import Page, Visitor, log_in

# --- Sessions -------------------------------------------------------------------------------------------------------


def test_one_logs_in_and_out(api: seeds.Api) -> None:
    client = api.app.test_client()
    away = client.get("/instances?all_projects=true")
    assert (away.status_code, away.headers["Location"]) == (303, "/login?next=/instances?all_projects%3Dtrue")
    answer = log_in(client)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/instances")
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and "Secure" not in cookie
    assert "Expires" not in cookie and "Max-Age" not in cookie  # it ends with the browser
    token = cookie.partition("=")[2].partition(";")[0]
    with api.engine.connect() as connection:
        row = connection.execute(sa.select(tables.tables_identity.token)).one()
    assert token not in row  # kept as a hash, as any token
    assert row.expires_at <= time.time() + session.LIFETIME
    page = Page(client.get("/instances").get_data(as_text=True))
    assert "demo in demo" in page.words

    csrf = next(field["value"] for field in page.all("input") if field.get("name") == "csrf")
    assert client.post("/logout", data={"csrf": csrf}).status_code == 303
    assert client.get("/instances").status_code == 303
    client.set_cookie(session.COOKIE, token)  # kept by somebody
    assert client.get("/instances").status_code == 303


def test_over_tls_the_cookie_is_for_tls_alone(api: seeds.Api) -> None:
    client = api.app.test_client()
    data = {"user": "demo", "password": seeds.password("demo")}
    assert "Secure" in client.post("/login", data=data, base_url="https://cloud.example.org").headers["Set-Cookie"]


def test_another_project_needs_a_role_in_it(api: seeds.Api) -> None:
    client = api.app.test_client()
    assert log_in(client, project="demo").status_code == 303
    for project in ("alt", "nosuch", "ä\u202e"):
        answer = log_in(api.app.test_client(), project=project)
        assert answer.status_code == 401
        assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "fields", [{"password": "wrong"}, {"user": "nobody"}, {"user": ""}, {"password": ""}, {"user": "x" * 300}]
)
def test_a_refusal_does_not_tell_which_part_was_wrong(api: seeds.Api, fields: dict[str, str]) -> None:
    answer = log_in(api.app.test_client(), **fields)
    assert answer.status_code == 401
    page = Page(answer.get_data(as_text=True))
    assert "Wrong user, password or project." in page.words
    assert seeds.password("demo") not in answer.get_data(as_text=True)
    assert not any(field.get("value") for field in page.all("input") if field["name"] == "password")


def test_guesses_lock_as_everywhere_else(api: seeds.Api) -> None:
    client = api.app.test_client()
    for _ in range(5):
        assert log_in(client, password="wrong").status_code == 401
    answer = log_in(client)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/\t/evil", "x", "", "//["],
)
def test_after_the_login_one_stays_here(api: seeds.Api, path: str) -> None:
    assert log_in(api.app.test_client(), next=path).headers["Location"] == "/"


def test_a_session_without_a_valid_token_is_none(api: seeds.Api) -> None:
    client = api.app.test_client()
    for text in ("", "x", "x" * 3000, api.token("demo", None)):
        client.set_cookie(session.COOKIE, text)
        assert client.get("/").status_code in (303, 400)
    # a token in a header is the API's way, and makes no session: another site could not send one, a proxy might
    assert api.client_as("demo").get("/").status_code == 303


# --- Forms ----------------------------------------------------------------------------------------------------------


def test_a_form_of_nobody_or_of_another_session_does_nothing(api: seeds.Api, scene: scenes.Scene) -> None:
    mine, admins = Visitor(api, "demo"), Visitor(api, "admin")
    page = admins.get("/instances")
    foreign = next(field["value"] for field in page.all("input") if field.get("name") == "csrf")
    for path in (
        f"/instances/{scene.web}/stop",
        f"/instances/{scene.web}/delete",
        f"/instances/{scene.web}/console",
        f"/jobs/{scene.going}/cancel",
        "/logout",
    ):
        for data in ({}, {"csrf": ""}, {"csrf": "x"}, {"csrf": foreign}, {"csrf": "ä"}):
            assert mine.client.post(path, data=data).status_code == 403, path
    assert mine.client.get("/").status_code == 200
    with api.engine.connect() as connection:
        rows = connection.execute(sa.select(tables.instance.c.task_state).where(tables.instance.c.uuid == scene.web))
        assert rows.scalar_one() is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused_also_for_the_login(api: seeds.Api, headers: dict[str, str]) -> None:
    client = api.app.test_client()
    data = {"user": "demo", "password": seeds.password("demo")}
    assert client.post("/login", data=data, headers=headers).status_code == 403
    same = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/login", data=data, headers=same).status_code == 303
