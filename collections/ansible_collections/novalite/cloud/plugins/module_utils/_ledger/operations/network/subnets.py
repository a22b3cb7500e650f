# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on subnets, whose changes are changes of their networks."""

from __future__ import annotations

import typing as t

from ...._errors import ForbiddenError
from ...network import external_networks, subnets
from ...queries.network.network_records import Network
from ...queries.network.pool_records import Pool
from ...queries.network.subnet_records import Subnet
from ..call import Call
from ..hosts import update_hosts, update_networks_of_hosts
from .networks import OPERATE, check_changes
from .owners import Named, owner_of

OF_NETWORK = ("subnets",)  # the attribute of the network


class SubnetValues(t.TypedDict, total=False):
    """Values of a subnet: those of network.subnets.create_subnet()."""

    version: int
    cidr: str | None
    subnetpool_id: str
    prefixlen: int
    name: str
    description: str
    enable_dhcp: bool
    gateway: str | None
    pools: list[tuple[str, str]]
    dns: list[str]
    routes: list[dict[str, str]]


def create(call: Call, seen: Network | Pool, named: Named, values: SubnetValues) -> str:
    """Give the network a subnet; return its UUID. Raises ForbiddenError, and as owners.owner_of(),
    subnets.create_subnet() and external_networks.create_subnet()."""
    owner_of(call, named)  # it will be the network's project's, whichever may be named
    check_changes(call, seen, OF_NETWORK)
    if isinstance(seen, Pool):
        return external_networks.create_subnet(call.connection, seen, values)
    return subnets.create_subnet(call.connection, seen, values, naming=call.permits(OPERATE))


def update(call: Call, network: Network, before: Subnet, values: SubnetValues) -> None:
    """Change the subnet `before` of the network. Raises ForbiddenError, and as subnets.update_subnet()."""
    check_changes(call, network, OF_NETWORK)
    subnets.update_subnet(call.connection, network, before, values, naming=call.permits(OPERATE))


def delete(call: Call, network: Network, before: Subnet) -> None:
    """Take the subnet `before` from the network; hosts give up its addresses. Raises ForbiddenError, and as
    subnets.delete_subnet()."""
    check_changes(call, network, OF_NETWORK)
    gone = subnets.delete_subnet(call.connection, network, before)
    update_networks_of_hosts(call, gone.hosts, network.owner)
    if gone.interfaces:
        update_hosts(call, "security_groups", {"ports": gone.interfaces}, network.owner or None)


def delete_of_pool(call: Call, pool: Pool) -> None:
    """Take the addresses of the floating pool. Raises ForbiddenError, and as external_networks.delete_subnet()."""
    if not call.permits(OPERATE):
        raise ForbiddenError(f"subnet {pool.subnet_uuid} is the cloud's operator's floating pool")
    external_networks.delete_subnet(call.connection, pool)
