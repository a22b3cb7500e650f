# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Migration 0031: subnets get ids of their own, and keep those that clients know."""

from __future__ import annotations

import typing as t

import pytest
import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    HEAD,
    move_to_revision,
    reading,
    transaction,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_networking import (
    router_interface,
    subnet,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import routers, subnets, tenant_networks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records, subnet_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import Network
from tests.support.rows import DEMO

pytestmark = pytest.mark.both_databases

BEFORE = "0030"


def make_network(connection: sa.Connection, *cidrs: str) -> Network:
    attributes = {"name": "n", "description": "", "mtu": None, "port_security_enabled": True}
    number = tenant_networks.create_network(connection, DEMO, attributes, tenant_networks.Carrier())
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
    (router,) = routers.routers_of(connection, DEMO, number)
    for each in subnet_records.subnets_of_network(connection, row):
        routers.add_interface(connection, router, each, each.gateway, None)


def rows_of(ledger: sa.Engine, table: sa.Table) -> list[dict[str, t.Any]]:
    with reading(ledger) as connection:
        rows = [dict(row) for row in connection.execute(sa.select(table)).mappings()]
    return sorted(rows, key=str)


def move(ledger: sa.Engine, revision: str) -> None:
    with transaction(ledger, while_behind=True) as connection:
        move_to_revision(connection, revision)


def test_subnets_and_interfaces_of_routers_keep_their_ids(ledger: sa.Engine) -> None:
    with transaction(ledger, while_behind=True) as connection:
        row = make_network(connection, "10.50.0.0/24", "fd00:50::/64")
        route(connection, row)
    before = [rows_of(ledger, table) for table in (subnet, router_interface, tables.fixed_ip)]
    assert {each["id"] for each in before[0]} == {subnet_records.derived_id(row.uuid, version) for version in (4, 6)}
    assert {each["subnet_id"] for each in before[1]} == {each["id"] for each in before[0]}
    move(ledger, BEFORE)
    with reading(ledger) as connection:
        known = connection.execute(sa.text("SELECT network_id, version, name FROM subnet ORDER BY version")).all()
        routed = connection.execute(sa.text("SELECT network_id, version FROM router_interface")).all()
    assert [tuple(each) for each in known] == [(row.id, 4, "10.50.0.0/24"), (row.id, 6, "fd00:50::/64")]
    assert {tuple(each) for each in routed} == {(row.id, 4), (row.id, 6)}
    move(ledger, HEAD)
    assert [rows_of(ledger, table) for table in (subnet, router_interface, tables.fixed_ip)] == before


def test_going_back_leaves_the_first_of_each_family(ledger: sa.Engine) -> None:
    with transaction(ledger, while_behind=True) as connection:
        row = make_network(connection, "10.50.0.0/24", "10.60.0.0/24", "fd00:50::/64")
        route(connection, row)
    move(ledger, BEFORE)
    move(ledger, HEAD)
    left = {(each["version"], each["name"]) for each in rows_of(ledger, subnet)}
    assert left == {(4, "10.50.0.0/24"), (6, "fd00:50::/64")}
    assert {each["version"] for each in rows_of(ledger, router_interface)} == {4, 6}
    assert len(rows_of(ledger, router_interface)) == 2 and len(rows_of(ledger, tables.fixed_ip)) == 256
    with transaction(ledger, while_behind=True) as connection:
        subnets.create_subnet(connection, network_of(connection, row.uuid), {"version": 4, "cidr": "10.60.0.0/24"})
