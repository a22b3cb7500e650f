# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on routers: each compute host lets the guests of their networks out by itself, and is told so by a job."""

from __future__ import annotations

import typing as t

from ...._errors import NovaliteError
from ...._rules import pools
from ...network import network_choices, routers
from ...network.tenant_networks import TenantError
from ...queries.network import router_records
from ...queries.network.network_records import Network, Port, network_of, networks_by
from ...queries.network.router_records import Router, RouterInterface
from ...queries.network.subnet_records import Subnet, subnets_of, subnets_of_network
from ..call import Call
from ..hosts import update_networks_of_hosts
from .owners import Named, owner_of


class Gateway(t.NamedTuple):
    """The external network (UUID) that a router leads to (None: nowhere), and what else a request says of that (None:
    nothing)."""

    pool: str | None
    enable_snat: bool | None = None
    addresses: t.Sequence[t.Mapping[str, str | None]] | None = None


class RouterValues(t.TypedDict, total=False):
    """Values of a router."""

    name: str
    description: str
    admin_state_up: bool
    gateway: Gateway


def create(call: Call, named: Named, values: RouterValues) -> str:
    """Make a router of the project that is `named`; return its UUID. Raises ForbiddenError, and as owners.owner_of()
    and routers.create_router()."""
    return routers.create_router(call.connection, owner_of(call, named), _columns(call, values))


def update(call: Call, row: Router, values: RouterValues) -> None:
    """Change a router; hosts let guests out, or no more. Raises ForbiddenError, and as routers.update_router()."""
    update_networks_of_hosts(call, routers.update_router(call.connection, row, _columns(call, values)), row.project_id)


def delete(call: Call, row: Router) -> None:
    """Remove a router. Raises as routers.delete_router()."""
    routers.delete_router(call.connection, row)


def add_subnet(call: Call, row: Router, network: Network, subnet: Subnet) -> RouterInterface:
    """Give the router an interface in a subnet, at the gateway's address. Raises ForbiddenError for a network of
    others, NovaliteError for a subnet that overlaps another one of the router's, and as routers.add_interface()."""
    return _add(call, row, network, subnet, None)


def add_port(call: Call, row: Router, port: Port) -> RouterInterface:
    """Make a port that nobody has the router's interface. Raises TenantError for one that somebody has, NovaliteError
    for one without an address or with several, and as add_subnet()."""
    device = port.instance_uuid or port.router_id or port.device_id
    if device:
        raise TenantError(
            "PortInUse",
            f"Unable to complete operation on port {port.id} for network {port.network_uuid}. Port already has "
            f"an attached device {device}.",
        )
    if port.ip is None and port.ipv6 is None:
        raise NovaliteError("Bad router request: Router port must have at least one fixed IP.")
    if port.more_ips:
        raise NovaliteError(
            f"Bad router request: Cannot have multiple IPv4 subnets on router port ({port.id}): leave it one address."
        )
    network, subnet_id = network_of(call.connection, port), port.subnet_ids[str(port.ip or port.ipv6)]
    (subnet,) = (each for each in subnets_of_network(call.connection, network) if each.id == subnet_id)
    return _add(call, row, network, subnet, port.id)


def remove_interface(call: Call, interface: RouterInterface, project_id: str) -> None:
    """Take an interface from a router of the project. Raises as routers.remove_interface()."""
    hosts = routers.remove_interface(call.connection, interface.router_id, interface.vif_id)
    update_networks_of_hosts(call, hosts, project_id)


def _add(call: Call, row: Router, network: Network, subnet: Subnet, port_id: str | None) -> RouterInterface:
    network_choices.check_router(network, row.project_id, call.permits("network:routers:any_network"))
    _check_overlap(call, row, subnet)
    gateway = subnet.gateway if network.tenant else None
    port_id, hosts = routers.add_interface(call.connection, row, subnet, gateway, port_id)
    update_networks_of_hosts(call, hosts, row.project_id)
    return RouterInterface(port_id, row.id, network.id, subnet.version, subnet.id, network.uuid)


def _check_overlap(call: Call, row: Router, subnet: Subnet) -> None:
    """Raise NovaliteError for a subnet with addresses of another one: the router could not tell them apart."""
    interfaces = router_records.interfaces(call.connection, row.id)
    networks = networks_by(call.connection, {interface.network_id for interface in interfaces})
    there = {each.id: each for subnets in subnets_of(call.connection, networks).values() for each in subnets}
    for interface in interfaces:
        other = there[interface.subnet_id]
        if other.version == subnet.version and pools.overlap(subnet.cidr, other.cidr):
            raise NovaliteError(
                f"Bad router request: Cidr {subnet.cidr} of subnet {subnet.id} overlaps with cidr {other.cidr} of "
                f"subnet {other.id}."
            )


def _columns(call: Call, values: RouterValues) -> dict[str, object]:
    columns: dict[str, object] = {key: value for key, value in values.items() if key != "gateway"}
    gateway = values.get("gateway")
    if gateway is not None:
        if gateway.enable_snat is not None:
            call.check("network:routers:enable_snat")
        if gateway.addresses is not None:
            call.check("network:routers:external_fixed_ips")
        columns |= {
            "pool": gateway.pool,
            "enable_snat": gateway.enable_snat is not False,
            "addresses": gateway.addresses,
        }
    return columns
