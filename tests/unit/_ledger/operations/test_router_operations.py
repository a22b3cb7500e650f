# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ForbiddenError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import (
    floating_pools,
    ports,
    subnets,
    tenant_networks,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.tenant_networks import TenantError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import routers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.routers import Gateway
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import carriers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    Network,
    ports_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import pools_seen
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.router_records import (
    Router,
    interfaces,
    routers_of,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import (
    Subnet,
    subnets_of_network,
)
from tests.support.rows import DEMO, OTHER
from tests.unit._ledger.addresses.test_further_addresses import SAID
from tests.unit._ledger.operations.conftest import Doors

ANY_NETWORK = "network:routers:any_network"


def make_network(doors: Doors, cidr: str, owner: str = DEMO) -> tuple[Network, Subnet]:
    number = tenant_networks.create_network(doors.connection, owner, {"name": cidr}, carriers.Carrier())
    subnets.create_subnet(doors.connection, doors.network(number), {"version": 4, "cidr": cidr})
    row = doors.network(number)
    (subnet,) = subnets_of_network(doors.connection, row)
    return row, subnet


def make_router(doors: Doors) -> Router:
    number = routers.create(doors.call(), {}, {"name": "r"})
    (row,) = routers_of(doors.connection, DEMO, number)
    return row


def pool_id(doors: Doors) -> str:
    item = {"name": "public", "cidr": "203.0.113.0/29", "addresses": None, "interface": "eth0"}
    floating_pools.write_floating_pools(doors.connection, [item])
    (pool,) = pools_seen(doors.connection)
    return pool.uuid


@pytest.mark.parametrize(
    ("entry", "values"),
    [
        ("network:routers:enable_snat", {"enable_snat": False}),
        ("network:routers:external_fixed_ips", {"addresses": [{"ip_address": "203.0.113.4"}]}),
    ],
)
def test_how_a_router_leads_out_is_for_administrators(doors: Doors, entry: str, values: dict[str, t.Any]) -> None:
    gateway, row = Gateway(pool_id(doors))._replace(**values), make_router(doors)
    for call, may in ((doors.call(), False), (doors.call(entry), True)):
        if may:
            routers.update(call, row, {"gateway": gateway})
            assert routers.create(call, {}, {"gateway": gateway._replace(addresses=None)})
        else:
            with pytest.raises(ForbiddenError):
                routers.create(call, {}, {"gateway": gateway})
            with pytest.raises(ForbiddenError):
                routers.update(call, row, {"gateway": gateway})


def test_hosts_learn_that_a_router_lets_guests_out(doors: Doors) -> None:
    row, (network, subnet) = make_router(doors), make_network(doors, "10.9.0.0/24")
    doors.server_on(network)
    interface = routers.add_subnet(doors.call(), row, network, subnet)
    assert interface == interfaces(doors.connection, row.id)[0]
    assert doors.jobs == []
    job = ("floating_ips", {"project": "demo", "network_hosts": ["hv1"]})
    routers.update(doors.call(), row, {"gateway": Gateway(pool_id(doors))})
    assert doors.jobs == [job]
    with pytest.raises(TenantError, match="still has ports"):
        routers.delete(doors.call(), row)
    routers.remove_interface(doors.call(), interface, DEMO)
    assert doors.jobs == [job, job]
    routers.delete(doors.call(), row)
    assert routers_of(doors.connection, DEMO) == []


def test_a_router_stands_on_its_projects_networks(doors: Doors) -> None:
    row, (network, subnet) = make_router(doors), make_network(doors, "10.9.0.0/24", OTHER)
    with pytest.raises(ForbiddenError, match="not the project's own"):
        routers.add_subnet(doors.call(), row, network, subnet)
    routers.add_subnet(doors.call(ANY_NETWORK), row, network, subnet)


def test_a_router_tells_its_subnets_apart(doors: Doors) -> None:
    row = make_router(doors)
    routers.add_subnet(doors.call(), row, *make_network(doors, "10.9.0.0/24"))
    with pytest.raises(NovaliteError, match="overlaps"):
        routers.add_subnet(doors.call(), row, *make_network(doors, "10.9.0.0/16"))


def test_a_port_becomes_an_interface_if_nobody_has_it_and_it_has_one_address(doors: Doors) -> None:
    row, (network, subnet) = make_router(doors), make_network(doors, "10.9.0.0/24")

    def port(*addresses: str, **values: str) -> str:
        fixed_ips = [{"ip_address": address} for address in addresses]
        return ports.create_port(doors.connection, DEMO, network, {**SAID, "fixed_ips": fixed_ips, **values})

    def add(number: str) -> str:
        (seen,) = ports_of(doors.connection, DEMO, number)
        return routers.add_port(doors.call(), row, seen).subnet_id

    with pytest.raises(TenantError, match="already has an attached device"):
        add(port("10.9.0.7", device_id="somebody"))
    with pytest.raises(NovaliteError, match="at least one fixed IP"):
        add(port())
    with pytest.raises(NovaliteError, match="multiple IPv4 subnets"):
        add(port("10.9.0.8", "10.9.0.9"))
    number = port("10.9.0.10")
    assert add(number) == subnet.id
    with pytest.raises(TenantError, match="already has an attached device"):
        add(number)
