# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each caller has so many requests, at every door; what one takes, no other misses."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from werkzeug.test import TestResponse

from api.web.rates import Buckets
from tests.api import seeds
from tests.api.conftest import application

BURST = 5
# A path of each door, and where its words for "too many requests" are
DOORS = {
    "/identity/v3/auth/projects": ("error", "code"),
    "/compute/v2.1/servers": ("overLimit", "code"),
    "/volume/v3/{project}/volumes": ("overLimit", "code"),
    "/network/v2.0/networks": ("NeutronError", "message"),
    "/image/v2/images": ("code",),
    "/v1/jobs": ("detail",),
}


@pytest.fixture
def strict(seeded: pathlib.Path, tmp_path: pathlib.Path) -> t.Iterator[seeds.Api]:
    """The application with a few requests for each caller, and hardly one more as time goes by."""
    with application(
        seeded, tmp_path / "cloud", api_rate=1, api_burst=BURST, api_anonymous_rate=1, api_anonymous_burst=BURST
    ) as opened:
        yield opened


def refused(answer: TestResponse) -> None:
    assert answer.status_code == 429, answer.get_data(as_text=True)
    assert answer.headers["Retry-After"] == "1"


def until_refused(ask: t.Callable[[], TestResponse]) -> TestResponse:
    for _number in range(10 * BURST):
        answer = ask()
        if answer.status_code == 429:
            return answer
    raise AssertionError("it was never refused")


@pytest.mark.parametrize("path", DOORS)
def test_a_caller_that_asks_too_much_is_refused_in_the_words_of_the_door(strict: seeds.Api, path: str) -> None:
    client, where = strict.client_as("demo"), path.format(project=strict.projects["demo"])
    for _number in range(BURST):
        assert client.get(where).status_code == 200
    answer = until_refused(lambda: client.get(where))
    refused(answer)
    body = answer.get_json()
    for name in DOORS[path]:
        body = body[name]
    assert body == 429 or "Too many requests" in str(body)
    # another token is the same caller; others, and the caller elsewhere, have what is theirs
    refused(until_refused(lambda: strict.client_as("demo").get(where)))
    assert strict.client_as("reader").get(where).status_code == 200
    assert strict.client_as("alt").get(path.format(project=strict.projects["alt"])).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/compute/v2.1/servers", {}, 401),
        ("GET", "/compute/v2.1/servers", {"X-Auth-Token": "nosuch"}, 401),
        ("POST", "/identity/v3/auth/tokens", {"X-Auth-Token": "nosuch"}, 400),  # nobody looks at it
        ("GET", "/ec2?Action=DescribeInstances&AWSAccessKeyId=nosuch", {}, 401),
        ("GET", "/", {"Cookie": "novalite_session=nosuch"}, 303),
        ("GET", "/login", {}, 200),
        ("GET", "/nosuch", {}, 404),
    ],
)
def test_nobody_is_counted_by_the_address(
    strict: seeds.Api, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    def ask(address: str) -> TestResponse:
        return strict.app.test_client().open(
            path, method=method, headers=headers, environ_base={"REMOTE_ADDR": address}
        )

    assert ask("192.0.2.1").status_code == status
    refused(until_refused(lambda: ask("192.0.2.1")))
    assert ask("192.0.2.2").status_code == status
    known = strict.client_as("demo").get("/compute/v2.1/servers", environ_base={"REMOTE_ADDR": "192.0.2.1"})
    assert known.status_code == 200
    assert strict.app.test_client().get("/healthz", environ_base={"REMOTE_ADDR": "192.0.2.1"}).status_code == 200


def test_a_bucket_fills_up_again_and_never_over() -> None:
    buckets = Buckets(rate=2, burst=3)
    assert [buckets.take("a", 10) for _number in range(4)] == [0, 0, 0, 0.5]
    assert buckets.take("b", 10) == 0
    assert [buckets.take("a", 10.5), buckets.take("a", 10.5)] == [0, 0.5]
    assert [buckets.take("a", 1000) for _number in range(4)] == [0, 0, 0, 0.5]
