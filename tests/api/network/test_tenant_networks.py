# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects' objects in the Network API: networks, subnets, ports, routers, tags."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables, tables_addresses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tasks.records import floating_pool
from tests.api.conftest import Cloud
from tests.api.doors import Doors

Body = dict[str, t.Any]


def error_of(body: t.Any) -> str:
    return str(body["NeutronError"]["type"])


def network(doors: Doors, **values: t.Any) -> Body:
    body = {"network": {"name": "web", **values}}
    return t.cast("Body", doors.member.post("/networks", body, 201)["network"])


def subnet(doors: Doors, of: Body, cidr: str = "10.50.0.0/24", **values: t.Any) -> Body:
    subnet_body = {"network_id": of["id"], "ip_version": 6 if ":" in cidr else 4, "cidr": cidr, **values}
    return t.cast("Body", doors.member.post("/subnets", {"subnet": subnet_body}, 201)["subnet"])


def port(doors: Doors, of: Body, **values: t.Any) -> Body:
    return t.cast("Body", doors.member.post("/ports", {"port": {"network_id": of["id"], **values}}, 201)["port"])


def pool(cloud: Cloud) -> str:
    item = {"name": "public", "cidr": "203.0.113.0/28", "addresses": None, "interface": "eth0"}
    with transaction(cloud.engine) as connection:
        floating_pool(connection, {"floating_pools": [item], "state": "present"})
    return tables_addresses.pool_network_id("public")


# --- Networks and subnets -------------------------------------------------------------------------------------------


def test_a_network_comes_without_addresses_and_goes_again(cloud: Cloud, doors: Doors) -> None:
    first, second = network(doors, description="d"), network(doors)
    assert (first["name"], first["subnets"], first["description"], first["shared"]) == ("web", [], "d", False)
    assert first["mtu"] == 1450 and first["id"] != second["id"]
    rows = {row["uuid"]: row for row in doors.rows(tables.network)}
    assert rows[first["id"]]["name"] == "web" and rows[second["id"]]["name"] != "web"  # handles are unique
    assert rows[first["id"]]["vni"] != rows[second["id"]]["vni"] and rows[first["id"]]["isolated"]
    doors.stranger.get(f"/networks/{first['id']}", 404)
    doors.stranger.put(f"/networks/{first['id']}", {"network": {"name": "x"}}, 404)
    doors.stranger.delete(f"/networks/{first['id']}", 404)
    doors.reader.delete(f"/networks/{first['id']}", 403)
    renamed = doors.member.put(f"/networks/{first['id']}", {"network": {"name": "www", "description": ""}})["network"]
    assert (renamed["name"], renamed["description"]) == ("www", "")
    for number in (first["id"], second["id"]):
        doors.member.delete(f"/networks/{number}", 204)
    doors.member.get(f"/networks/{first['id']}", 404)
    assert doors.rows(tables.network) == []


def test_several_at_once_or_none(doors: Doors) -> None:
    made = doors.member.post("/networks", {"networks": [{"name": "a"}, {"name": "b"}]}, 201)["networks"]
    assert [made_network["name"] for made_network in made] == ["a", "b"]
    cidrs = ["10.1.0.0/28", "10.1.0.0/28"]  # isolated networks may use the same
    body = {
        "subnets": [
            {"network_id": made_network["id"], "ip_version": 4, "cidr": c} for made_network, c in zip(made, cidrs)
        ]
    }
    assert len(doors.member.post("/subnets", body, 201)["subnets"]) == 2
    body = {"ports": [{"network_id": made_network["id"], "name": made_network["name"]} for made_network in made]}
    assert [record["name"] for record in doors.member.post("/ports", body, 201)["ports"]] == ["a", "b"]
    bad = {"networks": [{"name": "c"}, {"name": "d", "mtu": 70000}]}
    doors.member.post("/networks", bad, 400)
    assert len(doors.member.get("/networks")["networks"]) == 2


def test_quotas_of_networks_subnets_ports_routers(cloud: Cloud, doors: Doors) -> None:
    for name in ("networks", "subnets", "ports", "routers"):
        cloud.insert(tables.quota, project_id=doors.project, resource=name, hard_limit=1)
    of = network(doors)
    assert error_of(doors.member.post("/networks", {"network": {}}, 409)) == "OverQuota"
    subnet(doors, of)
    six = {"subnet": {"network_id": of["id"], "ip_version": 6, "cidr": "fd00:5::/64"}}
    assert error_of(doors.member.post("/subnets", six, 409)) == "OverQuota"
    port(doors, of)
    assert error_of(doors.member.post("/ports", {"port": {"network_id": of["id"]}}, 409)) == "OverQuota"
    doors.member.post("/routers", {"router": {}}, 201)
    assert error_of(doors.member.post("/routers", {"router": {}}, 409)) == "OverQuota"
    used = {
        name: quota["used"] for name, quota in doors.member.get(f"/quotas/{doors.project}/details")["quota"].items()
    }
    assert [used[name] for name in ("network", "subnet", "port", "router")] == [1, 1, 1, 1]


def test_a_subnet_has_its_gateway_pools_servers_and_routes(doors: Doors) -> None:
    of = network(doors)
    routes = [{"destination": "192.0.2.0/24", "nexthop": "10.50.0.9"}]
    made_subnet = subnet(doors, of, dns_nameservers=["192.0.2.53"], host_routes=routes, name="s")
    assert made_subnet["gateway_ip"] == "10.50.0.1"
    assert made_subnet["allocation_pools"] == [{"start": "10.50.0.2", "end": "10.50.0.254"}]
    assert (made_subnet["dns_nameservers"], made_subnet["host_routes"], made_subnet["enable_dhcp"]) == (
        ["192.0.2.53"],
        routes,
        True,
    )
    assert doors.member.get(f"/networks/{of['id']}")["network"]["subnets"] == [made_subnet["id"]]
    two = [{"start": "10.50.0.10", "end": "10.50.0.11"}]
    change = {
        "name": "t",
        "gateway_ip": "10.50.0.2",
        "allocation_pools": two,
        "dns_nameservers": [],
        "host_routes": [],
        "enable_dhcp": False,
        "description": "d",
    }
    after = doors.member.put(f"/subnets/{made_subnet['id']}", {"subnet": change})["subnet"]
    assert {key: after[key] for key in change} == change
    first, second = port(doors, of), port(doors, of)
    assert sorted(bound_port["fixed_ips"][0]["ip_address"] for bound_port in (first, second)) == [
        "10.50.0.10",
        "10.50.0.11",
    ]
    full = doors.member.post("/ports", {"port": {"network_id": of["id"]}}, 409)
    assert error_of(full) == "IpAddressGenerationFailure"
    assert error_of(doors.member.delete(f"/subnets/{made_subnet['id']}", 409)) == "SubnetInUse"
    assert error_of(doors.member.delete(f"/networks/{of['id']}", 409)) == "NetworkInUse"
    doors.stranger.put(f"/subnets/{made_subnet['id']}", {"subnet": {"name": "x"}}, 404)
    doors.stranger.delete(f"/subnets/{made_subnet['id']}", 404)
    for gone in (first, second):
        doors.member.delete(f"/ports/{gone['id']}", 204)
    doors.member.delete(f"/subnets/{made_subnet['id']}", 204)
    assert doors.member.get(f"/networks/{of['id']}")["network"]["subnets"] == []
    assert doors.rows(tables.fixed_ip) == []
    subnet(doors, of, "10.51.0.0/24")  # another one may take its place


def test_a_network_has_both_families(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    six = subnet(doors, of, "fd00:50::/64", ipv6_ra_mode="slaac", ipv6_address_mode="slaac")
    assert (six["gateway_ip"], six["ipv6_ra_mode"]) == ("fd00:50::1", "slaac")
    alone = port(doors, of)
    assert [address["subnet_id"] for address in alone["fixed_ips"]] == [six["id"]]
    four = subnet(doors, of)
    both = port(doors, of)
    assert {address["subnet_id"] for address in both["fixed_ips"]} == {four["id"], six["id"]}
    server = cloud.instance(doors.project, "guest", cloud.host("hv1"), [])
    with transaction(cloud.engine) as connection:
        mine = tables.vif.c.id == both["id"]
        connection.execute(sa.update(tables.vif).where(mine).values(instance_uuid=server, position=0))
    assert error_of(doors.member.delete(f"/subnets/{six['id']}", 409)) == "SubnetInUse"
    cloud.write(sa.update(tables.vif).where(mine).values(instance_uuid=None, position=None))
    doors.member.delete(f"/subnets/{six['id']}", 204)  # no server has an address of it
    left = doors.member.get(f"/ports/{both['id']}")["port"]["fixed_ips"]
    assert [address["subnet_id"] for address in left] == [four["id"]]


@pytest.mark.parametrize(
    ("cidr", "kept"),
    [("10.50.0.1/24", "10.50.0.0/24"), ("10.50.3.255/22", "10.50.0.0/22"), ("fd00::5/64", "fd00::/64")],
)
def test_a_subnet_is_the_range_around_an_address(doors: Doors, cidr: str, kept: str) -> None:
    subnet = {"network_id": network(doors)["id"], "ip_version": 6 if ":" in cidr else 4, "cidr": cidr}
    assert doors.member.post("/subnets", {"subnet": subnet}, 201)["subnet"]["cidr"] == kept


@pytest.mark.parametrize(
    "subnet_body",
    [
        {"cidr": "10.50.0.0/8"},
        {"cidr": "nonsense"},
        {"cidr": "10.50.0.0/24", "gateway_ip": "10.51.0.1"},
        {"cidr": "10.50.0.0/24", "gateway_ip": "10.50.0.255"},
        {"cidr": "10.50.0.0/24", "allocation_pools": [{"start": "10.50.0.9", "end": "10.50.0.2"}]},
        {"cidr": "10.50.0.0/24", "allocation_pools": [{"start": "10.51.0.2", "end": "10.51.0.9"}]},
        {"cidr": "10.50.0.0/24", "dns_nameservers": ["x"]},
        {"cidr": "10.50.0.0/24", "dns_nameservers": ["fd00::1"]},
        {"cidr": "10.50.0.0/24", "host_routes": [{"destination": "10.0.0.1/8", "nexthop": "10.50.0.2"}]},
        {"cidr": "10.50.0.0/24", "ipv6_ra_mode": "slaac"},
        {"cidr": "fd00::/64", "ip_version": 4},
        {"cidr": "fd00::/80", "ip_version": 6},
        {"cidr": "fd00::/64", "ip_version": 6, "ipv6_ra_mode": "dhcpv6-stateful"},
        {"cidr": "fd00::/64", "ip_version": 6, "enable_dhcp": False},
        {"cidr": "fd00::/64", "ip_version": 6, "gateway_ip": "fd00::1%x\nevil=1"},
        {"cidr": "10.50.0.0/24", "nosuch": 1},
        {"ip_version": 4},
    ],
)
def test_subnets_that_cannot_be(doors: Doors, subnet_body: Body) -> None:
    of = network(doors)
    doors.member.post("/subnets", {"subnet": {"network_id": of["id"], "ip_version": 4, **subnet_body}}, 400)
    assert doors.member.get("/subnets")["subnets"] == []


def test_a_pool_holds_no_gateway_and_a_network_one_subnet_of_ipv6(doors: Doors) -> None:
    of = network(doors)
    subnet_body = {
        "network_id": of["id"],
        "ip_version": 4,
        "cidr": "10.50.0.0/24",
        "gateway_ip": "10.50.0.5",
        "allocation_pools": [{"start": "10.50.0.2", "end": "10.50.0.9"}],
    }
    conflict = doors.member.post("/subnets", {"subnet": subnet_body}, 409)
    assert error_of(conflict) == "GatewayConflictWithAllocationPools"
    subnet(doors, of, "fd00:50::/64")
    second = {"network_id": of["id"], "ip_version": 6, "cidr": "fd00:60::/64"}
    doors.member.post("/subnets", {"subnet": second}, 400)


NO_ADDRESS = ["10.0.0.0/8", "fe80::1%x", "fe80::1%x\nport=1", "10.50.0.9\n", "10.50.0.9\nport=1", "10.50.0.9,1.1.1.1"]
ADDRESSES: dict[str, t.Callable[[str], Body]] = {
    "gateway_ip": lambda text: {"gateway_ip": text},
    "start of a pool": lambda text: {"allocation_pools": [{"start": text, "end": "10.50.0.99"}]},
    "end of a pool": lambda text: {"allocation_pools": [{"start": "10.50.0.2", "end": text}]},
    "dns_nameservers": lambda text: {"dns_nameservers": ["192.0.2.53", text]},
    "nexthop": lambda text: {"host_routes": [{"destination": "192.0.2.0/24", "nexthop": text}]},
    # a route may lead to any range
    "destination": lambda text: {"host_routes": [{"destination": text.replace("/8", "/8\n"), "nexthop": "10.50.0.9"}]},
    "fixed_ips": lambda text: {"fixed_ips": [{"ip_address": text}]},
    "allowed_address_pairs": lambda text: {"allowed_address_pairs": [{"ip_address": text}]},
    "mac_address": lambda text: {"allowed_address_pairs": [{"ip_address": "10.50.0.9", "mac_address": text}]},
}


@pytest.mark.parametrize("text", NO_ADDRESS)
@pytest.mark.parametrize("place", list(ADDRESSES))
def test_what_hosts_write_as_an_address_is_one(doors: Doors, place: str, text: str) -> None:
    """A zone, a line break or a range in the place of an address would come to a file or a chain of a host."""
    kind = "port" if place in ("fixed_ips", "allowed_address_pairs", "mac_address") else "subnet"
    of = network(doors)
    attributes, more = ADDRESSES[place](text), {"network_id": of["id"]}
    if kind == "subnet":
        more |= {"ip_version": 4, "cidr": "10.50.0.0/24"}
        doors.member.post("/subnets", {kind: {**more, **attributes}}, 400)
    there = subnet(doors, of)
    if kind == "port":
        doors.member.post("/ports", {kind: {**more, **attributes}}, 400)
        there = port(doors, of)
    doors.member.put(f"/{kind}s/{there['id']}", {kind: attributes}, 400)
    assert doors.member.get(f"/{kind}s")[f"{kind}s"] == [there]


# --- Ports ----------------------------------------------------------------------------------------------------------


def test_a_port_keeps_what_it_is_given(doors: Doors) -> None:
    of = network(doors)
    four = subnet(doors, of)
    number, group = doors.group("web")
    made_port = port(
        doors,
        of,
        name="p",
        fixed_ips=[{"ip_address": "10.50.0.77"}],
        mac_address="fa:16:3e:aa:bb:cc",
        security_groups=[group],
        allowed_address_pairs=[{"ip_address": "10.50.0.200"}],
        device_id="mine",
    )
    assert made_port["fixed_ips"] == [{"subnet_id": four["id"], "ip_address": "10.50.0.77"}]
    assert (made_port["mac_address"], made_port["security_groups"], made_port["status"]) == (
        "fa:16:3e:aa:bb:cc",
        [group],
        "DOWN",
    )
    assert made_port["allowed_address_pairs"] == [{"ip_address": "10.50.0.200", "mac_address": "fa:16:3e:aa:bb:cc"}]
    same = {"network_id": of["id"], "fixed_ips": [{"ip_address": "10.50.0.77"}]}
    assert error_of(doors.member.post("/ports", {"port": same}, 409)) == "IpAddressInUse"
    taken = {"network_id": of["id"], "mac_address": "FA:16:3E:AA:BB:CC"}
    assert error_of(doors.member.post("/ports", {"port": taken}, 409)) == "MacAddressInUse"
    assert error_of(doors.member.delete(f"/security-groups/{group}", 409)) == "SecurityGroupInUse"
    change = {
        "name": "q",
        "admin_state_up": False,
        "security_groups": [],
        "device_id": "",
        "allowed_address_pairs": [],
        "fixed_ips": [{"ip_address": "10.50.0.78"}],
    }
    after = doors.member.put(f"/ports/{made_port['id']}", {"port": change})["port"]
    assert (after["name"], after["admin_state_up"], after["security_groups"]) == ("q", False, [])
    assert after["fixed_ips"][0]["ip_address"] == "10.50.0.78" and after["allowed_address_pairs"] == []
    port(doors, of, fixed_ips=[{"ip_address": "10.50.0.77"}])  # it was given back
    doors.stranger.get(f"/ports/{made_port['id']}", 404)
    doors.stranger.put(f"/ports/{made_port['id']}", {"port": {"name": "x"}}, 404)
    doors.stranger.delete(f"/ports/{made_port['id']}", 404)
    doors.member.delete(f"/ports/{made_port['id']}", 204)
    doors.member.delete(f"/security-groups/{group}", 204)
    assert number


def test_a_port_has_the_default_group_and_addresses_of_its_network(doors: Doors) -> None:
    of = network(doors)
    bare = port(doors, of)
    assert bare["fixed_ips"] == []
    (default,) = doors.member.get("/security-groups?name=default")["security_groups"]
    assert bare["security_groups"] == [default["id"]]
    subnet(doors, of)
    outside = [{"ip_address": "10.99.0.7"}]
    doors.member.post("/ports", {"port": {"network_id": of["id"], "fixed_ips": outside}}, 400)
    nowhere = {"network_id": of["id"], "security_groups": [of["id"]]}
    assert error_of(doors.member.post("/ports", {"port": nowhere}, 404)) == "SecurityGroupNotFound"
    doors.stranger.post("/ports", {"port": {"network_id": of["id"]}}, 404)
    owned = {"network_id": of["id"], "device_owner": "network:dhcp"}
    doors.member.post("/ports", {"port": owned}, 403)


def test_a_servers_port_stays_and_changes_the_servers_groups(cloud: Cloud, doors: Doors) -> None:
    net = cloud.network("private", "10.20.0.0/24")
    number, group = doors.group("web")
    _other, new_group = doors.group("db")
    cloud.instance(doors.project, "a", cloud.host("hv1"), [(net, "10.20.0.5")], groups=[number], power_state=1)
    (made_port,) = doors.member.get("/ports")["ports"]
    moved = {"fixed_ips": [{"ip_address": "10.20.0.6"}]}
    assert error_of(doors.member.put(f"/ports/{made_port['id']}", {"port": moved}, 403)) == "PolicyNotAuthorized"
    change = {"security_groups": [new_group], "name": "nic"}
    after = doors.member.put(f"/ports/{made_port['id']}", {"port": change})["port"]
    assert (after["security_groups"], after["name"]) == ([new_group], "nic") and group != new_group
    (job,) = doors.jobs()
    assert job["kind"] == "security_groups"
    assert job["variables"]["changed_groups"] == [new_group, group]
    assert job["variables"]["changed_members"] == [made_port["device_id"]]


def test_a_floating_ip_leads_to_a_port_that_no_server_has_yet(cloud: Cloud, doors: Doors) -> None:
    outside, of = pool(cloud), network(doors)
    inside, made_port = subnet(doors, of), port(doors, of)
    body = {"floating_network_id": outside, "port_id": made_port["id"], "description": "front"}
    far = doors.member.post("/floatingips", {"floatingip": body}, 404)
    assert error_of(far) == "ExternalGatewayForFloatingIPNotFound"
    gateway = {"router": {"external_gateway_info": {"network_id": outside}}}
    way = doors.member.post("/routers", gateway, 201)["router"]
    doors.member.put(f"/routers/{way['id']}/add_router_interface", {"subnet_id": inside["id"]})
    led = doors.member.post("/floatingips", {"floatingip": body}, 201)["floatingip"]
    assert (led["port_id"], led["fixed_ip_address"]) == (made_port["id"], made_port["fixed_ips"][0]["ip_address"])
    assert led["description"] == "front" and led["status"] == "ACTIVE" and led["router_id"] == way["id"]
    doors.member.delete(f"/ports/{made_port['id']}", 204)
    assert doors.member.get(f"/floatingips/{led['id']}")["floatingip"]["port_id"] is None
