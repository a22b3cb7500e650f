# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The OpenAPI document has what the application has."""

from __future__ import annotations

import re

import jsonschema

from api import policy
from api.native import openapi
from tests.api import seeds


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
    for one in openapi.OPERATIONS:
        told = openapi.document()["paths"][f"/v1{one.path}"][one.method.lower()]
        if policy.POLICY[one.action] == "public":
            assert told["security"] == []
        else:
            assert f"Role: {policy.POLICY[one.action]}." in told["description"]
