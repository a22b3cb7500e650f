# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ids in upper case, as Neutron's usual database takes them: each method of a thing finds it, or none does."""

from __future__ import annotations

import pytest

from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.network.test_tenant_networks import network, pool, subnet

KINDS = {
    "networks": "network",
    "subnets": "subnet",
    "ports": "port",
    "routers": "router",
    "security-groups": "security_group",
    "floatingips": "floatingip",
    "subnetpools": "subnetpool",
    "address-scopes": "address_scope",
}


@pytest.mark.parametrize("plural", KINDS)
def test_an_id_in_upper_case_is_that_of_the_same(cloud: Cloud, doors: Doors, plural: str) -> None:
    name, of, outside = KINDS[plural], network(doors), pool(cloud)
    bodies = {
        "subnets": {"network_id": of["id"], "ip_version": 4, "cidr": "10.51.0.0/24"},
        "ports": {"network_id": of["id"]},
        "floatingips": {"floating_network_id": outside},
        "subnetpools": {"name": "x", "prefixes": ["10.60.0.0/16"]},
        "address-scopes": {"name": "x", "ip_version": 4},
    }
    subnet(doors, of)
    made = doors.member.post(f"/{plural}", {name: bodies.get(plural, {"name": "x"})}, 201)[name]
    path = f"/{plural}/{made['id'].upper()}"
    changed = {"name": "y"} if plural != "floatingips" else {"description": "y"}
    assert doors.member.get(path)[name]["id"] == made["id"]
    assert doors.member.put(path, {name: changed})[name]["id"] == made["id"]
    doors.member.delete(path, 204)
    doors.member.get(path, 404)
