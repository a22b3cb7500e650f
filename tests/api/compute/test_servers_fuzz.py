# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bodies and queries of any shape: whatever comes is answered, and never with a fault of ours."""

from __future__ import annotations

import os
import typing as t

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from api.openstack.compute.servers import queries as query_servers
from api.openstack.compute.servers import routes_actions
from api.openstack.compute.servers import schemas as schemas_servers
from tests.api import seeds
from tests.support.examples import part_of

SERVERS = "/compute/v2.1/servers"
EXAMPLES = int(os.environ.get("NOVALITE_FUZZ_EXAMPLES", part_of(60)))

HOSTILE = st.sampled_from(
    [
        "",
        " ",
        "\x00",
        "\ud800",
        "a" * 300,
        "../..",
        "{{ 1 }}",
        "%s",
        "-1",
        "0",
        "1e999",
        "²",
        "None",
        "10.20.0.5",
        "hv1",
        "default",
        "test",
        "auto",
        "none",
        seeds.IMAGE_ID,
        "2",
        "nova:hv1",
        "fd00::1",
        "Zm9v",
        "nova",
        "x" * 64,
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    HOSTILE,
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | HOSTILE, inner, max_size=3),
    max_leaves=8,
)
VERSIONS = st.sampled_from(["2.1", "2.19", "2.37", "2.52", "2.74", "2.96"])
FIELDS = [*schemas_servers.create((2, 96))["properties"]["server"]["properties"], "personality"]
NETWORK = st.dictionaries(st.sampled_from(["uuid", "port", "fixed_ip", "tag"]), SCALARS, max_size=2)
DEVICE = st.dictionaries(st.sampled_from(sorted(schemas_servers.BLOCK_DEVICE["properties"])), SCALARS, max_size=5)
HINTS = st.dictionaries(
    st.sampled_from(["group", "different_host", "same_host", "query", "build_near_host_ip", "cidr", "rank", "host"]),
    ANYTHING,
    max_size=2,
)
# few fields at a time: what is refused for one says nothing of the others
MORE = st.one_of(
    st.dictionaries(st.sampled_from(FIELDS), SCALARS, max_size=2),
    st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=2),
    st.fixed_dictionaries({"networks": st.lists(NETWORK, max_size=2)}),
    st.fixed_dictionaries({"block_device_mapping_v2": st.lists(DEVICE, max_size=2)}),
    st.fixed_dictionaries(
        {"personality": st.lists(st.fixed_dictionaries({"path": HOSTILE, "contents": HOSTILE}), max_size=2)}
    ),
    st.fixed_dictionaries({"security_groups": st.lists(st.fixed_dictionaries({"name": HOSTILE}), max_size=2)}),
    st.fixed_dictionaries({"metadata": st.dictionaries(HOSTILE, HOSTILE, max_size=2)}),
)


def at(version: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"compute {version}"}


fuzz = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def demo(api: seeds.Api) -> FlaskClient:
    return api.client_as("demo")


@pytest.fixture
def admin(api: seeds.Api) -> FlaskClient:
    for resource in ("instances", "cores", "ram"):  # else the first ten servers would be the only ones
        api.insert(tables.quota, project_id=api.projects["demo"], resource=resource, hard_limit=-1)
    return api.client_as("admin")


@fuzz
@given(name=st.text(max_size=8) | HOSTILE, more=MORE, hints=HINTS, version=VERSIONS)
def test_servers_asked_for_in_any_shape(
    admin: FlaskClient, name: str, more: dict[str, t.Any], hints: t.Any, version: str
) -> None:
    body = {"name": name, "flavorRef": "2", "imageRef": seeds.IMAGE_ID, **more}
    if version >= "2.37":
        body.setdefault("networks", "auto")
    answer = admin.post(SERVERS, json={"server": body, "os:scheduler_hints": hints}, headers=at(version))
    assert answer.status_code < 500, answer.get_json()
    listed = admin.get(f"{SERVERS}/detail", headers=at(version))
    assert listed.status_code == 200


@fuzz
@given(body=ANYTHING, version=VERSIONS)
def test_any_json_is_answered_by_every_route(api: seeds.Api, demo: FlaskClient, body: t.Any, version: str) -> None:
    server = api.instance("demo", f"s{os.urandom(4).hex()}", host="hv1")
    for verb, path in (
        ("post", ""),
        ("put", f"/{server}"),
        ("post", f"/{server}/metadata"),
        ("put", f"/{server}/metadata"),
        ("put", f"/{server}/metadata/a"),
        ("put", f"/{server}/tags"),
        ("post", f"/{server}/action"),
        ("post", f"/{server}/os-interface"),
        ("post", f"/{server}/remote-consoles"),
    ):
        for sent in (body, {"server": body}, {"metadata": body}, {"meta": body}, {"tags": body}):
            answer = getattr(demo, verb)(f"{SERVERS}{path}", json=sent, headers=at(version))
            assert answer.status_code < 500, (verb, path, sent)


@fuzz
@given(name=st.sampled_from(sorted(routes_actions.ACTIONS)), value=ANYTHING, version=VERSIONS)
def test_actions_in_any_shape(api: seeds.Api, admin: FlaskClient, name: str, value: t.Any, version: str) -> None:
    server = api.instance("demo", f"s{os.urandom(4).hex()}", host="hv1")
    answer = admin.post(f"{SERVERS}/{server}/action", json={name: value}, headers=at(version))
    assert answer.status_code < 500, (name, value)


QUERIES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *sorted(server_listing.EQUALS),
                *query_servers._TAG_FILTERS,
                "name",
                "status",
                "flavor",
                "image",
                "ip",
                "ip6",
                "limit",
                "marker",
                "sort_key",
                "sort_dir",
                "changes-since",
                "changes-before",
                "deleted",
                "all_tenants",
            ]
        ),
        st.text(max_size=12) | HOSTILE | st.sampled_from(["(a*)*b", "[", "uuid", "asc", "2020-01-01T00:00:00Z", "1"]),
    ),
    max_size=4,
)


@fuzz
@given(query=QUERIES, version=VERSIONS)
def test_queries_of_any_kind(admin: FlaskClient, query: list[tuple[str, str]], version: str) -> None:
    fit = [(name, value.encode("utf-8", "replace").decode()) for name, value in query]
    answer = admin.get(f"{SERVERS}/detail", query_string=fit, headers=at(version))
    assert answer.status_code < 500, query


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"\xff", b'{"a":' * 5000, b"NaN", b'{"server": NaN}', b"null", b'""']
)
def test_what_is_no_json_is_a_bad_request(demo: FlaskClient, data: bytes) -> None:
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded"):
        assert demo.post(SERVERS, data=data, content_type=kind).status_code == 400
