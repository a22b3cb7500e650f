# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating IPs of ports on projects' own networks: the router that they lead through stays, and the project."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import network as network_table
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import vif
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_networking import router
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.host_networks import floating
from tests.api.conftest import Cloud
from tests.api.doors import Doors
from tests.api.network.test_tenant_networks import Body, error_of, network, pool, port, subnet


class Led(t.NamedTuple):
    """A server's port in the first of two subnets with a router, and the floating IP that leads to it."""

    outside: str
    router: str
    subnets: tuple[str, str]
    port: Body
    floating: Body


def led(cloud: Cloud, doors: Doors) -> Led:
    outside, of = pool(cloud), network(doors)
    subnets = (subnet(doors, of)["id"], subnet(doors, of, "10.51.0.0/24")["id"])
    body = {"router": {"name": "r", "external_gateway_info": {"network_id": outside}}}
    number = doors.member.post("/routers", body, 201)["router"]["id"]
    for each in subnets:
        doors.member.put(f"/routers/{number}/add_router_interface", {"subnet_id": each})
    made = port(doors, of, fixed_ips=[{"subnet_id": subnets[0]}])
    uuid = cloud.instance(doors.project, "web", cloud.host("hv1"))
    cloud.write(sa.update(vif).where(vif.c.id == made["id"]).values(instance_uuid=uuid, position=0))
    body = {"floatingip": {"floating_network_id": outside, "port_id": made["id"]}}
    return Led(outside, number, subnets, made, doors.member.post("/floatingips", body, 201)["floatingip"])


@pytest.mark.parametrize("gateway", [None, {}])
def test_a_router_stays_that_a_floating_ip_leads_through(cloud: Cloud, doors: Doors, gateway: Body | None) -> None:
    there = led(cloud, doors)
    first, second = ({"subnet_id": each} for each in there.subnets)
    at, clear = f"/routers/{there.router}", {"router": {"external_gateway_info": gateway}}
    remove = f"{at}/remove_router_interface"
    assert error_of(doors.member.put(at, clear, 409)) == "RouterExternalGatewayInUseByFloatingIp"
    assert error_of(doors.admin.put(remove, first, 409)) == "RouterInterfaceInUseByFloatingIP"
    doors.member.put(at, {"router": {"external_gateway_info": {"network_id": there.outside}}})  # it stays
    doors.member.put(remove, second)
    shown = doors.member.get(f"/floatingips/{there.floating['id']}")["floatingip"]
    assert (shown["router_id"], shown["port_id"]) == (there.router, there.port["id"])
    doors.member.put(f"/floatingips/{there.floating['id']}", {"floatingip": {"port_id": None}})
    doors.member.put(at, clear)
    doors.member.put(remove, first)
    doors.member.delete(at, 204)


def test_hosts_translate_to_what_a_router_leads_to(cloud: Cloud, doors: Doors) -> None:
    there = led(cloud, doors)

    def planned() -> tuple[int, int]:
        with transaction(cloud.engine) as connection:
            (server,) = instances_by(connection, hosts=["hv1"])
            return len(floating(connection, ["hv1"])), len(server["nics"][0]["floating_ips"])

    assert planned() == (1, 1)
    cloud.write(sa.update(router).where(router.c.id == there.router).values(external_pool=None))
    assert planned() == (0, 0)
    cloud.write(sa.update(network_table).values(tenant=False))  # the operator's, which every host routes for
    assert planned() == (1, 1)


@pytest.mark.parametrize("attached", [True, False])
def test_a_floating_ip_leads_to_no_port_of_another_project(cloud: Cloud, doors: Doors, attached: bool) -> None:
    there = led(cloud, doors)
    target = there.port if attached else port(doors, {"id": there.port["network_id"]})
    body = {"floatingip": {"floating_network_id": there.outside}}
    theirs = doors.stranger.post("/floatingips", body, 201)["floatingip"]["id"]
    doors.admin.put(f"/floatingips/{theirs}", {"floatingip": {"port_id": target["id"]}}, 400)
    named = {**body["floatingip"], "port_id": target["id"], "project_id": doors.other}
    doors.admin.post("/floatingips", {"floatingip": named}, 400)
    shown = doors.stranger.get("/floatingips")["floatingips"]
    assert [each["port_id"] for each in shown] == [None]
