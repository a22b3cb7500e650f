# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The OpenAPI document has what the application has, and answers are what it says, whatever is sent.

NOVALITE_FUZZ_EXAMPLES says how many requests schemathesis makes up for each operation (default: 2, of a plan 20), with
--thorough beside those that it makes of every schema's edges (default then: 3).
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import threading
import typing as t

import jsonschema
import pytest
from werkzeug.serving import WSGIRequestHandler, make_server

from api.v1 import openapi, streams
from api.web import policy
from tests.api import scenes, seeds

EXAMPLES = os.environ.get("NOVALITE_FUZZ_EXAMPLES")


def test_the_document_has_every_route_and_no_other(api: seeds.Api) -> None:
    routes = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method)
        for rule in api.app.url_map.iter_rules()
        if rule.rule.startswith("/v1/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    document = openapi.document()
    assert {(path, method.upper()) for path, item in document["paths"].items() for method in item} == routes
    for item in document["paths"].values():
        for operation in item.values():
            assert operation["summary"] and operation["responses"]


def test_it_is_served_to_anybody(api: seeds.Api) -> None:
    answer = api.client_as(None).get("/v1/openapi.json")
    assert (answer.status_code, answer.get_json()) == (200, openapi.document())


def test_every_schema_is_one_and_every_reference_leads_to_one() -> None:
    document = openapi.document()
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    named = set(re.findall(r"'#/components/schemas/(\w+)'", repr(document)))
    assert named <= set(document["components"]["schemas"])


def test_each_operation_says_which_role_it_takes() -> None:
    for operation in openapi.OPERATIONS:
        operation_document = openapi.document()["paths"][f"/v1{operation.path}"][operation.method.lower()]
        if policy.POLICY[operation.action] == "public":
            assert operation_document["security"] == []
        else:
            assert f"Role: {policy.POLICY[operation.action]}." in operation_document["description"]


class Quiet(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Thousands of lines would hide the one that failed."""


@contextlib.contextmanager
def served(api: seeds.Api) -> t.Iterator[str]:
    server = make_server("127.0.0.1", 0, api.app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("user", ["demo", "admin"])
def test_answers_are_what_the_document_says(
    api: seeds.Api, user: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, pytestconfig: pytest.Config
) -> None:
    """No 5xx; no status, content type, header or body that the document has not; no wrong request that is taken."""
    monkeypatch.setattr(streams, "LONGEST", 0.0)
    scenes.build(api)
    thorough = pytestconfig.getoption("--thorough")
    examples = EXAMPLES or ("3" if thorough else "2")
    # it looks up what is named, and a name that a schema allows may be a flavor's, or nobody's
    of_plan = ["--include-path", "/v1/plan", "--exclude-checks", "positive_data_acceptance"]
    runs = [
        ["--phases", "fuzzing", "--max-examples", examples, "--exclude-path", "/v1/plan"],
        ["--phases", "fuzzing", "--max-examples", "20" if user == "demo" else examples, *of_plan],
    ]
    if thorough and user == "demo":
        runs += [["--phases", "coverage", *of_plan], ["--phases", "coverage", "--exclude-path", "/v1/plan"]]
    with served(api) as url:
        for more in runs:
            command = [
                sys.executable,
                "-m",
                "schemathesis.cli",
                "run",
                f"{url}/v1/openapi.json",
                "--checks",
                "all",
                "--header",
                f"X-Auth-Token: {api.token(user)}",
                "--seed",
                "1",
                "--generation-database",
                "none",
                # it is refused wherever it comes, which no schema says of every text
                "--generation-allow-x00",
                "false",
                "--no-color",
                *more,
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
            assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
