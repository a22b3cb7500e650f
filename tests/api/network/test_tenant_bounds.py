# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bounds of what a project chooses for its networks, and of what refusals tell it."""

from __future__ import annotations

import dataclasses

import pytest

from tests.api.doors import Doors
from tests.api.network.test_tenant_networks import error_of, network, subnet


@pytest.mark.parametrize(
    ("carrier", "most"), [("vxlan", 1450), ("vlan:eth1", 1500), ("flat_dhcp", 1500)], ids=["vxlan", "vlan", "flat"]
)
def test_a_project_names_an_mtu_that_hosts_have(doors: Doors, carrier: str, most: int) -> None:
    settings = doors.app.extensions["settings"]
    doors.app.extensions["settings"] = dataclasses.replace(settings, tenant_networks=carrier)
    for mtu in (1, 575, most + 1, 65535):
        refused = doors.member.post("/networks", {"network": {"name": "n", "mtu": mtu}}, 400)
        assert error_of(refused) == "InvalidInput" and str(mtu) in refused["NeutronError"]["message"]
    for mtu in (576, 1280, most):
        assert network(doors, mtu=mtu)["mtu"] == mtu
    assert network(doors, mtu=0)["mtu"] == most  # as without one
    made = doors.admin.post("/networks", {"network": {"name": "jumbo", "mtu": 9000}}, 201)["network"]  # the operator's
    assert made["mtu"] == 9000
    doors.admin.post("/networks", {"network": {"name": "tiny", "mtu": 575}}, 400)


def test_ipv6_needs_an_mtu_of_its_own(doors: Doors) -> None:
    of = network(doors, mtu=1279)
    subnet(doors, of)
    body = {"subnet": {"network_id": of["id"], "ip_version": 6, "cidr": "fd00:5::/64"}}
    assert "1279" in doors.member.post("/subnets", body, 400)["NeutronError"]["message"]
    subnet(doors, network(doors, mtu=1280), "fd00:5::/64")


def test_refusals_tell_nobody_of_others(doors: Doors) -> None:
    settings = doors.app.extensions["settings"]
    doors.app.extensions["settings"] = dataclasses.replace(settings, tenant_networks="vlan:eth1")
    theirs = doors.stranger.post("/networks", {"network": {"name": "payroll"}}, 201)["network"]
    body = {"subnet": {"network_id": theirs["id"], "ip_version": 4, "cidr": "10.66.0.0/24"}}
    doors.stranger.post("/subnets", body, 201)
    mine, other = network(doors), network(doors, name="own")
    subnet(doors, other, "10.67.0.0/24")
    for user, cidr, named in (
        (doors.member, "10.66.0.0/16", None),
        (doors.admin, "10.66.0.0/16", "'payroll'"),
        (doors.member, "10.67.0.0/16", "'own'"),
    ):
        body = {"subnet": {"network_id": mine["id"], "ip_version": 4, "cidr": cidr}}
        message = user.post("/subnets", body, 409)["NeutronError"]["message"]
        assert cidr in message and (named or "another project") in message
        assert ("payroll" in message, "10.66.0.0/24" in message) == (named == "'payroll'",) * 2

    scope = {"address_scope": {"name": "s", "ip_version": 4, "shared": True}}
    number = doors.admin.post("/address-scopes", scope, 201)["address_scope"]["id"]
    made = {"name": "p", "prefixes": ["10.66.0.0/16"], "address_scope_id": number}
    secret = doors.stranger.post("/subnetpools", {"subnetpool": made}, 201)["subnetpool"]["id"]
    wish = {"subnetpool": {**made, "prefixes": ["10.0.0.0/8"]}}
    empty = {"subnetpool": {**made, "prefixes": ["172.16.0.0/16"]}}
    own = doors.member.post("/subnetpools", empty, 201)["subnetpool"]["id"]
    more = {"subnetpool": {"prefixes": ["172.16.0.0/16", "10.0.0.0/8"]}}
    for user, tells in ((doors.member, False), (doors.admin, True)):
        for answer in (user.post("/subnetpools", wish, 409), user.put(f"/subnetpools/{own}", more, 409)):
            message = answer["NeutronError"]["message"]
            assert (secret in message) is tells and "10.66" not in message
