# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Dashboards that run in a browser: which pages may ask (NOVALITE_API_CORS_ORIGINS), as browsers are told."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from api.settings import Settings
from tests.api import conftest
from tests.api.seeds import Api

ORIGIN = "https://skyline.example.org"
ASKS = {"Origin": ORIGIN, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "x-auth-token"}
ALLOWED = "Access-Control-Allow-Origin"


@pytest.fixture
def shared(seeded: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[Api]:
    with conftest.application(seeded, tmp_path / "cloud", api_cors_origins=f"{ORIGIN}, http://localhost:9999") as api:
        yield api


def test_pages_of_these_origins_may_ask_every_route_but_the_status_pages(shared: Api) -> None:
    nobody = shared.client_as(None)
    asked = 0
    for rule in shared.app.url_map.iter_rules():
        path = rule.rule.replace("<", "").replace(">", "")
        answer = nobody.options(path, headers=ASKS)
        service = path.split("/")[1]
        if service in ("identity", "compute", "image", "network", "volume", "v1"):
            assert (answer.status_code, answer.headers[ALLOWED]) == (204, ORIGIN), path
            assert "X-Auth-Token" in answer.headers["Access-Control-Allow-Headers"]
            asked += 1
        else:
            assert ALLOWED not in answer.headers, path
        assert "Access-Control-Allow-Credentials" not in answer.headers
    assert asked > 300


def test_answers_may_be_read_also_when_they_are_errors(shared: Api) -> None:
    headers = {"Origin": ORIGIN}
    for client, status in ((shared.client_as("demo"), 200), (shared.client_as(None), 401)):
        answer = client.get("/compute/v2.1/servers", headers=headers)
        assert (answer.status_code, answer.headers[ALLOWED]) == (status, ORIGIN)
        assert "X-Subject-Token" in answer.headers["Access-Control-Expose-Headers"]
        assert "Origin" in answer.headers["Vary"]
    assert shared.client_as("demo").get("/network/v2.0/nosuch", headers=headers).headers[ALLOWED] == ORIGIN


@pytest.mark.parametrize(
    "origin", ["https://other.example.org", f"{ORIGIN}.evil.example", "http://skyline.example.org", "null", ""]
)
def test_pages_of_other_origins_may_not(shared: Api, origin: str) -> None:
    for answer in (
        shared.client_as(None).options("/compute/v2.1/servers", headers={**ASKS, "Origin": origin}),
        shared.client_as("demo").get("/compute/v2.1/servers", headers={"Origin": origin}),
    ):
        assert ALLOWED not in answer.headers


def test_nobody_may_unless_the_operator_says_so(api: Api) -> None:
    assert ALLOWED not in api.client_as("demo").get("/compute/v2.1/servers", headers={"Origin": ORIGIN}).headers
    assert ALLOWED not in api.client_as(None).options("/compute/v2.1/servers", headers=ASKS).headers


@pytest.mark.parametrize(
    "text", ["skyline.example.org", "https://skyline.example.org/", "https://a b", "ftp://a.example"]
)
def test_what_is_not_an_origin_is_refused(text: str) -> None:
    with pytest.raises(NovaliteError, match="is not an origin: write https://host"):
        Settings(api_cors_origins=f"{ORIGIN},{text}").check()
    Settings(api_cors_origins=f"{ORIGIN},*").check()
