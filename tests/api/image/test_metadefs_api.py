# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Metadata definitions, versions and errors as glanceclient reads them."""

from __future__ import annotations

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api.conftest import Cloud
from tests.api.doors import Doors


@pytest.fixture
def base() -> str:
    return "/image/v2"


@pytest.mark.parametrize("accept", ["*/*", None, "text/html"])
def test_errors_are_html_unless_json_is_asked_for(doors: Doors, accept: str | None) -> None:
    """glanceclient asks for anything, reads HTML, and breaks on the JSON that Glance has for those who ask for it."""
    headers = {"X-Auth-Token": doors.member.token, **({} if accept is None else {"Accept": accept})}
    answer = doors.client.get("/image/v2/images/<b>no", headers=headers)
    assert (answer.status_code, answer.mimetype) == (404, "text/html")
    text = answer.get_data(as_text=True)
    assert "<title>404 Not Found</title>" in text and "No image found with ID &lt;b&gt;no<br />" in text
    unknown = doors.client.get("/image/v2/images", headers={"Accept": "*/*"})
    assert (unknown.status_code, unknown.mimetype) == (401, "text/html")
    assert doors.member.get("/images/no", 404)["message"] == "No image found with ID no"


def test_versions_at_both_of_glances_paths(doors: Doors) -> None:
    root, versions = doors.client.get("/image/"), doors.client.get("/image/versions")
    assert (root.status_code, versions.status_code) == (300, 200)
    assert root.get_json() == versions.get_json()


def test_there_are_no_metadata_definitions(doors: Doors) -> None:
    assert doors.reader.get("/metadefs/namespaces")["namespaces"] == []
    assert doors.reader.get("/metadefs/resource_types") == {"resource_types": []}
    for below in ("", "/objects", "/objects/a", "/properties/a", "/tags", "/resource_types"):
        answer = doors.reader.get(f"/metadefs/namespaces/OS::Compute{below}", 404)
        assert answer["message"] == "Metadata definition namespace=OS::Compute was not found."


@pytest.mark.parametrize("kind", ["namespace", "object", "property", "resource_type", "tag"])
def test_their_schemas(doors: Doors, kind: str) -> None:
    schema = doors.reader.get(f"/schemas/metadefs/{kind}")
    named = {"resource_type": "resource_type_association"}.get(kind, kind)  # Glance's name differs from its path
    assert schema["name"] == named and {"name", "namespace"} & schema["properties"].keys()
    plural = {"property": "properties"}
    listing = doors.reader.get(f"/schemas/metadefs/{plural.get(kind, f'{kind}s')}")
    assert listing["name"] == plural.get(named, f"{named}s")
    (items,) = [part for part in listing["properties"].values() if "items" in part]
    assert items["items"] == schema
    doors.reader.get("/schemas/metadefs/nosuch", 404)


def test_usage_of_the_quota(cloud: Cloud, doors: Doors) -> None:
    cloud.insert(tables.quota, project_id=doors.project, resource="image_size_total", hard_limit=10)
    assert doors.reader.get("/info/usage") == {"usage": {"image_size_total": {"usage": 0, "limit": 10}}}
