# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports with several fixed IPs, and what Compute, EC2 and hosts make of them."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import guest_lookup, views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import (
    address_pairs,
    group_members,
    host_networks,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.port_plan import port_plan
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import AddressPair
from ansible_collections.novalite.cloud.plugins.module_utils._plan import networks
from tests.api.compute.test_interfaces_api import FACTS
from tests.api.conftest import Cloud
from tests.api.doors import Body, Doors, User
from tests.api.network.test_tenant_networks import error_of, network, pool, port, subnet

TWO = [{"ip_address": "10.50.0.7"}, {"ip_address": "10.50.0.8"}]


def addresses(port_body: Body) -> list[str]:
    return [address["ip_address"] for address in port_body["fixed_ips"]]


def change(doors: Doors, port_body: Body, fixed_ips: t.Sequence[Body], status: int = 200) -> t.Any:
    body = doors.member.put(f"/ports/{port_body['id']}", {"port": {"fixed_ips": list(fixed_ips)}}, status)
    return addresses(body["port"]) if status == 200 else body


def attach(cloud: Cloud, doors: Doors, made_port: Body, name: str = "web") -> str:
    """Give the port to a server on hv1."""
    server = cloud.instance(doors.project, name, cloud.host("hv1"), power_state=1)
    mine = tables.vif.c.id == made_port["id"]
    cloud.write(sa.update(tables.vif).where(mine).values(instance_uuid=server, position=0))
    return server


def held(cloud: Cloud) -> int:
    query = sa.select(sa.func.count()).select_from(tables.fixed_ip).where(tables.fixed_ip.c.owner.is_not(None))
    return int(cloud.rows(query)[0][0])


def test_a_port_has_the_addresses_that_it_names_and_any(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    four = subnet(doors, of)["id"]
    six = subnet(doors, of, "fd00:50::/64")["id"]
    made = port(doors, of, fixed_ips=[{"subnet_id": four}, *TWO, {"subnet_id": six}])
    assert addresses(made)[1:3] == ["10.50.0.7", "10.50.0.8"] and len(made["fixed_ips"]) == 4
    assert [address["subnet_id"] for address in made["fixed_ips"]] == [four, four, four, six]
    assert doors.member.get("/ports?fixed_ips=ip_address=10.50.0.8")["ports"][0]["id"] == made["id"]
    assert error_of(doors.member.post("/ports", {"port": {"network_id": of["id"], "fixed_ips": TWO}}, 409)) == (
        "IpAddressInUse"
    )
    doors.member.delete(f"/ports/{made['id']}", 204)
    assert held(cloud) == 0
    assert addresses(port(doors, of, fixed_ips=TWO)) == ["10.50.0.7", "10.50.0.8"]


@pytest.mark.parametrize(
    "wrong",
    [
        [{"ip_address": "10.50.0.7"}] * 2,
        [{"ip_address": f"10.50.0.{number}"} for number in range(10, 16)],
        [{"ip_address": "10.50.0.7"}, {"ip_address": "10.51.0.7"}],
    ],
    ids=["twice", "six", "outside"],
)
def test_addresses_that_cannot_be(cloud: Cloud, doors: Doors, wrong: list[Body]) -> None:
    of = network(doors)
    subnet(doors, of)
    doors.member.post("/ports", {"port": {"network_id": of["id"], "fixed_ips": wrong}}, 400)
    assert held(cloud) == 0


def test_ipv6_gives_a_port_one_address(doors: Doors) -> None:
    of = network(doors)
    six = {"subnet_id": subnet(doors, of, "fd00:50::/64")["id"]}
    doors.member.post("/ports", {"port": {"network_id": of["id"], "fixed_ips": [six, six]}}, 400)


def test_addresses_come_and_go_one_by_one(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    inside = subnet(doors, of)
    made = port(doors, of, fixed_ips=TWO)
    three = [*TWO, {"ip_address": "10.50.0.9"}]
    assert change(doors, made, three) == ["10.50.0.7", "10.50.0.8", "10.50.0.9"]
    assert change(doors, made, [{"subnet_id": inside["id"]}] * 3) == ["10.50.0.7", "10.50.0.8", "10.50.0.9"]
    # the first one goes: the next one is what DHCP tells the guest
    assert change(doors, made, three[1:]) == ["10.50.0.8", "10.50.0.9"]
    rows = cloud.rows(sa.select(tables.fixed_ip).where(tables.fixed_ip.c.owner.is_not(None)).order_by("owner"))
    assert [(row.owner, row.further_of) for row in rows] == [
        (f"vif:{made['id']}", None),
        (f"vif:{made['id']}/2", made["id"]),
    ]
    assert change(doors, made, [{"ip_address": "10.50.0.20"}]) == ["10.50.0.20"]
    assert held(cloud) == 1
    assert change(doors, made, []) == []
    assert held(cloud) == 0
    assert change(doors, made, TWO) == ["10.50.0.7", "10.50.0.8"]


def test_one_that_fails_changes_nothing(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    made, other = port(doors, of, fixed_ips=TWO), port(doors, of, fixed_ips=[{"ip_address": "10.50.0.9"}])
    assert error_of(change(doors, made, [{"ip_address": "10.50.0.9"}, TWO[1]], 409)) == "IpAddressInUse"
    assert addresses(doors.member.get(f"/ports/{made['id']}")["port"]) == ["10.50.0.7", "10.50.0.8"]
    assert addresses(doors.member.get(f"/ports/{other['id']}")["port"]) == ["10.50.0.9"]


def test_the_quota_counts_each(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    attach(cloud, doors, port(doors, of, fixed_ips=TWO))
    compute = User(cloud, doors.client, doors.project, "member", "/compute/v2.1")
    limits = compute.get(f"/os-quota-sets/{doors.project}/detail")["quota_set"]["fixed_ips"]
    assert limits["in_use"] == 2


def test_a_server_has_all_of_them(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    made = port(doors, of, fixed_ips=TWO)
    server = attach(cloud, doors, made)
    compute = User(cloud, doors.client, doors.project, "member", "/compute/v2.1")
    shown = compute.get(f"/servers/{server}")["server"]["addresses"]["web"]
    assert [(address["addr"], address["OS-EXT-IPS:type"]) for address in shown] == [
        ("10.50.0.7", "fixed"),
        ("10.50.0.8", "fixed"),
    ]
    (interface,) = compute.get(f"/servers/{server}/os-interface")["interfaceAttachments"]
    assert addresses(interface) == ["10.50.0.7", "10.50.0.8"]
    assert [shown_server["id"] for shown_server in compute.get("/servers?ip=10.50.0.8")["servers"]] == [server]
    with transaction(cloud.engine) as connection:
        (instance,) = views.instances_by(connection, uuids=[server])
        by_second = guest_lookup.uuid_at(connection, of["id"], "10.50.0.8", "hv1")
    assert (instance["nics"][0]["ip"], instance["nics"][0]["more_ips"]) == ("10.50.0.7", ["10.50.0.8"])
    assert by_second == server
    assert change(doors, made, TWO) == ["10.50.0.7", "10.50.0.8"] and doors.jobs() == []  # nothing changes


def test_addresses_of_a_server_come_and_go(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    made = port(doors, of, fixed_ips=TWO)
    server = attach(cloud, doors, made)
    three = [*TWO, {"ip_address": "10.50.0.9"}]
    assert change(doors, made, three) == ["10.50.0.7", "10.50.0.8", "10.50.0.9"]
    (job,) = doors.jobs()
    assert (job["kind"], job["variables"]) == ("security_groups", {"project": "demo", "ports": [made["id"]]})
    assert change(doors, made, three[1:]) == ["10.50.0.8", "10.50.0.9"]
    assert "keeps an IPv4 address" in str(change(doors, made, [], 400))
    (plan,) = host_plans(cloud, made)
    (guest,) = plan["dhcp_networks"][0]["hosts"]
    assert guest["ip"] == "10.50.0.8" and "10.50.0.9" in plan["domains"][0]["xml"]
    cloud.write(sa.update(tables.instance).where(tables.instance.c.uuid == server).values(task_state="resize_prep"))
    change(doors, made, TWO, 409)
    assert addresses(doors.member.get(f"/ports/{made['id']}")["port"]) == ["10.50.0.8", "10.50.0.9"]


def host_plans(cloud: Cloud, of_port: Body) -> list[Body]:
    """The plans that the job of a port's change gives to hosts."""
    cloud.write(sa.update(tables.compute_host).values(facts=FACTS))
    with transaction(cloud.engine) as connection:
        return list(port_plan(connection, {"ports": [of_port["id"]], "state_dir": "/state"})["hosts"].values())


def test_a_server_gets_and_loses_fixed_ips(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    made = port(doors, of, fixed_ips=TWO[:1])
    server = attach(cloud, doors, made)
    compute = User(cloud, doors.client, doors.project, "member", "/compute/v2.1")

    def act(body: Body, status: int) -> str:
        return str(compute.post(f"/servers/{server}/action", body, status))

    act({"addFixedIp": {"networkId": of["id"]}}, 202)
    first, second = addresses(doors.member.get(f"/ports/{made['id']}")["port"])
    assert first == "10.50.0.7" and doors.jobs()[-1]["variables"]["ports"] == [made["id"]]
    act({"removeFixedIp": {"address": first}}, 202)
    assert addresses(doors.member.get(f"/ports/{made['id']}")["port"]) == [second]
    assert "keeps an IPv4 address" in act({"removeFixedIp": {"address": second}}, 400)
    assert "does not have fixed IP '10.50.0.99'" in act({"removeFixedIp": {"address": "10.50.0.99"}}, 400)
    assert "could not be found" in act({"addFixedIp": {"networkId": "42"}}, 404)
    for _more in range(4):
        act({"addFixedIp": {"networkId": of["id"]}}, 202)
    assert "maximum amount of fixed ips" in act({"addFixedIp": {"networkId": of["id"]}}, 400)
    cloud.write(sa.update(tables.instance).values(locked=True))
    act({"removeFixedIp": {"address": second}}, 409)
    for body in ({"addFixedIp": {"networkId": of["id"]}}, {"removeFixedIp": {"address": second}}):
        compute.post(f"/servers/{server}/action", body, 404, version="2.44")


def test_the_quota_limits_what_a_server_gets(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    made = port(doors, of, fixed_ips=TWO)
    attach(cloud, doors, made)
    cloud.insert(tables.quota, project_id=doors.project, resource="fixed_ips", hard_limit=2)
    change(doors, made, [*TWO, {"ip_address": "10.50.0.9"}], 409)
    assert addresses(doors.member.get(f"/ports/{made['id']}")["port"]) == ["10.50.0.7", "10.50.0.8"]


def test_groups_and_others_address_pairs_know_all_of_them(cloud: Cloud, doors: Doors) -> None:
    of = network(doors)
    subnet(doors, of)
    server = attach(cloud, doors, port(doors, of, fixed_ips=TWO))
    number, _group = doors.group("web")
    (row,) = cloud.rows(sa.select(tables.instance.c.id).where(tables.instance.c.uuid == server))
    cloud.insert(tables.instance_security_group, instance_id=row.id, group_id=number)
    (net,) = cloud.rows(sa.select(tables.network).where(tables.network.c.uuid == of["id"]))
    pairs: list[AddressPair] = [{"ip_address": "10.50.0.6/31", "mac_address": None}, *_single("10.50.0.8")]
    with transaction(cloud.engine) as connection:
        members = group_members.members_of(connection, [number])[number]
        left = address_pairs.without_others(connection, doors.other, net.id, pairs)
    assert {"10.50.0.7", "10.50.0.8"} <= set(members[net.bridge])
    assert [pair["ip_address"] for pair in left] == ["10.50.0.6"]


def _single(address: str) -> list[AddressPair]:
    return [{"ip_address": address, "mac_address": None}]


def routed(cloud: Cloud, doors: Doors) -> tuple[str, Body]:
    """The id of a floating pool, and a port with TWO addresses whose network a router connects to it."""
    outside, of = pool(cloud), network(doors)
    inside = subnet(doors, of)
    made = port(doors, of, fixed_ips=TWO)
    router = doors.member.post("/routers", {"router": {"external_gateway_info": {"network_id": outside}}}, 201)
    doors.member.put(f"/routers/{router['router']['id']}/add_router_interface", {"subnet_id": inside["id"]})
    return outside, made


def test_floating_ips_lead_to_each(cloud: Cloud, doors: Doors) -> None:
    outside, made = routed(cloud, doors)
    body = {"floating_network_id": outside, "port_id": made["id"]}
    assert "multiple fixed IPv4" in str(doors.member.post("/floatingips", {"floatingip": body}, 400))
    third = {"floatingip": {**body, "fixed_ip_address": "10.50.0.9"}}
    assert "does not have" in str(doors.member.post("/floatingips", third, 400))
    floating_ips = {}
    for address in ("10.50.0.7", "10.50.0.8"):
        floating_ip_body = {"floatingip": {**body, "fixed_ip_address": address}}
        floating_ips[address] = doors.member.post("/floatingips", floating_ip_body, 201)["floatingip"]
        assert floating_ips[address]["fixed_ip_address"] == address
        assert error_of(doors.member.post("/floatingips", floating_ip_body, 409)) == "FloatingIPPortAlreadyAssociated"
    # the first address goes: what led there leads to what is first now, and nobody has two
    second = floating_ips["10.50.0.8"]
    doors.member.put(f"/floatingips/{floating_ips['10.50.0.7']['id']}", {"floatingip": {"port_id": None}})
    moved = {"floatingip": {"port_id": made["id"], "fixed_ip_address": "10.50.0.7"}}
    assert doors.member.put(f"/floatingips/{second['id']}", moved)["floatingip"]["fixed_ip_address"] == "10.50.0.7"
    back = {"floatingip": {"port_id": made["id"], "fixed_ip_address": "10.50.0.8"}}
    assert doors.member.put(f"/floatingips/{second['id']}", back)["floatingip"]["fixed_ip_address"] == "10.50.0.8"
    # an address alone is of no port, as in Neutron: refused, and not passed over
    alone = {"floatingip": {"fixed_ip_address": "10.50.0.7"}}
    assert "without a port_id" in str(doors.member.put(f"/floatingips/{second['id']}", alone, 400))
    attach(cloud, doors, made)
    with transaction(cloud.engine) as connection:
        (instance,) = views.instances_by(connection, names=["web"])
        ((_uuid, entry),) = next(iter(host_networks.floating(connection, ["hv1"]).values()))
    (planned,) = networks.routers([instance])
    shown = {"fixed": "10.50.0.8", "floating": second["floating_ip_address"], "interface": "eth0"}
    assert planned["floating"] == [shown] == [entry]
    first = {"floatingip": {"port_id": made["id"], "fixed_ip_address": "10.50.0.7"}}
    assert doors.member.put(f"/floatingips/{second['id']}", first)["floatingip"]["fixed_ip_address"] == "10.50.0.7"
    assert doors.jobs()[-1]["kind"] == "floating_ips"


def test_an_address_that_goes_from_a_server_takes_its_floating_ip(cloud: Cloud, doors: Doors) -> None:
    outside, made = routed(cloud, doors)
    leads: dict[str, str] = {}
    for address in ("10.50.0.7", "10.50.0.8"):
        floating_ip_body = {"floating_network_id": outside, "port_id": made["id"], "fixed_ip_address": address}
        leads[address] = doors.member.post("/floatingips", {"floatingip": floating_ip_body}, 201)["floatingip"]["id"]
    attach(cloud, doors, made)
    assert change(doors, made, TWO[1:]) == ["10.50.0.8"]
    shown = {address: doors.member.get(f"/floatingips/{number}")["floatingip"] for address, number in leads.items()}
    assert shown["10.50.0.7"]["port_id"] is None and shown["10.50.0.7"]["fixed_ip_address"] is None
    assert (shown["10.50.0.8"]["port_id"], shown["10.50.0.8"]["fixed_ip_address"]) == (made["id"], "10.50.0.8")
    kinds = {job["kind"]: job["variables"] for job in doors.jobs()}
    assert set(kinds) == {"security_groups", "floating_ips"}
    assert (kinds["floating_ips"]["network_hosts"], kinds["floating_ips"]["holders"]) == (["hv1"], ["hv1"])


def test_an_address_that_goes_takes_its_floating_ip(cloud: Cloud, doors: Doors) -> None:
    outside, made = routed(cloud, doors)
    floating_ip_body = {"floating_network_id": outside, "port_id": made["id"], "fixed_ip_address": "10.50.0.8"}
    led = doors.member.post("/floatingips", {"floatingip": floating_ip_body}, 201)["floatingip"]
    # the other one goes: this one is the first now, and still led to
    assert change(doors, made, TWO[1:]) == ["10.50.0.8"]
    assert doors.member.get(f"/floatingips/{led['id']}")["floatingip"]["fixed_ip_address"] == "10.50.0.8"
    assert change(doors, made, [*TWO[1:], {"ip_address": "10.50.0.9"}]) == ["10.50.0.8", "10.50.0.9"]
    moved = {"floatingip": {"port_id": made["id"], "fixed_ip_address": "10.50.0.9"}}
    doors.member.put(f"/floatingips/{led['id']}", moved)
    assert change(doors, made, TWO[1:]) == ["10.50.0.8"]
    after = doors.member.get(f"/floatingips/{led['id']}")["floatingip"]
    assert (after["port_id"], after["fixed_ip_address"]) == (None, None)
