# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routers of tenants, what administrators make for them, and tags."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from tests.api.conftest import Cloud
from tests.api.doors import Doors, User
from tests.api.network.test_tenant_networks import Body, error_of, network, pool, port, subnet

# --- Routers --------------------------------------------------------------------------------------------------------


def test_a_router_lets_the_guests_of_its_networks_out(cloud: Cloud, doors: Doors) -> None:
    outside, of = pool(cloud), network(doors)
    inside = subnet(doors, of)
    router = doors.member.post("/routers", {"router": {"name": "r"}}, 201)["router"]
    assert router["external_gateway_info"] is None
    done = doors.member.put(f"/routers/{router['id']}/add_router_interface", {"subnet_id": inside["id"]})
    assert done["subnet_ids"] == [inside["id"]] and done["id"] == router["id"]
    (shown,) = doors.member.get(f"/ports?device_id={router['id']}")["ports"]
    assert shown["device_owner"] == "network:router_interface" and shown["id"] == done["port_id"]
    assert shown["fixed_ips"] == [{"subnet_id": inside["id"], "ip_address": "10.50.0.1"}]
    same = doors.member.put(f"/ports/{done['port_id']}", {"port": {"fixed_ips": [{"subnet_id": inside["id"]}]}})["port"]
    assert same["fixed_ips"] == shown["fixed_ips"]
    other = {"port": {"fixed_ips": [{"ip_address": "10.50.0.9"}]}}
    assert error_of(doors.member.put(f"/ports/{done['port_id']}", other, 409)) == "PortInUse"
    doors.member.put(f"/routers/{router['id']}/add_router_interface", {"subnet_id": inside["id"]}, 400)
    row = {row["uuid"]: row for row in doors.rows(tables.network)}[of["id"]]
    assert not row["snat"]
    with transaction(cloud.engine) as connection:
        network_row = connection.execute(sa.select(tables.network).where(tables.network.c.uuid == of["id"])).one()
    cloud.insert(
        tables.vif,
        id="11111111-0000-4000-8000-000000000001",
        mac="fa:16:3e:00:00:77",
        position=0,
        network_id=network_row.id,
        instance_uuid=cloud.instance(doors.project, "guest", cloud.host("hv1"), []),
    )
    gateway = {"router": {"external_gateway_info": {"network_id": outside}}}
    after = doors.member.put(f"/routers/{router['id']}", gateway)["router"]
    leads = after["external_gateway_info"]
    assert (leads["network_id"], leads["enable_snat"]) == (outside, True)
    assert [address["ip_address"] for address in leads["external_fixed_ips"]] == ["203.0.113.1"]
    assert {row["uuid"]: row for row in doors.rows(tables.network)}[of["id"]]["snat"]
    (job,) = doors.jobs()
    assert (job["kind"], job["variables"]["network_hosts"]) == ("floating_ips", ["hv1"])
    assert error_of(doors.member.delete(f"/routers/{router['id']}", 409)) == "RouterInUse"
    assert error_of(doors.member.delete(f"/ports/{done['port_id']}", 409)) == "ServicePortInUse"
    doors.member.put(f"/routers/{router['id']}", {"router": {"external_gateway_info": {}}})
    assert not {row["uuid"]: row for row in doors.rows(tables.network)}[of["id"]]["snat"]
    doors.stranger.put(f"/routers/{router['id']}/remove_router_interface", {"subnet_id": inside["id"]}, 404)
    doors.member.put(f"/routers/{router['id']}/remove_router_interface", {"subnet_id": inside["id"]})
    gone = doors.member.put(f"/routers/{router['id']}/remove_router_interface", {"subnet_id": inside["id"]}, 404)
    assert error_of(gone) == "RouterInterfaceNotFound"
    doors.member.get(f"/ports/{done['port_id']}", 404)
    doors.stranger.delete(f"/routers/{router['id']}", 404)
    doors.member.delete(f"/routers/{router['id']}", 204)


def test_a_router_stands_on_its_projects_own_networks(cloud: Cloud, doors: Doors) -> None:
    shared = cloud.network("shared", "10.77.0.0/24")
    shared_network = doors.member.get(f"/networks/{shared.uuid}")["network"]
    router = doors.member.post("/routers", {"router": {"name": "r"}}, 201)["router"]
    own = port(doors, {"id": shared.uuid})  # a port of the project's there
    for interface in ({"subnet_id": shared_network["subnets"][0]}, {"port_id": own["id"]}):
        refused = doors.member.put(f"/routers/{router['id']}/add_router_interface", interface, 403)
        assert error_of(refused) == "PolicyNotAuthorized"


@pytest.mark.parametrize("routes", [None, []])
def test_a_router_without_routes(doors: Doors, routes: list[t.Any] | None) -> None:
    """As gophercloud and Terraform write it."""
    router = doors.member.post("/routers", {"router": {"name": "r", "routes": routes}}, 201)["router"]
    assert doors.member.put(f"/routers/{router['id']}", {"router": {"routes": routes}})["router"]["routes"] == []
    some = [{"destination": "10.9.0.0/24", "nexthop": "10.1.0.1"}]
    doors.member.put(f"/routers/{router['id']}", {"router": {"routes": some}}, 400)


def test_routers_refuse_what_no_host_could_do(cloud: Cloud, doors: Doors) -> None:
    a, b = network(doors), network(doors)
    inside, same = subnet(doors, a), subnet(doors, b)
    router = doors.member.post("/routers", {"router": {"name": "r"}}, 201)["router"]
    lonely = port(doors, a)
    done = doors.member.put(f"/routers/{router['id']}/add_router_interface", {"port_id": lonely["id"]})
    assert done["subnet_id"] == inside["id"]
    taken = doors.member.put(f"/routers/{router['id']}/add_router_interface", {"port_id": lonely["id"]}, 409)
    assert error_of(taken) == "PortInUse"
    doors.member.put(f"/routers/{router['id']}/add_router_interface", {"subnet_id": same["id"]}, 400)  # overlaps
    router_body = {"external_gateway_info": {"network_id": a["id"]}}
    doors.member.put(f"/routers/{router['id']}", {"router": router_body}, 400)
    router_body = {"external_gateway_info": {"network_id": "11111111-2222-3333-4444-555555555555"}}
    doors.member.put(f"/routers/{router['id']}", {"router": router_body}, 404)
    router_body = {"external_gateway_info": {"network_id": pool(cloud), "enable_snat": False}}
    doors.member.put(f"/routers/{router['id']}", {"router": router_body}, 403)
    after = doors.admin.put(f"/routers/{router['id']}", {"router": router_body})["router"]
    assert after["external_gateway_info"]["enable_snat"] is False
    doors.member.put(f"/routers/{router['id']}/remove_router_interface", {"port_id": lonely["id"]})
    doors.member.put(f"/routers/{router['id']}/add_router_interface", {}, 400)


def test_administrators_see_and_make_for_all_projects(cloud: Cloud, doors: Doors) -> None:
    outside, of = pool(cloud), network(doors)
    subnet(doors, of)
    theirs = doors.stranger.post("/networks", {"network": {"name": "theirs"}}, 201)["network"]
    assert {record["id"] for record in doors.admin.get("/networks")["networks"]} >= {of["id"], theirs["id"]}
    body = {"network": {"name": "given", "tenant_id": doors.other}}
    doors.member.post("/networks", body, 403)
    assigned_network = doors.admin.post("/networks", body, 201)["network"]
    assert assigned_network["project_id"] == doors.other and doors.stranger.get(f"/networks/{assigned_network['id']}")
    doors.member.get(f"/networks/{assigned_network['id']}", 404)
    doors.admin.post("/networks", {"network": {"tenant_id": "0" * 32}}, 404)
    made = doors.stranger.post("/routers", {"router": {"name": "r"}}, 201)["router"]
    change = {"router": {"external_gateway_info": {"network_id": outside, "enable_snat": False}}}
    assert doors.admin.put(f"/routers/{made['id']}", change)["router"]["project_id"] == doors.other
    body = {"floatingip": {"floating_network_id": outside, "tenant_id": doors.other}}
    led = doors.admin.post("/floatingips", body, 201)["floatingip"]
    assert led["project_id"] == doors.other
    doors.member.get(f"/floatingips/{led['id']}", 404)
    doors.admin.delete(f"/floatingips/{led['id']}", 204)
    assert doors.member.get("/subnets?network_id=" + outside)["subnets"] == []
    assert len(doors.admin.get("/subnets?network_id=" + outside)["subnets"]) == 1
    assert doors.member.get("/agents")["agents"] == []
    cloud.host("hv1")
    assert [agent["host"] for agent in doors.admin.get("/agents")["agents"]] == ["hv1"]


# --- Tags -----------------------------------------------------------------------------------------------------------


def test_tags_are_kept_and_found(doors: Doors) -> None:
    of = network(doors)
    things = {
        "networks": of["id"],
        "subnets": subnet(doors, of)["id"],
        "ports": port(doors, of)["id"],
        "routers": doors.member.post("/routers", {"router": {}}, 201)["router"]["id"],
        "security-groups": doors.group("web")[1],
    }
    for plural, number in things.items():
        path, key = f"/{plural}/{number}/tags", plural.replace("-", "_")
        assert doors.member.put(path, {"tags": ["red", "blue", "red"]})["tags"] == ["blue", "red"]
        doors.member.put(f"{path}/green", None, 201)
        assert doors.member.get(f"/{plural}/{number}")[key[:-1]]["tags"] == ["blue", "green", "red"]
        for query, hits in (
            ("tags=red,blue", 1),
            ("tags=red,black", 0),
            ("tags-any=black,red", 1),
            ("not-tags=red,blue", 0),
            ("not-tags-any=black", 1),
        ):
            record_ids = [record["id"] for record in doors.member.get(f"/{plural}?{query}")[key]]
            assert (number in record_ids) == bool(hits), (plural, query)
        doors.member.get(f"{path}/red", 204)
        doors.member.delete(f"{path}/red", 204)
        assert error_of(doors.member.get(f"{path}/red", 404)) == "TagNotFound"
        doors.member.delete(f"{path}/red", 404)
        doors.member.delete(path, 204)
        assert doors.member.get(path)["tags"] == []
        doors.stranger.get(path, 404)
        doors.stranger.put(f"{path}/x", None, 404)
    doors.member.put(f"/networks/{of['id']}/tags", {"tags": ["x" * 256]}, 400)
    doors.member.put(f"/networks/{of['id']}/tags", {"tags": [f"t{n}" for n in range(51)]}, 400)


def test_a_router_has_a_gateway_address_of_its_own(cloud: Cloud, doors: Doors) -> None:
    """Of the 14 of the pool; nobody else gets it while the router has it, and administrators choose it."""
    outside = pool(cloud)

    def made(user: User, status: int = 201, **leads: t.Any) -> Body:
        body = {"router": {"name": "r", "external_gateway_info": {"network_id": outside, **leads}}}
        answer = user.post("/routers", body, status)
        return t.cast("Body", answer["router"] if status == 201 else answer)

    def led(router: Body) -> list[str]:
        return [address["ip_address"] for address in router["external_gateway_info"]["external_fixed_ips"]]

    first, second = made(doors.member), made(doors.member)
    assert len({*led(first), *led(second)}) == 2
    (own,) = first["external_gateway_info"]["external_fixed_ips"]
    assert own["subnet_id"] in {row["id"] for row in doors.admin.get("/subnets")["subnets"]}
    taken = {"floatingip": {"floating_network_id": outside, "floating_ip_address": own["ip_address"]}}
    doors.admin.post("/floatingips", taken, 409)
    path, more = (
        f"/routers/{first['id']}",
        {"network_id": outside, "external_fixed_ips": [own, {"subnet_id": own["subnet_id"]}]},
    )
    doors.member.put(path, {"router": {"external_gateway_info": more}}, 403)
    both = doors.admin.put(path, {"router": {"external_gateway_info": more}})["router"]
    assert own["ip_address"] in led(both) and len(led(both)) == 2
    same = doors.member.put(path, {"router": {"external_gateway_info": {"network_id": outside}}})["router"]
    assert led(same) == led(both)
    others = {"external_fixed_ips": [{"ip_address": led(second)[0]}]}
    assert error_of(made(doors.admin, 409, **others)) == "IpAddressInUse"
    made(doors.admin, 409, external_fixed_ips=[{"ip_address": "198.51.100.1"}])
    made(doors.admin, 400, external_fixed_ips=[{"subnet_id": first["id"]}])
    rest = [made(doors.admin, external_fixed_ips=[{}] * 8), made(doors.admin, external_fixed_ips=[{}] * 3)]
    assert error_of(made(doors.member, 409)) == "IpAddressGenerationFailure"
    doors.member.put(path, {"router": {"external_gateway_info": {}}})
    for router in rest:
        doors.admin.delete(f"/routers/{router['id']}", 204)
    chosen = made(doors.admin, external_fixed_ips=[{"ip_address": own["ip_address"]}])
    assert led(chosen) == [own["ip_address"]]
