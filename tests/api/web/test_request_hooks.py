# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hooks that every request goes through: ids, bounds, and errors in the words of the service asked."""

from __future__ import annotations

import logging
import re
import sys
import typing as t

import pytest
from flask.testing import FlaskClient

from api.web import logs
from tests.api.seeds import Api

ClientAs = t.Callable[..., FlaskClient]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/identity/v3/nosuch", {"error": {"code": 404, "title": "Not Found", "message": "Not Found"}}),
        ("/compute/v2.1/nosuch", {"itemNotFound": {"code": 404, "message": "The resource could not be found."}}),
        ("/volume/v3/nosuch/no/such", {"itemNotFound": {"code": 404, "message": "The resource could not be found."}}),
        ("/network/v2.0/nosuch", {"NeutronError": {"type": "HTTPNotFound", "message": "Not Found", "detail": ""}}),
        ("/image/v2/nosuch", {"code": 404, "title": "Not Found", "message": "Not Found"}),
        ("/nosuch", {"error": {"code": 404, "message": "Not Found"}}),
    ],
)
def test_an_unknown_path_is_answered_in_the_dialect_of_its_service(
    client_as: ClientAs, path: str, body: dict[str, t.Any]
) -> None:
    answer = client_as("demo").get(path)
    assert (answer.status_code, answer.get_json()) == (404, body)
    assert client_as("demo").head(path).status_code == 404


def test_every_answer_names_its_request(client_as: ClientAs) -> None:
    client = client_as(None)
    mine = "req-00000000-1111-2222-3333-444444444444"
    for path in ("/healthz", "/nosuch", "/compute/v2.1/nosuch"):
        answer = client.get(path)
        assert re.fullmatch(r"req-[0-9a-f-]{36}", answer.headers["X-OpenStack-Request-Id"])
        asked = client.get(path, headers={"X-OpenStack-Request-ID": mine})
        assert asked.headers["X-OpenStack-Request-Id"] == mine
    assert client.get("/compute/nosuch").headers["X-Compute-Request-Id"].startswith("req-")
    forged = client.get("/healthz", headers={"X-OpenStack-Request-ID": "req-1 status=200"})
    assert "status" not in forged.headers["X-OpenStack-Request-Id"]


@pytest.mark.parametrize("path", ["/compute/v2.1/%00", "/identity/v3/x?name=%00", "/healthz?" + "a" * 9000])
def test_what_cannot_be_stored_is_refused_at_the_door(client_as: ClientAs, path: str) -> None:
    assert client_as("demo").get(path).status_code == 400


def test_a_large_body_is_refused(api: Api) -> None:
    answer = api.client_as("demo").post("/identity/v3/auth/tokens", data=b"[" * (1 << 20) + b" ")
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("who", "method", "path", "mimetype", "body"),
    [
        (None, "POST", "/identity/v3/auth/tokens", "application/json", '{"auth":%s}'),
        ("demo", "POST", "/compute/v2.1/servers", "application/json", '{"server":{"metadata":%s}}'),
        ("demo", "POST", "/v1/jobs", "application/json", '{"kind":"plan","variables":{"servers":%s}}'),
        ("demo", "POST", "/image/v2/images", "application/json", '{"name":"x","deep":%s}'),
        (
            "demo",
            "PATCH",
            "/image/v2/images/{image}",
            "application/openstack-images-v2.1-json-patch",
            '[{"op":"add","path":"/deep","value":%s}]',
        ),
        ("admin", "PUT", "/volume/v3/{project}/os-services/enable", "application/json", '{"host":%s}'),
    ],
    ids=["identity", "compute", "v1", "image", "image-patch", "volume"],
)
def test_nested_json_is_refused_and_fills_no_log(
    api: Api, caplog: pytest.LogCaptureFixture, who: str | None, method: str, path: str, mimetype: str, body: str
) -> None:
    client = api.client_as(who)
    image = api.client_as("demo").post("/image/v2/images", json={"name": "x"}).get_json()["id"]
    caplog.set_level(logging.INFO, "novalite.api")
    for opened, closed in (("[", "]"), ('{"a":', "}")):
        for depth in (40, 900, 100_000):
            caplog.clear()
            data = body % (opened * depth + "1" + closed * depth)
            path = path.format(image=image, project=api.projects["demo"])
            answer = client.open(path, method=method, data=data, content_type=mimetype)
            assert answer.status_code == 400, (opened, depth)
            assert len(answer.data) < 1000
            assert sum(len(logs.JsonFormatter().format(record)) for record in caplog.records) < 2000


def test_a_traceback_in_the_log_is_bounded() -> None:
    def dive(depth: int) -> None:
        (dive if depth % 2 else lambda left: dive(left - 1))(depth - 1)

    try:
        dive(10**6)
    except RecursionError:
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "unexpected error", (), sys.exc_info())
    line = logs.JsonFormatter().format(record)
    assert len(line) < 20_000
    assert line.rstrip('"}').endswith("RecursionError: maximum recursion depth exceeded")
