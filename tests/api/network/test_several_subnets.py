# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several IPv4 subnets on a network: the Network API, Compute, and what hosts are told."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_networking import subnet as subnet_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.addresses import (
    give_addresses,
    release_host_address,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.host_networks import networks_on
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance
from tests.api.conftest import Cloud
from tests.api.doors import Body, Doors, User
from tests.api.network.test_ip_availability import PATH as AVAILABILITY
from tests.api.network.test_port_addresses import addresses, change, host_plans
from tests.api.network.test_tenant_networks import error_of, network, pool, port, subnet

SECOND = "10.60.0.0/24"


def both(doors: Doors, **values: t.Any) -> tuple[Body, Body, Body]:
    """A network, its first subnet (10.50.0.0/24) and a further one, which is made with `values`."""
    of = network(doors)
    return of, subnet(doors, of), subnet(doors, of, SECOND, **values)


def started(cloud: Cloud, doors: Doors, made_port: Body, name: str = "web", host: str = "hv1") -> str:
    """Give the port to a server on the host."""
    if not cloud.rows(sa.select(tables.compute_host.c.id).where(tables.compute_host.c.name == host)):
        cloud.host(host)
    server = cloud.instance(doors.project, name, host, power_state=1)
    mine = tables.vif.c.id == made_port["id"]
    cloud.write(sa.update(tables.vif).where(mine).values(instance_uuid=server, position=0))
    return server


def with_addresses(cloud: Cloud, *servers: str) -> list[Instance]:
    """The servers with the addresses that they, and their hosts, get."""
    with transaction(cloud.engine) as connection:
        return give_addresses(connection, instances_by(connection, uuids=servers)).instances


def owners(cloud: Cloud) -> dict[str, str]:
    """Compute host, and number of the subnet beyond the first -> its address."""
    pool_rows = tables.fixed_ip.c
    query = sa.select(pool_rows.owner, pool_rows.ip).where(pool_rows.owner.startswith("dhcp:"))
    return {row.owner.removeprefix("dhcp:"): ".".join(map(str, row.ip.to_bytes(4))) for row in cloud.rows(query)}


# --- Subnets --------------------------------------------------------------------------------------------------------


def test_a_further_subnet_has_settings_of_its_own(doors: Doors) -> None:
    settings = {
        "name": "back",
        "gateway_ip": "10.60.0.9",
        "allocation_pools": [{"start": "10.60.0.20", "end": "10.60.0.29"}],
        "dns_nameservers": ["192.0.2.53"],
        "host_routes": [{"destination": "192.0.2.0/24", "nexthop": "10.60.0.7"}],
        "enable_dhcp": False,
    }
    of, first, second = both(doors, **settings)
    six = subnet(doors, of, "fd00:50::/64")
    assert {key: second[key] for key in settings} == settings and second["cidr"] == SECOND
    listed = doors.member.get(f"/networks/{of['id']}")["network"]["subnets"]
    assert listed == [first["id"], second["id"], six["id"]]
    assert doors.member.get("/subnets?ip_version=4")["subnets"] == [first, second]
    change_of = {"name": "b", "dns_nameservers": [], "host_routes": [], "enable_dhcp": True, "gateway_ip": "10.60.0.1"}
    after = doors.member.put(f"/subnets/{second['id']}", {"subnet": change_of})["subnet"]
    assert {key: after[key] for key in change_of} == change_of and doors.member.get("/subnets")["subnets"][0] == first
    doors.stranger.get(f"/subnets/{second['id']}", 404)
    doors.stranger.delete(f"/subnets/{second['id']}", 404)
    doors.member.put(f"/subnets/{second['id']}/tags/blue", None, 201)
    assert doors.member.get("/subnets?tags=blue")["subnets"][0]["id"] == second["id"]


@pytest.mark.parametrize("cidr", ["10.50.0.0/24", "10.50.0.128/25", "10.50.0.0/16"])
def test_subnets_of_a_network_do_not_overlap(doors: Doors, cidr: str) -> None:
    of = network(doors)
    subnet(doors, of)
    subnet_body = {"network_id": of["id"], "ip_version": 4, "cidr": cidr}
    refused = doors.member.post("/subnets", {"subnet": subnet_body}, 400)["NeutronError"]
    assert refused["type"] == "InvalidInput"
    assert f"Requested subnet with cidr: {cidr} for network: {of['id']} overlaps with another subnet" in str(refused)
    subnet(doors, network(doors), cidr)  # another network is a world of its own


def test_a_network_has_so_many_at_most(doors: Doors) -> None:
    of = network(doors)
    for number in range(16):
        subnet(doors, of, f"10.50.{number}.0/28")
    subnet_body = {"network_id": of["id"], "ip_version": 4, "cidr": "10.51.0.0/28"}
    assert "is the limit" in str(doors.member.post("/subnets", {"subnet": subnet_body}, 400))
    used = doors.member.get(f"/quotas/{doors.project}/details")["quota"]["subnet"]["used"]
    assert used == 16


def test_the_quota_counts_each(doors: Doors) -> None:
    doors.admin.put(f"/quotas/{doors.project}", {"quota": {"subnet": 1}})
    of = network(doors)
    subnet(doors, of)
    subnet_body = {"network_id": of["id"], "ip_version": 4, "cidr": SECOND}
    assert error_of(doors.member.post("/subnets", {"subnet": subnet_body}, 409)) == "OverQuota"


def test_ranges_of_networks_that_hosts_cannot_tell_apart_do_not_overlap(cloud: Cloud, doors: Doors) -> None:
    """Neither is a further range taken that another network has, nor is a network made in a further range."""
    cloud.write(sa.update(tables.network).values(isolated=False))
    cloud.network("private", "10.60.0.0/16")
    of = network(doors)
    cloud.write(sa.update(tables.network).where(tables.network.c.uuid == of["id"]).values(isolated=False))
    subnet(doors, of)
    subnet_body = {"network_id": of["id"], "ip_version": 4, "cidr": SECOND}
    assert "overlaps 10.60.0.0/16" in str(doors.member.post("/subnets", {"subnet": subnet_body}, 409))
    subnet(doors, of, "10.70.0.0/24")
    other = network(doors, name="other")
    cloud.write(sa.update(tables.network).where(tables.network.c.uuid == other["id"]).values(isolated=False))
    subnet_body = {"network_id": other["id"], "ip_version": 4, "cidr": "10.70.0.0/16"}
    assert "overlaps 10.70.0.0/24" in str(doors.member.post("/subnets", {"subnet": subnet_body}, 409))


def test_each_draws_of_a_subnet_pool(doors: Doors) -> None:
    pool_body = {"name": "p", "prefixes": ["10.80.0.0/16"], "default_prefixlen": 26}
    drawn = doors.member.post("/subnetpools", {"subnetpool": pool_body}, 201)["subnetpool"]["id"]
    of = network(doors)
    from_pool = {"network_id": of["id"], "ip_version": 4, "subnetpool_id": drawn}
    made = [doors.member.post("/subnets", {"subnet": from_pool}, 201)["subnet"] for _turn in range(3)]
    assert [each["cidr"] for each in made] == ["10.80.0.0/26", "10.80.0.64/26", "10.80.0.128/26"]
    doors.member.delete(f"/subnets/{made[1]['id']}", 204)
    assert doors.member.post("/subnets", {"subnet": from_pool}, 201)["subnet"]["cidr"] == "10.80.0.64/26"


# --- Ports ----------------------------------------------------------------------------------------------------------


def test_a_port_has_addresses_of_the_subnets_that_it_names(cloud: Cloud, doors: Doors) -> None:
    of, first, second = both(doors)
    assert port(doors, of)["fixed_ips"][0]["subnet_id"] == first["id"]
    for wish in ({"subnet_id": second["id"]}, {"ip_address": "10.60.0.77"}):
        (address,) = port(doors, of, fixed_ips=[wish])["fixed_ips"]
        assert address["subnet_id"] == second["id"] and address["ip_address"].startswith("10.60.0.")
    in_both = port(doors, of, fixed_ips=[{"subnet_id": second["id"]}, {"subnet_id": first["id"]}])
    assert [address["subnet_id"] for address in in_both["fixed_ips"]] == [second["id"], first["id"]]
    assert len(doors.member.get(f"/ports?fixed_ips=subnet_id={second['id']}")["ports"]) == 3
    assert len(doors.member.get(f"/ports?fixed_ips=subnet_id={first['id']}")["ports"]) == 2
    wrong = {"subnet_id": first["id"], "ip_address": "10.60.0.78"}
    refused = doors.member.post("/ports", {"port": {"network_id": of["id"], "fixed_ips": [wrong]}}, 400)
    assert "not a valid IP for the specified subnet" in str(refused)
    moved = change(doors, in_both, [{"subnet_id": first["id"]}])
    assert moved == [in_both["fixed_ips"][1]["ip_address"]]  # of those that it has, it keeps what it may
    rows = {row["network_id"]: row for row in doors.admin.get(AVAILABILITY)["network_ip_availabilities"]}
    used = {row["subnet_id"]: row["used_ips"] for row in rows[of["id"]]["subnet_ip_availability"]}
    assert used == {first["id"]: 2, second["id"]: 2}


def test_a_port_without_a_wish_is_where_there_is_room(doors: Doors) -> None:
    of = network(doors)
    small = subnet(doors, of, allocation_pools=[{"start": "10.50.0.2", "end": "10.50.0.3"}])
    second = subnet(doors, of, SECOND, allocation_pools=[{"start": "10.60.0.9", "end": "10.60.0.9"}])
    there = [port(doors, of)["fixed_ips"][0]["subnet_id"] for _turn in range(3)]
    assert there == [small["id"], small["id"], second["id"]]
    full = doors.member.post("/ports", {"port": {"network_id": of["id"]}}, 409)
    assert error_of(full) == "IpAddressGenerationFailure"
    port_body = {"network_id": of["id"], "fixed_ips": [{"subnet_id": small["id"]}]}
    assert error_of(doors.member.post("/ports", {"port": port_body}, 409)) == "IpAddressGenerationFailure"


# --- Deletion -------------------------------------------------------------------------------------------------------


def test_a_subnet_stays_while_a_port_has_an_address_of_it(cloud: Cloud, doors: Doors) -> None:
    of, first, second = both(doors)
    ports = {number: port(doors, of, fixed_ips=[{"subnet_id": number}]) for number in (first["id"], second["id"])}
    in_both = port(doors, of, fixed_ips=[{"subnet_id": first["id"]}, {"subnet_id": second["id"]}])
    for number in ports:
        assert error_of(doors.member.delete(f"/subnets/{number}", 409)) == "SubnetInUse"
    doors.member.delete(f"/ports/{ports[second['id']]['id']}", 204)
    assert error_of(doors.member.delete(f"/subnets/{second['id']}", 409)) == "SubnetInUse"
    doors.member.delete(f"/ports/{in_both['id']}", 204)
    doors.member.delete(f"/subnets/{second['id']}", 204)
    doors.member.get(f"/subnets/{second['id']}", 404)
    assert doors.member.get("/subnets")["subnets"] == [first]
    outside = sa.select(sa.func.count()).where(tables.fixed_ip.c.ip > 10 << 24 | 51 << 16)
    assert cloud.rows(outside) == [(0,)]
    again = subnet(doors, of, SECOND)
    assert again["id"] != second["id"]


def test_the_next_one_takes_the_place_of_the_first(cloud: Cloud, doors: Doors) -> None:
    routes = [{"destination": "192.0.2.0/24", "nexthop": "10.60.0.7"}]
    of, first, second = both(doors, name="back", dns_nameservers=["192.0.2.53"], host_routes=routes)
    third = subnet(doors, of, "10.70.0.0/24")
    made = port(doors, of, fixed_ips=[{"subnet_id": second["id"]}])
    server = started(cloud, doors, made)
    with_addresses(cloud, server)
    assert set(owners(cloud)) == {"hv1", "hv1/1"}
    own = owners(cloud)["hv1/1"]
    doors.member.delete(f"/subnets/{first['id']}", 204)
    jobs = {job["kind"]: job["variables"] for job in doors.jobs()}
    assert jobs["floating_ips"]["network_hosts"] == ["hv1"] and jobs["security_groups"]["ports"] == [made["id"]]
    assert doors.member.get("/subnets")["subnets"] == [second, third]
    assert doors.member.get(f"/networks/{of['id']}")["network"]["subnets"] == [second["id"], third["id"]]
    assert doors.member.get(f"/ports/{made['id']}")["port"]["fixed_ips"] == made["fixed_ips"]
    row = {row["uuid"]: row for row in doors.rows(tables.network)}[of["id"]]
    assert (row["cidr"], row["dns"], row["routes"]) == (SECOND, ["192.0.2.53"], routes)
    assert owners(cloud) == {"hv1": own}  # by the name that it has in a network of one range
    after = doors.member.put(f"/subnets/{second['id']}", {"subnet": {"dns_nameservers": ["192.0.2.54"]}})["subnet"]
    assert after["dns_nameservers"] == ["192.0.2.54"]
    doors.member.delete(f"/subnets/{third['id']}", 204)
    (nic,) = with_addresses(cloud, server)[0]["nics"]
    assert (nic["ip"], nic["dhcp_server"]) == (made["fixed_ips"][0]["ip_address"], own)
    assert "ranges" not in nic["network"]
    assert error_of(doors.member.delete(f"/subnets/{second['id']}", 409)) == "SubnetInUse"


def test_hosts_are_told_of_a_subnet_that_goes(cloud: Cloud, doors: Doors) -> None:
    of, _first, second = both(doors)
    here = started(cloud, doors, port(doors, of, fixed_ips=[{"subnet_id": second["id"]}]), "here")
    started(cloud, doors, port(doors, of), "other")
    with_addresses(cloud, here)
    doors.member.put(f"/ports/{_port_of(cloud, here)}", {"port": {"fixed_ips": [{"ip_address": "10.50.0.9"}]}})
    assert "hv1/1" in owners(cloud)
    doors.member.delete(f"/subnets/{second['id']}", 204)
    assert "hv1/1" not in owners(cloud)
    assert (doors.jobs()[-1]["kind"], doors.jobs()[-1]["variables"]["network_hosts"]) == ("floating_ips", ["hv1"])


def _port_of(cloud: Cloud, server: str) -> str:
    return str(cloud.rows(sa.select(tables.vif.c.id).where(tables.vif.c.instance_uuid == server))[0][0])


def test_the_network_takes_them_along(cloud: Cloud, doors: Doors) -> None:
    of, _first, _second = both(doors)
    doors.member.delete(f"/networks/{of['id']}", 204)
    assert doors.member.get("/subnets")["subnets"] == []
    assert doors.rows(subnet_table) == [] and doors.rows(tables.fixed_ip) == []


# --- Routers --------------------------------------------------------------------------------------------------------


def test_a_router_has_an_interface_in_each(cloud: Cloud, doors: Doors) -> None:
    of, first, second = both(doors)
    outside = pool(cloud)
    gateway = {"router": {"name": "r", "external_gateway_info": {"network_id": outside}}}
    router = doors.member.post("/routers", gateway, 201)["router"]
    path = f"/routers/{router['id']}"
    made = port(doors, of, fixed_ips=[{"subnet_id": second["id"]}])
    floating_ip_body = {"floating_network_id": outside, "port_id": made["id"]}
    doors.member.put(f"{path}/add_router_interface", {"subnet_id": first["id"]})
    far = doors.member.post("/floatingips", {"floatingip": floating_ip_body}, 404)  # the router has none in that subnet
    assert error_of(far) == "ExternalGatewayForFloatingIPNotFound"
    done = doors.member.put(f"{path}/add_router_interface", {"subnet_id": second["id"]})
    assert (done["subnet_id"], done["network_id"]) == (second["id"], of["id"])
    doors.member.put(f"{path}/add_router_interface", {"subnet_id": second["id"]}, 400)
    shown = doors.member.get(f"/ports?device_id={router['id']}")["ports"]
    assert sorted(address["ip_address"] for row in shown for address in row["fixed_ips"]) == ["10.50.0.1", "10.60.0.1"]
    assert {address["subnet_id"] for row in shown for address in row["fixed_ips"]} == {first["id"], second["id"]}
    led = doors.member.post("/floatingips", {"floatingip": floating_ip_body}, 201)["floatingip"]
    assert led["router_id"] == router["id"] and len(doors.member.get("/floatingips")["floatingips"]) == 1
    taken = doors.member.put(f"/subnets/{second['id']}", {"subnet": {"gateway_ip": None}}, 409)
    assert error_of(taken) == "GatewayIpInUse"
    doors.member.delete(f"/floatingips/{led['id']}", 204)
    doors.member.delete(f"/ports/{made['id']}", 204)
    assert error_of(doors.member.delete(f"/subnets/{second['id']}", 409)) == "SubnetInUse"
    snat = {row["uuid"]: row for row in doors.rows(tables.network)}[of["id"]]["snat"]
    assert snat
    doors.member.put(f"{path}/remove_router_interface", {"subnet_id": first["id"]})
    assert {row["uuid"]: row for row in doors.rows(tables.network)}[of["id"]]["snat"]  # by the other one
    doors.member.put(f"{path}/remove_router_interface", {"port_id": done["port_id"]})
    assert not {row["uuid"]: row for row in doors.rows(tables.network)}[of["id"]]["snat"]
    doors.member.delete(f"/subnets/{second['id']}", 204)


def test_a_routers_port_tells_its_subnet(doors: Doors) -> None:
    of, first, second = both(doors)
    router = doors.member.post("/routers", {"router": {"name": "r"}}, 201)["router"]
    path = f"/routers/{router['id']}/add_router_interface"
    own = port(doors, of, fixed_ips=[{"ip_address": "10.60.0.9"}])
    assert doors.member.put(path, {"port_id": own["id"]})["subnet_id"] == second["id"]
    two = port(doors, of, fixed_ips=[{"subnet_id": first["id"]}, {"subnet_id": second["id"]}])
    assert "multiple IPv4 subnets" in str(doors.member.put(path, {"port_id": two["id"]}, 400))
    other = network(doors, name="other")
    subnet(doors, other, "10.90.0.0/24")
    overlapping = subnet(doors, other, "10.60.0.0/16")
    assert "overlaps" in str(doors.member.put(path, {"subnet_id": overlapping["id"]}, 400))


# --- Servers and hosts ----------------------------------------------------------------------------------------------


def test_a_host_has_an_address_in_each_range_of_its_guests(cloud: Cloud, doors: Doors) -> None:
    of, first, second = both(doors, dns_nameservers=["192.0.2.53"])
    subnet(doors, of, "10.70.0.0/24")
    servers = [
        started(cloud, doors, port(doors, of, fixed_ips=[{"subnet_id": number}]), name, host)
        for name, host, number in (("a", "hv1", first["id"]), ("b", "hv2", second["id"]))
    ]
    assert owners(cloud) == {}
    a, b = (server["nics"][0] for server in with_addresses(cloud, *servers))
    own = owners(cloud)  # in the first one always: what a host is known by there stays when guests of that come
    assert (own["hv1"], own["hv2/1"]) == (a["dhcp_server"], b["dhcp_server"])
    assert set(own) == {"hv1", "hv2", "hv2/1"}
    assert (a["network"]["cidr"], b["network"]["cidr"]) == ("10.50.0.0/24", SECOND)
    assert (a["network"]["dns"], b["network"]["dns"]) == ([], ["192.0.2.53"])
    ranges = [(each["cidr"], each["address"]) for each in b["network"]["ranges"]]
    assert ranges == [("10.50.0.0/24", own["hv2"]), (SECOND, b["dhcp_server"]), ("10.70.0.0/24", None)]
    assert dict(b["network"]["ranges"][1]) == {
        "cidr": SECOND,
        "gateway": None,
        "dhcp": True,
        "dns": ["192.0.2.53"],
        "routes": [],
        "address": b["dhcp_server"],
    }
    with transaction(cloud.engine) as connection:
        read = [server["nics"][0] for server in instances_by(connection, uuids=servers)]
        assert read == [a, b]  # what is read later is what was given
        row = a["network"]["id"]
        on_hv2 = networks_on(connection, [(row, "hv2")])[row, "hv2"]
        assert (on_hv2.address, on_hv2.network["ranges"]) == (own["hv2"], b["network"]["ranges"])
    assert with_addresses(cloud, *servers)[1]["nics"][0]["dhcp_server"] == b["dhcp_server"]  # it keeps its own


def test_a_launch_tells_of_all_addresses_that_its_host_has(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    first = subnet(doors, of, allocation_pools=[{"start": "10.50.0.2", "end": "10.50.0.3"}])
    second, third = subnet(doors, of, SECOND), subnet(doors, of, "10.70.0.0/24")
    for each in (second, third):
        made = port(doors, of, fixed_ips=[{"subnet_id": each["id"]}])
        (nic,) = with_addresses(cloud, started(cloud, doors, made, each["id"]))[0]["nics"]
    assert [bool(each["address"]) for each in nic["network"]["ranges"]] == [True, True, True]
    # a host has none where none is left
    port(doors, of, fixed_ips=[{"subnet_id": first["id"]}])
    other = started(cloud, doors, port(doors, of, fixed_ips=[{"subnet_id": second["id"]}]), "other", "hv2")
    (nic,) = with_addresses(cloud, other)[0]["nics"]
    assert [bool(each["address"]) for each in nic["network"]["ranges"]] == [False, True, False]


def test_a_host_gives_back_what_it_has_with_its_last_guest(cloud: Cloud, doors: Doors) -> None:
    of, first, second = both(doors)
    made = [port(doors, of, fixed_ips=[{"subnet_id": each["id"]}]) for each in (first, second)]
    servers = [started(cloud, doors, each, each["id"]) for each in made]
    network_id = with_addresses(cloud, *servers)[0]["nics"][0]["network"]["id"]
    assert set(owners(cloud)) == {"hv1", "hv1/1"}
    for server, left in zip(servers, ({"hv1", "hv1/1"}, set[str]())):
        cloud.write(sa.update(tables.vif).where(tables.vif.c.instance_uuid == server).values(instance_uuid=None))
        with transaction(cloud.engine) as connection:
            assert release_host_address(connection, network_id, "hv1") is not bool(left)
        assert set(owners(cloud)) == left


def test_a_server_gets_an_address_of_a_further_subnet(cloud: Cloud, doors: Doors) -> None:
    of, first, second = both(doors)
    made = port(doors, of, fixed_ips=[{"subnet_id": first["id"]}])
    server = started(cloud, doors, made)
    with_addresses(cloud, server)
    fixed_ips = [*made["fixed_ips"], {"subnet_id": second["id"]}]
    now = change(doors, made, fixed_ips)
    assert len(now) == 2 and set(owners(cloud)) == {"hv1", "hv1/1"}
    assert {job["kind"] for job in doors.jobs()} == {"security_groups", "floating_ips"}  # bridge and router, too
    compute = User(cloud, doors.client, doors.project, "member", "/compute/v2.1")
    (interface,) = compute.get(f"/servers/{server}/os-interface")["interfaceAttachments"]
    assert [address["subnet_id"] for address in interface["fixed_ips"]] == [first["id"], second["id"]]
    (plan,) = host_plans(cloud, made)
    assert now[1] in plan["domains"][0]["xml"]
    assert f"{owners(cloud)['hv1/1']}/24" in plan["bridges"][0]["addresses"]  # before DHCP listens there


def test_nova_adds_an_address_where_there_is_room(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of, allocation_pools=[{"start": "10.50.0.2", "end": "10.50.0.3"}])
    second = subnet(doors, of, SECOND)
    made = port(doors, of)
    server = started(cloud, doors, made)
    with_addresses(cloud, server)  # the host takes the other one
    compute = User(cloud, doors.client, doors.project, "member", "/compute/v2.1")
    compute.post(f"/servers/{server}/action", {"addFixedIp": {"networkId": of["id"]}}, 202)
    _own, added = doors.member.get(f"/ports/{made['id']}")["port"]["fixed_ips"]
    assert added["subnet_id"] == second["id"]
    assert addresses(doors.member.get(f"/ports/{made['id']}")["port"])[1].startswith("10.60.0.")
