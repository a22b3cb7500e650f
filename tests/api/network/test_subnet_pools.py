# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnet pools, address scopes, and subnets that are drawn from pools."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api.conftest import Cloud
from tests.api.doors import Doors, User
from tests.api.network.test_tenant_networks import Body, error_of, network

EIGHT = ["10.0.0.0/8"]


def make_pool(asker: User, prefixes: t.Sequence[str] = ("10.8.0.0/16",), **values: t.Any) -> Body:
    body = {"subnetpool": {"name": "p", "prefixes": list(prefixes), **values}}
    return t.cast("Body", asker.post("/subnetpools", body, 201)["subnetpool"])


def draw(doors: Doors, status: t.Any = 201, **values: t.Any) -> t.Any:
    of = network(doors)
    body = doors.member.post("/subnets", {"subnet": {"network_id": of["id"], "ip_version": 4, **values}}, status)
    return body["subnet"] if status == 201 else body


def test_a_pool_is_made_changed_and_removed(doors: Doors) -> None:
    pool = make_pool(doors.member, ["10.8.1.0/24", "10.8.0.0/24"], description="d", default_prefixlen=26)
    shown = {key: pool[key] for key in ("prefixes", "min_prefixlen", "default_prefixlen", "max_prefixlen")}
    assert shown == {
        "prefixes": ["10.8.0.0/23"],
        "min_prefixlen": "8",
        "default_prefixlen": "26",
        "max_prefixlen": "32",
    }
    assert (pool["ip_version"], pool["shared"], pool["is_default"], pool["project_id"]) == (
        4,
        False,
        False,
        doors.project,
    )
    path = f"/subnetpools/{pool['id']}"
    change = {"name": "q", "description": "", "prefixes": ["10.8.0.0/16"], "min_prefixlen": "20", "default_quota": 512}
    after = doors.member.put(path, {"subnetpool": change})["subnetpool"]
    assert (after["name"], after["prefixes"], after["min_prefixlen"]) == ("q", ["10.8.0.0/16"], "20")
    assert doors.member.get("/subnetpools?name=q")["subnetpools"] == [after]
    assert doors.member.get("/subnetpools?name=p")["subnetpools"] == []
    for bad in ({"prefixes": ["10.8.0.0/24"]}, {"prefixes": ["fd00::/48"]}, {"min_prefixlen": 27}, {"shared": True}):
        doors.member.put(path, {"subnetpool": bad}, 400)
    for asker, status in ((doors.stranger, 404), (doors.reader, 403)):
        asker.put(path, {"subnetpool": {"name": "x"}}, status)
        asker.delete(path, status)
    doors.stranger.get(path, 404)
    doors.member.delete(path, 204)
    doors.member.get(path, 404)


@pytest.mark.parametrize(
    "wrong",
    [
        {"prefixes": []},
        {"prefixes": ["10.8.0.0/16", "fd00::/48"]},
        {"prefixes": ["10.8.0.0"]},
        {"prefixes": ["nonsense"]},
        {"min_prefixlen": 33},
        {"max_prefixlen": 0},
        {"min_prefixlen": 24, "default_prefixlen": 20},
        {"default_quota": -1},
    ],
)
def test_pools_that_cannot_be(doors: Doors, wrong: Body) -> None:
    doors.member.post("/subnetpools", {"subnetpool": {"name": "p", "prefixes": ["10.8.0.0/16"], **wrong}}, 400)


def test_pools_have_a_quota(cloud: Cloud, doors: Doors) -> None:
    cloud.insert(tables.quota, project_id=doors.project, resource="subnet_pools", hard_limit=1)
    make_pool(doors.member)
    body = {"subnetpool": {"name": "p", "prefixes": EIGHT}}
    assert error_of(doors.member.post("/subnetpools", body, 409)) == "OverQuota"
    details = doors.member.get(f"/quotas/{doors.project}/details")["quota"]
    assert details["subnetpool"] == {"limit": 1, "used": 1, "reserved": 0}


def test_administrators_share_pools_and_name_the_default(doors: Doors) -> None:
    for attribute in ("shared", "is_default"):
        body = {"subnetpool": {"name": "p", "prefixes": EIGHT, attribute: True}}
        assert error_of(doors.member.post("/subnetpools", body, 403)) == "PolicyNotAuthorized"
    assert "No default subnetpool" in str(draw(doors, 400, use_default_subnetpool=True))
    pool = make_pool(doors.admin, ["10.8.0.0/16"], shared=True, is_default=True, default_prefixlen=24)
    assert "is the default" in str(
        doors.admin.post("/subnetpools", {"subnetpool": {"name": "p", "prefixes": EIGHT, "is_default": True}}, 400)
    )
    make_pool(doors.admin, ["fd00:8::/48"], is_default=True)  # of the other family
    assert doors.stranger.get(f"/subnetpools/{pool['id']}")["subnetpool"]["shared"]
    doors.stranger.put(f"/subnetpools/{pool['id']}", {"subnetpool": {"name": "x"}}, 403)
    doors.stranger.delete(f"/subnetpools/{pool['id']}", 403)
    drawn = draw(doors, use_default_subnetpool=True)
    assert (drawn["cidr"], drawn["subnetpool_id"]) == ("10.8.0.0/24", pool["id"])
    draw(doors, 400, use_default_subnetpool=True, subnetpool_id=pool["id"])


def test_subnets_get_their_range_of_a_pool(doors: Doors) -> None:
    pool = make_pool(doors.member, ["10.8.0.0/20"], min_prefixlen=22, default_prefixlen=24, max_prefixlen=28)
    of_pool = {"subnetpool_id": pool["id"]}
    first, second = draw(doors, **of_pool), draw(doors, prefixlen=22, **of_pool)
    assert (first["cidr"], first["gateway_ip"]) == ("10.8.0.0/24", "10.8.0.1")
    assert (second["cidr"], second["subnetpool_id"]) == ("10.8.4.0/22", pool["id"])
    assert draw(doors, cidr="10.8.15.0/24", **of_pool)["cidr"] == "10.8.15.0/24"
    for wrong, status in (
        ({"cidr": "10.8.15.128/25"}, 409),  # somebody has it
        ({"cidr": "10.9.0.0/24"}, 409),  # outside
        ({"prefixlen": 21}, 400),
        ({"prefixlen": 29}, 400),
        ({"cidr": "10.8.1.0/24", "prefixlen": 24}, 400),
        ({"ip_version": 6}, 400),
        ({"allocation_pools": [{"start": "10.8.1.2", "end": "10.8.1.3"}]}, 400),
    ):
        draw(doors, status, **{**of_pool, **wrong})
    draw(doors, 404, subnetpool_id=doors.project[:8] + "-0000-0000-0000-000000000000")
    draw(doors, 400)  # neither cidr nor pool
    # what is given back is free again
    assert doors.member.delete(f"/subnetpools/{pool['id']}", 400)["NeutronError"]["message"].endswith("allocations.")
    doors.member.delete(f"/subnets/{first['id']}", 204)
    assert draw(doors, cidr=first["cidr"], **of_pool)["cidr"] == first["cidr"]


def test_a_pool_without_room_says_so(doors: Doors) -> None:
    pool = make_pool(doors.member, ["10.8.0.0/23"], default_prefixlen=24)
    for cidr in ("10.8.0.0/24", "10.8.1.0/24"):
        assert draw(doors, subnetpool_id=pool["id"])["cidr"] == cidr
    assert "Insufficient prefix space" in str(draw(doors, 409, subnetpool_id=pool["id"]))


def test_the_quota_of_a_pool_holds_for_each_project(doors: Doors) -> None:
    pool = make_pool(doors.member, ["10.8.0.0/16"], default_prefixlen=25, default_quota=200)
    assert draw(doors, subnetpool_id=pool["id"])["cidr"] == "10.8.0.0/25"
    assert error_of(draw(doors, 409, subnetpool_id=pool["id"])) == "OverQuota"
    assert draw(doors, subnetpool_id=pool["id"], prefixlen=26)["cidr"] == "10.8.0.128/26"


def test_ipv6_is_drawn_in_64s(doors: Doors) -> None:
    pool = make_pool(doors.member, ["fd00:8::/48"], default_quota=1)
    modes = dict.fromkeys(("ipv6_ra_mode", "ipv6_address_mode"), "slaac")
    assert draw(doors, ip_version=6, subnetpool_id=pool["id"], **modes)["cidr"] == "fd00:8::/64"
    assert error_of(draw(doors, 409, ip_version=6, subnetpool_id=pool["id"])) == "OverQuota"


def test_pools_of_an_address_scope_have_no_prefix_in_common(doors: Doors) -> None:
    body = {"address_scope": {"name": "s", "ip_version": 4}}
    scope = doors.member.post("/address-scopes", body, 201)["address_scope"]
    assert scope == {**scope, "name": "s", "ip_version": 4, "shared": False, "project_id": doors.project}
    pool = make_pool(doors.member, ["10.8.0.0/16"], address_scope_id=scope["id"], default_prefixlen=24)
    overlapping = {"name": "q", "prefixes": ["10.8.7.0/24"]}
    doors.member.post("/subnetpools", {"subnetpool": {**overlapping, "address_scope_id": scope["id"]}}, 409)
    outside = make_pool(doors.member, **overlapping)  # in no scope it may
    doors.member.put(f"/subnetpools/{outside['id']}", {"subnetpool": {"address_scope_id": scope["id"]}}, 409)
    six = {"name": "q", "prefixes": ["fd00::/48"], "address_scope_id": scope["id"]}
    doors.member.post("/subnetpools", {"subnetpool": six}, 400)
    doors.stranger.post("/subnetpools", {"subnetpool": {**overlapping, "address_scope_id": scope["id"]}}, 400)
    of = network(doors)
    drawn = {"network_id": of["id"], "ip_version": 4, "subnetpool_id": pool["id"]}
    doors.member.post("/subnets", {"subnet": drawn}, 201)
    shown = doors.member.get(f"/networks/{of['id']}")["network"]
    assert (shown["ipv4_address_scope"], shown["ipv6_address_scope"]) == (scope["id"], None)
    path = f"/address-scopes/{scope['id']}"
    assert error_of(doors.member.delete(path, 409)) == "AddressScopeInUse"
    doors.member.put(f"/subnetpools/{pool['id']}", {"subnetpool": {"address_scope_id": None}})
    assert doors.member.put(path, {"address_scope": {"name": "t"}})["address_scope"]["name"] == "t"
    doors.stranger.get(path, 404)
    doors.stranger.delete(path, 404)
    doors.member.put(path, {"address_scope": {"shared": True}}, 403)
    doors.admin.put(path, {"address_scope": {"shared": True}})
    doors.admin.put(path, {"address_scope": {"shared": False}}, 400)
    doors.stranger.delete(path, 403)
    doors.member.delete(path, 204)


def test_pools_can_have_tags(doors: Doors) -> None:
    pool = make_pool(doors.member)
    doors.member.put(f"/subnetpools/{pool['id']}/tags", {"tags": ["a"]})
    assert doors.member.get("/subnetpools?tags=a")["subnetpools"][0]["tags"] == ["a"]
