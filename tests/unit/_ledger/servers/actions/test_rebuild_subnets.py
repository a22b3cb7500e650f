# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnets of projects' networks, and the interfaces of routers in them, come back from what hosts keep."""

from __future__ import annotations

import json
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_networking import (
    router_interface,
    subnet,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import routers, subnets, tenant_networks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.addresses import give_addresses
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import (
    carriers,
    network_records,
    router_records,
    subnet_records,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Network
from tests.support.cloud import Cloud
from tests.support.rows import DEMO
from tests.unit._ledger.servers.actions.test_rebuild import empty, kept, rebuild

TABLES = ("subnet", "router_interface", "fixed_ip", "network", "vif")
NEW = {"subnet": ("id", "position", "cidr", "dns", "routes"), "router_interface": ("subnet_id",)}  # columns of 0031


def make_network(connection: sa.Connection, *cidrs: str) -> Network:
    attributes = {"name": "n", "description": "", "mtu": None, "port_security_enabled": True}
    number = tenant_networks.create_network(connection, DEMO, attributes, carriers.Carrier())
    row = network_of(connection, number)
    for cidr in cidrs:
        subnets.create_subnet(connection, row, {"version": 6 if ":" in cidr else 4, "cidr": cidr, "name": cidr})
    return network_of(connection, number)


def network_of(connection: sa.Connection, number: str) -> Network:
    (row,) = (row for row in network_records.networks_seen(connection, DEMO, bare=True) if row.uuid == number)
    return row


def route(connection: sa.Connection, row: Network) -> None:
    """Have a router with an interface in each subnet."""
    number = routers.create_router(connection, DEMO, {})
    (router,) = router_records.routers_of(connection, DEMO, number)
    for each in subnet_records.subnets_of_network(connection, row):
        routers.add_interface(connection, router, each, each.gateway, None)


def known(cloud: Cloud) -> dict[str, list[str]]:
    dump = cloud.dump()
    return {name: sorted(json.dumps(list(row), sort_keys=True) for row in dump[name]) for name in TABLES}


def launched(cloud: Cloud, *cidrs: str) -> None:
    """A server on hv1 with an address of the last of these subnets of its network; a router in all of them."""
    cloud.write(sa.delete(tables.network))  # one that nothing is on is on no host
    with transaction(cloud.engine) as connection:
        row = make_network(connection, *cidrs)
        route(connection, row)
    base = {"image": "ami-tiny", "flavor": "m1.nano", "networks": [row.name]}
    [server] = cloud.server({"name": "web", **base})["to_build"]
    cloud.write(sa.update(tables.instance).values(host="hv1"))
    first = tables.fixed_ip.c.network_id == row.id
    if len(cidrs) > 1:
        full = sa.update(tables.fixed_ip).where(first, tables.fixed_ip.c.ip < 10 << 24 | 60 << 16)
        cloud.write(full.values(reserved="user"))
    with transaction(cloud.engine) as connection:
        give_addresses(connection, instances_by(connection, uuids=[server["uuid"]]))
    cloud.state({"uuids": [server["uuid"]], "state": "active", "host": "hv1"})


def test_those_of_a_network_with_several_are_what_they_were(cloud: Cloud) -> None:
    launched(cloud, "10.50.0.0/28", "10.60.0.0/28")
    before, hosts = known(cloud), kept(cloud)
    assert any('"dhcp:hv1/1"' in row for row in before["fixed_ip"])
    empty(cloud)
    rebuild(cloud, hosts)
    assert known(cloud) == before


def test_one_that_came_after_the_copy_is_added(cloud: Cloud) -> None:
    launched(cloud, "10.50.0.0/28", "10.60.0.0/28")
    before, hosts = known(cloud), kept(cloud)
    further = tables.fixed_ip.c.ip >= 10 << 24 | 60 << 16
    routed = sa.select(subnet.c.id).where(subnet.c.position > 0)
    cloud.write(
        sa.delete(tables.instance),
        sa.delete(tables.fixed_ip).where(further),
        sa.delete(router_interface).where(router_interface.c.subnet_id.in_(routed)),
        sa.delete(subnet).where(subnet.c.position > 0),
    )
    rebuild(cloud, hosts)
    assert known(cloud) == before


def test_those_of_before_they_had_ids_get_what_they_were_known_by(cloud: Cloud) -> None:
    launched(cloud, "10.50.0.0/28")
    before, hosts = known(cloud), kept(cloud)
    for host in hosts:
        host["records"] = {uuid: _older(text) for uuid, text in host["records"].items()}
        host["host_record"] = _older(host["host_record"])
    empty(cloud)
    rebuild(cloud, hosts)
    assert known(cloud) == before


def _older(text: str) -> str:
    record: dict[str, t.Any] = json.loads(text)
    for name, columns in NEW.items():
        for row in record["tables"].get(name, ()):
            for column in columns:
                del row[column]
    return json.dumps({**record, "revision": "0030"})
