# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attributes of networks that members and administrators give and change, as Neutron takes them."""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import address_pairs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.steps.server_plan import server_plan
from ansible_collections.novalite.cloud.plugins.module_utils._plan import networks as plans
from tests.api.compute import test_interfaces_api as compute
from tests.api.compute.test_interfaces_api import ask, network, port, rows, server, set_active
from tests.api.seeds import Api

NETWORKS, SUBNETS = "/network/v2.0/networks", "/network/v2.0/subnets"
hosts = compute.hosts  # what hosts say of themselves


@pytest.fixture(autouse=True)
def interfaces(api: Api) -> None:
    extensions = api.app.extensions
    extensions["settings"] = dataclasses.replace(extensions["settings"], physical_networks="eth1")


# attribute, value; what a member, an administrator is answered on POST (201 else), and on PUT of a project's network
# (200 else)
TAKEN: list[tuple[str, t.Any, int, int, int, int]] = [
    ("name", "web", 201, 201, 200, 200),
    ("description", "x", 201, 201, 200, 200),
    ("admin_state_up", True, 201, 201, 200, 200),
    ("admin_state_up", False, 201, 201, 200, 200),
    ("admin_state_up", "no", 400, 400, 400, 400),
    ("port_security_enabled", False, 201, 201, 200, 200),
    ("shared", False, 201, 201, 200, 200),
    ("shared", True, 403, 201, 403, 200),
    ("router:external", False, 201, 201, 200, 200),
    ("router:external", True, 403, 201, 403, 200),
    ("is_default", False, 201, 201, 200, 200),
    ("is_default", True, 403, 201, 403, 409),  # what the POST made is the default one
    ("provider:network_type", "vxlan", 403, 201, 403, 400),
    ("nosuch", 1, 400, 400, 400, 400),
]


@pytest.mark.parametrize("row", TAKEN, ids=[f"{row[0]}={row[1]}" for row in TAKEN])
def test_each_attribute_is_taken_from_whom_neutron_takes_it(api: Api, row: t.Any) -> None:
    name, value, *statuses = row
    for (verb, who), status in zip(itertools.product(("POST", "PUT"), ("demo", "admin")), statuses):
        client, path = api.client_as(who), NETWORKS
        if verb == "PUT":
            path = f"{NETWORKS}/{network(api.client_as('demo'), f'of-{who}', None)}"
        answer = ask(client, verb, path, {"network": {name: value}}, status)
        if status < 300:
            shown = ask(client, "GET", f"{NETWORKS}/{answer['network']['id']}")["network"]
            assert shown[name] == value, (verb, who)


def test_a_readers_networks_stay_as_they_are(api: Api) -> None:
    number = network(api.client_as("demo"))
    for value in ({"admin_state_up": False}, {"shared": True}, {"name": "x"}):
        ask(api.client_as("reader"), "PUT", f"{NETWORKS}/{number}", {"network": value}, 403)


# --- down ------------------------------------------------------------------------------------------------------------


def bridge_is_up(api: Api, uuid: str) -> bool:
    """What the server's host is told of its network's bridge: by the job, and with whatever is done to the server."""
    with transaction(api.engine) as connection:
        (of_server,) = plans.bridges(instances_by(connection, uuids=[uuid]), {})
        none = dict.fromkeys(("instances", "existing", "leaving", "compute_hosts"))
        by_job = server_plan(connection, {**none, "network_hosts": ["hv1"], "state_dir": "/var/lib/novalite"})
    (of_host,) = by_job["hosts"]["hv1"]["network"]["bridges"]
    assert of_server.get("up") == of_host.get("up")
    return bool(of_host.get("up", True))


def test_hosts_learn_by_a_job_that_a_network_is_down(api: Api, sdk: t.Callable[[str], t.Any]) -> None:
    client, cloud = api.client_as("demo"), sdk("demo")
    made = cloud.network.create_network(name="dark", is_admin_state_up=False)
    assert made.is_admin_state_up is False
    ask(client, "POST", SUBNETS, {"subnet": {"network_id": made.id, "ip_version": 4, "cidr": "10.60.0.0/24"}}, 201)
    uuid = server(client, [{"uuid": made.id}])
    set_active(api, uuid)
    assert not bridge_is_up(api, uuid)
    assert "floating_ips" not in [row["kind"] for row in rows(api, tables.tables_jobs.job)]
    assert cloud.network.update_network(made.id, is_admin_state_up=True).is_admin_state_up is True
    assert bridge_is_up(api, uuid)
    assert cloud.network.update_network(made.id, is_admin_state_up=True, name="light").name == "light"
    (job,) = [
        row for row in rows(api, tables.tables_jobs.job) if row["kind"] == "floating_ips"
    ]  # of what changed, once
    assert job["variables"] == {"project": "demo", "network_hosts": ["hv1"]}
    assert cloud.network.update_network(made.id, is_admin_state_up=False).is_admin_state_up is False
    assert not bridge_is_up(api, uuid)


def test_a_network_on_an_interface_of_the_hosts_stays_up(api: Api) -> None:
    """It carries others, too, and perhaps the way by which the host is reached."""
    admin = api.client_as("admin")
    for kind in ("flat", "vlan"):
        provider = {"provider:network_type": kind, "provider:physical_network": "eth1"}
        ask(admin, "POST", NETWORKS, {"network": {"admin_state_up": False, **provider}}, 400)
        made = ask(admin, "POST", NETWORKS, {"network": provider}, 201)["network"]["id"]
        ask(admin, "PUT", f"{NETWORKS}/{made}", {"network": {"admin_state_up": False}}, 400)


# --- shared ----------------------------------------------------------------------------------------------------------


def test_a_network_is_shared_and_is_its_projects_again(api: Api, sdk: t.Callable[[str], t.Any]) -> None:
    client, admin, cloud = api.client_as("demo"), api.client_as("admin"), sdk("admin")
    number = network(client)
    path, alts = f"{NETWORKS}/{number}", api.client_as("alt")
    ask(alts, "GET", path, status=404)
    shared = cloud.network.update_network(number, is_shared=True)
    assert (shared.is_shared, shared.project_id) == (True, api.projects["demo"])
    assert ask(alts, "GET", path)["network"]["project_id"] == api.projects["demo"]
    ask(client, "PUT", path, {"network": {"name": "x"}}, 403)  # what is everybody's is an administrator's to change
    used = port(alts, number)["id"]
    refused = ask(admin, "PUT", path, {"network": {"shared": False}}, 409)
    assert refused["NeutronError"]["type"] == "InvalidSharedSetting"
    ask(alts, "DELETE", f"/network/v2.0/ports/{used}", status=204)
    port(client, number)
    assert cloud.network.update_network(number, is_shared=False).is_shared is False
    ask(alts, "GET", path, status=404)
    ask(client, "PUT", path, {"network": {"name": "x"}})


def test_a_shared_network_is_of_the_project_that_made_it(api: Api) -> None:
    made = ask(api.client_as("admin"), "POST", NETWORKS, {"network": {"shared": True}}, 201)["network"]
    assert (made["project_id"], made["tenant_id"]) == (api.projects["demo"], api.projects["demo"])
    mine = [
        row["id"]
        for row in ask(api.client_as("admin"), "GET", f"{NETWORKS}?project_id={made['project_id']}")["networks"]
    ]
    assert made["id"] in mine


def test_two_networks_of_a_name_are_shared(api: Api) -> None:
    """Playbooks know them by different ones."""
    numbers = [
        network(api.client_as(name), "private", f"10.{60 + position}.0.0/24")
        for position, name in enumerate(("demo", "alt"))
    ]
    for number in numbers:
        shown = ask(api.client_as("admin"), "PUT", f"{NETWORKS}/{number}", {"network": {"shared": True}})
        assert shown["network"]["name"] == "private"
    handles = [row["name"] for row in rows(api, tables.network)]
    assert len(set(handles)) == len(handles) == 3  # with the operator's


# --- external --------------------------------------------------------------------------------------------------------


def test_openstacksdk_makes_an_external_network(api: Api, sdk: t.Callable[[str], t.Any]) -> None:
    admin, demo = sdk("admin"), sdk("demo")
    made = admin.network.create_network(name="public", is_router_external=True, provider_physical_network="eth1")
    assert (made.is_router_external, made.subnet_ids, made.provider_physical_network) == (True, [], "eth1")
    subnet = admin.network.create_subnet(
        network_id=made.id, ip_version=4, cidr="198.51.100.0/28", gateway_ip="198.51.100.1", is_dhcp_enabled=False
    )
    assert subnet.cidr == "198.51.100.0/28"
    assert subnet.allocation_pools == [{"start": "198.51.100.2", "end": "198.51.100.14"}]
    assert admin.network.get_network(made.id).subnet_ids == [subnet.id]
    inside = demo.network.create_network(name="inside")
    within = demo.network.create_subnet(network_id=inside.id, ip_version=4, cidr="10.70.0.0/24")
    router = demo.network.create_router(name="way", external_gateway_info={"network_id": made.id})
    demo.network.add_interface_to_router(router, subnet_id=within.id)
    nic = demo.network.create_port(network_id=inside.id)
    led = demo.network.create_ip(floating_network_id=made.id, port_id=nic.id)
    assert led.floating_ip_address.startswith("198.51.100.") and led.router_id == router.id
    for path in (f"{SUBNETS}/{subnet.id}", f"{NETWORKS}/{made.id}"):  # while they are in use
        ask(api.client_as("admin"), "DELETE", path, status=409)
        ask(api.client_as("demo"), "DELETE", path, status=403)
    demo.network.delete_ip(led)
    demo.network.remove_interface_from_router(router, subnet_id=within.id)
    demo.network.delete_router(router)
    admin.network.delete_subnet(subnet, ignore_missing=False)
    assert admin.network.get_network(made.id).subnet_ids == []
    admin.network.delete_network(made, ignore_missing=False)
    assert [row.name for row in admin.network.networks(is_router_external=True)] == []
    with api.engine.connect() as connection:
        assert connection.execute(sa.select(tables.floating_pool)).all() == []


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"provider:physical_network": "eth7"}, 400),
        ({"provider:network_type": "vlan", "provider:physical_network": "eth1"}, 400),
        ({"shared": True}, 400),
        ({"admin_state_up": False}, 400),
        ({"is_default": True}, 400),
        ({"name": "n" * 65}, 201),
        ({"name": "n" * 256}, 400),
        ({"name": ""}, 201),
        ({"shared": False, "admin_state_up": True, "provider:network_type": "flat"}, 201),
    ],
)
def test_what_an_external_network_may_be(api: Api, values: t.Any, status: int) -> None:
    admin = api.client_as("admin")
    body = {"network": {"name": "public", "router:external": True, **values}}
    made = ask(admin, "POST", NETWORKS, body, status)
    if status == 201:
        path = f"{NETWORKS}/{made['network']['id']}"
        assert made["network"]["name"]
        again = {"router:external": True, "admin_state_up": True, "name": made["network"]["name"]}
        ask(admin, "PUT", path, {"network": again})
        for change in ({"router:external": False}, {"shared": True}, {"name": "other"}):
            ask(api.client_as("demo"), "PUT", path, {"network": change}, 403)


@pytest.mark.parametrize(
    ("values", "pool"),
    [
        ({}, [("198.51.100.2", "198.51.100.14")]),
        ({"gateway_ip": None}, [("198.51.100.1", "198.51.100.14")]),
        ({"gateway_ip": "198.51.100.9"}, [("198.51.100.1", "198.51.100.8"), ("198.51.100.10", "198.51.100.14")]),
        ({"allocation_pools": [{"start": "198.51.100.5", "end": "198.51.100.6"}]}, [("198.51.100.5", "198.51.100.6")]),
        ({"cidr": "198.51.100.3/28"}, [("198.51.100.2", "198.51.100.14")]),
        ({"cidr": "rubbish"}, None),
        ({"cidr": "2001:db8::/64", "ip_version": 6}, None),
        ({"allocation_pools": [{"start": "203.0.113.5", "end": "203.0.113.6"}]}, None),
        ({"gateway_ip": "x"}, None),
    ],
)
def test_the_addresses_of_an_external_network(api: Api, values: t.Any, pool: t.Any) -> None:
    admin = api.client_as("admin")
    made = ask(admin, "POST", NETWORKS, {"network": {"name": "public", "router:external": True}}, 201)["network"]["id"]
    subnet = {"network_id": made, "ip_version": 4, "cidr": "198.51.100.0/28", **values}
    ask(api.client_as("demo"), "POST", SUBNETS, {"subnet": subnet}, 403)
    answer = ask(admin, "POST", SUBNETS, {"subnet": subnet}, 400 if pool is None else 201)
    if pool is not None:
        assert [(each["start"], each["end"]) for each in answer["subnet"]["allocation_pools"]] == pool
        ask(admin, "POST", SUBNETS, {"subnet": {**subnet, "cidr": "203.0.113.0/28"}}, 409)


@pytest.mark.parametrize("length", range(16, 30))
def test_a_range_may_be_written_by_any_address_in_it(api: Api, length: int) -> None:
    """As Neutron takes it: the bits of a host in a CIDR mean nothing."""
    client, written = api.client_as("demo"), ipaddress.ip_interface(f"10.99.171.213/{length}")
    body = {"subnet": {"network_id": network(client, "web", None), "ip_version": 4, "cidr": str(written)}}
    made = ask(client, "POST", SUBNETS, body, 201)["subnet"]
    assert made["cidr"] == str(written.network) != str(written)


@pytest.mark.parametrize("length", range(8, 32))
def test_a_prefix_of_a_pool_may_be_written_by_any_address_in_it(api: Api, length: int) -> None:
    """Neutron keeps the set of addresses, and draws of it."""
    client, written = api.client_as("demo"), ipaddress.ip_interface(f"10.99.171.213/{length}")
    body = {"subnetpool": {"name": "p", "prefixes": [str(written)], "min_prefixlen": 8, "default_prefixlen": 31}}
    made = ask(client, "POST", "/network/v2.0/subnetpools", body, 201)["subnetpool"]
    assert made["prefixes"] == [str(written.network)] != [str(written)]
    change = {"subnetpool": {"prefixes": [str(written), "192.168.0.77/16"]}}
    changed = ask(client, "PUT", f"/network/v2.0/subnetpools/{made['id']}", change, 200)["subnetpool"]
    assert changed["prefixes"] == [str(written.network), "192.168.0.0/16"]


PAIRS = [
    *(f"10.50.171.213/{length}" for length in range(24, 33)),
    *(f"fd00:50::1d5/{length}" for length in range(120, 129)),
]


@pytest.mark.parametrize("written", PAIRS)
def test_a_pair_stays_as_it_is_written_and_allows_the_range_around_it(api: Api, written: str) -> None:
    """As in Neutron; what hosts get has no bits of a host."""
    client = api.client_as("demo")
    number = network(client, "web", "10.50.168.0/21")
    pairs = [{"ip_address": written}]
    made = port(client, number, allowed_address_pairs=pairs)
    assert [pair["ip_address"] for pair in made["allowed_address_pairs"]] == [written]
    with api.engine.connect() as connection:
        row = connection.execute(sa.select(tables.network.c.id).where(tables.network.c.uuid == number)).one()
        kept = address_pairs.without_others(connection, api.projects["demo"], row.id, made["allowed_address_pairs"])
    assert [pair["ip_address"] for pair in kept] == [str(ipaddress.ip_interface(written).network)]


@pytest.mark.parametrize("destination", ["10.60.0.9/24", "10.60.0.1/8"])
def test_a_destination_of_a_route_has_no_bits_of_a_host(api: Api, destination: str) -> None:
    """As in Neutron, whose rule for routes is another one than for subnets."""
    client = api.client_as("demo")
    subnet = {"network_id": network(client, "web", None), "ip_version": 4, "cidr": "10.50.0.0/16"}
    routes = [{"destination": destination, "nexthop": "10.50.0.9"}]
    answer = ask(client, "POST", SUBNETS, {"subnet": {**subnet, "host_routes": routes}}, 400)
    assert "has host bits set" in answer["NeutronError"]["message"]


def test_an_administrator_lists_the_quotas_that_were_changed(api: Api) -> None:
    client = api.client_as("admin")
    assert ask(client, "GET", "/network/v2.0/quotas", None, 200) == {"quotas": []}
    ask(client, "PUT", f"/network/v2.0/quotas/{api.projects['demo']}", {"quota": {"network": 3}}, 200)
    (listed,) = ask(client, "GET", "/network/v2.0/quotas", None, 200)["quotas"]
    assert (listed["project_id"], listed["network"]) == (api.projects["demo"], 3)
