# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks that become external, and external ones that become networks again, as administrators ask Neutron for it."""

from __future__ import annotations

import dataclasses
import itertools
import os
import subprocess
import sys
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from tests.api import seeds
from tests.api.compute import test_interfaces_api as compute
from tests.api.compute.test_interfaces_api import ask, port, rows, server
from tests.api.seeds import Api

NETWORKS, SUBNETS = "/network/v2.0/networks", "/network/v2.0/subnets"
ROUTERS, FLOATING = "/network/v2.0/routers", "/network/v2.0/floatingips"
QUOTAS = "/network/v2.0/quotas"
CIDR = "198.51.100.0/28"
Body = dict[str, t.Any]
hosts = compute.hosts  # what hosts say of themselves


@pytest.fixture(autouse=True)
def interfaces(api: Api) -> None:
    extensions = api.app.extensions
    extensions["settings"] = dataclasses.replace(extensions["settings"], physical_networks="eth1")


@dataclasses.dataclass(frozen=True)
class State:
    """State of a network and its things; `external`: whether it is, and `held`: why it cannot become the other."""

    values: Body = dataclasses.field(default_factory=dict)
    cidrs: tuple[str, ...] = (CIDR,)
    external: bool = False
    has: str | None = None
    held: str | None = None


FLAT = {"provider:network_type": "flat", "provider:physical_network": "eth1"}
STATES = {
    "bare": State(cidrs=()),
    "with a subnet": State(),
    "flat": State(values=FLAT),
    "of a VLAN": State(
        values={"provider:network_type": "vlan", "provider:physical_network": "eth1"}, held="lies on a VLAN"
    ),
    "shared": State(values={"shared": True}, held="while it is shared"),
    "down": State(values={"admin_state_up": False}, held="while it is down"),
    "default": State(values={"is_default": True}, held="servers are put on it by default"),
    "of two subnets": State(cidrs=(CIDR, "203.0.114.0/28"), held="one subnet of IPv4"),
    "of IPv6": State(cidrs=(CIDR, "2001:db8:7::/64"), held="one subnet of IPv4"),
    "with a port": State(has="port", held="ports still in use"),
    "with a server": State(has="server", held="ports still in use"),
    "routed": State(has="interface", held="ports still in use"),
    "external, bare": State(cidrs=(), external=True),
    "external": State(external=True),
    "with a floating IP": State(external=True, has="address", held="is allocated to the project"),
    "with a gateway": State(external=True, has="gateway", held="it has existing gateway ports"),
}


def made(api: Api, state: State) -> str:
    admin, demo = api.client_as("admin"), api.client_as("demo")
    body = {"name": "n", "tenant_id": api.projects["demo"], "router:external": state.external, **state.values}
    number = ask(admin, "POST", NETWORKS, {"network": body}, 201)["network"]["id"]
    for cidr in state.cidrs:
        version = 6 if ":" in cidr else 4
        subnet = {"network_id": number, "ip_version": version, "cidr": cidr, "name": "s"}
        ask(admin, "POST", SUBNETS, {"subnet": subnet}, 201)
    if state.has == "port":
        port(demo, number)
    elif state.has == "server":
        server(demo, [{"uuid": number}])
    elif state.has == "interface":
        router = ask(demo, "POST", ROUTERS, {"router": {"name": "r"}}, 201)["router"]["id"]
        (subnet_id,) = ask(demo, "GET", f"{NETWORKS}/{number}")["network"]["subnets"]
        ask(demo, "PUT", f"{ROUTERS}/{router}/add_router_interface", {"subnet_id": subnet_id})
    elif state.has == "address":
        ask(demo, "POST", FLOATING, {"floatingip": {"floating_network_id": number}}, 201)
    elif state.has == "gateway":
        ask(demo, "POST", ROUTERS, {"router": {"external_gateway_info": {"network_id": number}}}, 201)
    return str(number)


def look(api: Api, number: str) -> tuple[Body, list[Body]]:
    admin = api.client_as("admin")
    network = ask(admin, "GET", f"{NETWORKS}/{number}")["network"]
    subnets = ask(admin, "GET", f"{SUBNETS}?network_id={number}")["subnets"]
    return network, subnets


@pytest.mark.parametrize(("kind", "value"), list(itertools.product(STATES, (True, False))))
def test_each_network_becomes_external_and_back_or_stays_whole(api: Api, kind: str, value: bool) -> None:
    state = STATES[kind]
    number = made(api, state)
    before, subnets_before = look(api, number)
    refused = value != state.external and state.held is not None
    status = 409 if refused else 200
    change = {"network": {"router:external": value}}
    ask(
        api.client_as("demo"),
        "PUT",
        f"{NETWORKS}/{number}",
        change,
        403 if value or state.external else (403 if before["shared"] else 200),
    )
    answer = ask(api.client_as("admin"), "PUT", f"{NETWORKS}/{number}", change, status)
    after, subnets_after = look(api, number)
    if refused:
        assert state.held is not None and state.held in answer["NeutronError"]["message"]
        assert (after, subnets_after) == (before, subnets_before)
        return
    assert after == answer["network"] and after["router:external"] is value
    kept = ("id", "name", "subnets", "project_id", "description", "mtu", "port_security_enabled", "shared")
    assert [after[key] for key in kept] == [before[key] for key in kept]
    assert of_subnets(subnets_after) == of_subnets(subnets_before)
    if value != state.external:  # and back
        ask(api.client_as("admin"), "PUT", f"{NETWORKS}/{number}", {"network": {"router:external": state.external}})
        again, subnets_again = look(api, number)
        carrier = {key for key in before if key.startswith("provider:")}  # a VXLAN has another number then
        assert {key: again[key] for key in again.keys() - carrier} == {
            key: before[key] for key in before.keys() - carrier
        }
        assert again["provider:network_type"] == before["provider:network_type"]
        assert of_subnets(subnets_again) == of_subnets(subnets_before)


def of_subnets(subnets: list[Body]) -> list[Body]:
    names = ("id", "name", "cidr", "gateway_ip", "allocation_pools", "project_id", "network_id")
    return [{name: subnet[name] for name in names} for subnet in subnets]


# attribute, value; the answer to PUT of an external network, and the reason
TAKEN: list[tuple[str, t.Any, int, str]] = [
    ("name", "other", 200, ""),
    ("name", "", 200, ""),
    ("name", "n" * 255, 200, ""),
    ("name", "n" * 256, 400, "name"),
    ("description", "x", 200, ""),
    ("port_security_enabled", False, 200, ""),
    ("admin_state_up", True, 200, ""),
    ("admin_state_up", False, 409, "it cannot be down"),
    ("shared", False, 200, ""),
    ("shared", True, 409, "it cannot be shared"),
    ("is_default", True, 400, "is_default"),
    ("provider:physical_network", "eth1", 400, "does not support updating provider attributes"),
    # read-only, or not there, for all networks: neither mtu nor DNS is offered for writing
    ("project_id", "d" * 32, 400, "project_id"),
    ("mtu", 1400, 400, "mtu"),
    ("dns_domain", "x.example.", 400, "dns_domain"),
]


@pytest.mark.parametrize("row", TAKEN, ids=[f"{row[0]}={str(row[1])[:9]}" for row in TAKEN])
def test_attributes_of_an_external_network_are_changed_as_neutron_changes_them(api: Api, row: t.Any) -> None:
    name, value, status, why = row
    number = made(api, STATES["with a floating IP"])
    before = look(api, number)
    answer = ask(api.client_as("admin"), "PUT", f"{NETWORKS}/{number}", {"network": {name: value}}, status)
    after = look(api, number)
    if status == 200:
        assert after == ({**before[0], name: value}, before[1]) and answer["network"] == after[0]
        again = made(api, State(values={"name": "n"}, cidrs=(), external=True))  # names are not unique
        assert again != number
    else:
        assert why in answer["NeutronError"]["message"] and after == before


def test_what_a_pool_of_the_operator_is_stays_under_its_address(api: Api) -> None:
    """Its UUID followed from its name, and links hold; it becomes a network only on an interface that is named."""
    api.insert(tables.floating_pool, name="old", cidr="", interface="eth9")
    (pool,) = rows(api, tables.floating_pool)
    assert pool["uuid"] == "251ecf62-8558-52a8-8142-60c6b595c98f"
    path = f"{NETWORKS}/{pool['uuid']}"
    ask(api.client_as("admin"), "PUT", path, {"network": {"name": "new"}})
    assert ask(api.client_as("demo"), "GET", path)["network"]["name"] == "new"
    (pool,) = rows(api, tables.floating_pool)
    assert pool["name"] == "old"  # as playbooks know it
    refusal = ask(api.client_as("admin"), "PUT", path, {"network": {"router:external": False}}, 409)
    assert "does not name its interface eth9" in refusal["NeutronError"]["message"]
    api.write(sa.update(tables.floating_pool).values(interface="eth1"))
    network = ask(api.client_as("admin"), "PUT", path, {"network": {"router:external": False}})["network"]
    assert network["project_id"] == api.projects["demo"] and network["provider:physical_network"] == "eth1"


def test_quotas_count_a_network_whether_it_is_external_or_not(api: Api) -> None:
    admin, demo = api.client_as("admin"), api.client_as("demo")
    number = made(api, STATES["with a subnet"])
    ask(admin, "PUT", f"{QUOTAS}/{api.projects['demo']}", {"quota": {"network": 1}})
    for external in (True, False):
        ask(admin, "PUT", f"{NETWORKS}/{number}", {"network": {"router:external": external}})
        refusal = ask(demo, "POST", NETWORKS, {"network": {"name": "more"}}, 409)
        assert refusal["NeutronError"]["type"] == "OverQuota"
        quota = ask(demo, "GET", f"{QUOTAS}/{api.projects['demo']}/details.json")["quota"]
        assert (quota["network"]["used"], quota["subnet"]["used"]) == (1, 1)


def test_openstacksdk_and_the_command_make_a_network_external_and_back(api: Api, sdk: t.Callable[[str], t.Any]) -> None:
    admin, demo = sdk("admin"), sdk("demo")
    network = admin.network.create_network(name="outside")
    subnet = admin.network.create_subnet(network_id=network.id, ip_version=4, cidr=CIDR, name="range")
    outside = admin.network.update_network(network, is_router_external=True)
    assert (outside.id, outside.is_router_external, outside.subnet_ids) == (network.id, True, [subnet.id])
    led = demo.network.create_ip(floating_network_id=network.id)
    assert led.floating_ip_address.startswith("198.51.100.") and led.floating_network_id == network.id
    ask(api.client_as("admin"), "PUT", f"{NETWORKS}/{network.id}", {"network": {"router:external": False}}, 409)
    demo.network.delete_ip(led)
    inside = admin.network.update_network(network.id, is_router_external=False)
    assert (inside.is_router_external, inside.subnet_ids) == (False, [subnet.id])
    assert port(api.client_as("admin"), network.id)["fixed_ips"][0]["subnet_id"] == subnet.id
    other = admin.network.create_network(name="by-command")
    project, _role = seeds.USERS["admin"][:2]
    login = {"USERNAME": "admin", "PASSWORD": seeds.password("admin"), "PROJECT_NAME": project}
    place = {"AUTH_URL": admin.config.auth["auth_url"], "USER_DOMAIN_ID": "default", "PROJECT_DOMAIN_ID": "default"}
    environment = {**os.environ, **{f"OS_{key}": value for key, value in {**login, **place}.items()}}
    command = os.path.join(os.path.dirname(sys.executable), "openstack")
    for words, external in ((["--external", "--name", "named"], True), (["--internal"], False)):
        subprocess.run([command, "network", "set", *words, other.id], env=environment, check=True, timeout=120)
        seen = admin.network.get_network(other.id)
        assert (seen.is_router_external, seen.name) == (external, "named")
