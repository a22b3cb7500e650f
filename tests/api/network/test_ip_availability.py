# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many of a network's addresses are taken, as administrators ask the Network API."""

from __future__ import annotations

from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.network.test_tenant_networks import network, pool, port, subnet

PATH = "/network-ip-availabilities"


def test_addresses_of_networks_are_counted(cloud: Cloud, doors: Doors) -> None:
    of, other, public = network(doors), network(doors, name="empty"), pool(cloud)
    four = subnet(doors, of, allocation_pools=[{"start": "10.50.0.10", "end": "10.50.0.19"}])
    six = subnet(doors, of, "fd00:5::/64")
    port(doors, of, fixed_ips=[{"subnet_id": four["id"]}])
    doors.member.post("/floatingips", {"floatingip": {"floating_network_id": public}}, 201)
    for asker in (doors.member, doors.reader):
        asker.get(PATH, 403)
        asker.get(f"{PATH}/{of['id']}", 403)
    rows = {row["network_id"]: row for row in doors.admin.get(PATH)["network_ip_availabilities"]}
    (used_four,) = (row for row in rows[of["id"]]["subnet_ip_availability"] if row["ip_version"] == 4)
    assert used_four == {
        "subnet_id": four["id"],
        "subnet_name": "",
        "cidr": "10.50.0.0/24",
        "ip_version": 4,
        "total_ips": 10,
        "used_ips": 1,
    }
    assert rows[of["id"]]["network_name"] == "web" and rows[of["id"]]["project_id"] == doors.project
    assert rows[of["id"]]["total_ips"] > 1 << 60
    assert (rows[other["id"]]["total_ips"], rows[other["id"]]["subnet_ip_availability"]) == (0, [])
    assert rows[public]["used_ips"] == 1
    assert doors.admin.get(f"{PATH}/{of['id']}")["network_ip_availability"] == rows[of["id"]]
    (named,) = doors.admin.get(f"{PATH}?network_name=web&ip_version=6")["network_ip_availabilities"]
    assert [row["subnet_id"] for row in named["subnet_ip_availability"]] == [six["id"]]
    doors.admin.get(f"{PATH}/{four['id']}", 404)
