# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, subnets, ports and routers: to be looked at. The operator makes them, and servers their ports."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger import network_records

from .. import policy, validation
from ..context import current
from ..errors import BadRequestError
from ..ledger import reading_ledger
from . import listing, schemas, views
from .blueprint import Answer, NeutronError, network, not_found

Record = dict[str, t.Any]

policy.grant({"network:read": "reader", "network:write": "member", "network:operate": "admin"})

NETWORK = (
    "id", "name", "tenant_id", "project_id", "description", "admin_state_up", "status", "subnets", "mtu", "shared",
    "router:external", "availability_zone_hints", "availability_zones", "port_security_enabled", "is_default",
    "ipv4_address_scope", "ipv6_address_scope", "revision_number", "provider:network_type",
    "provider:physical_network", "provider:segmentation_id",
)  # fmt: skip
SUBNET = (
    "id", "name", "network_id", "tenant_id", "project_id", "description", "ip_version", "cidr", "gateway_ip",
    "enable_dhcp", "ipv6_ra_mode", "ipv6_address_mode", "subnetpool_id", "revision_number", "dns_nameservers",
    "host_routes", "service_types", "allocation_pools",
)  # fmt: skip
PORT = (
    "id", "name", "network_id", "tenant_id", "project_id", "description", "admin_state_up", "status", "mac_address",
    "fixed_ips", "device_id", "device_owner", "security_groups", "binding:vnic_type", "binding:host_id",
    "binding:vif_type", "port_security_enabled", "revision_number",
)  # fmt: skip
ROUTER = ("id", "name", "tenant_id", "project_id", "description", "admin_state_up", "status")

MADE_BY = {
    "networks": "networks are made by the cloud's operator, with the module novalite.cloud.network",
    "subnets": "subnets come with their networks, which the cloud's operator makes",
    "ports": "ports come and go with the interfaces of servers",
    "routers": "there are no routers: each hypervisor routes for its own servers",
}


def _networks(connection: sa.Connection) -> list[Record]:
    caller = current()
    return [
        *(views.network(row, caller.is_admin) for row in network_records.networks_seen(connection, caller.project)),
        *(views.pool_network(row) for row in network_records.pools_seen(connection)),
    ]


def _subnets(connection: sa.Connection) -> list[Record]:
    rows = network_records.networks_seen(connection, current().project)
    return [
        *(one for row in rows for one in views.subnets(row)),
        *(one for row in network_records.pools_seen(connection) for one in views.pool_subnets(row)),
    ]


def _ports(connection: sa.Connection) -> list[Record]:
    caller = current()
    return [views.port(row, caller.is_admin) for row in network_records.interfaces_of(connection, caller.project)]


def _routers(connection: sa.Connection) -> list[Record]:
    return []


# plural: (the word for one in a body, in an error, attributes, what there is)
KINDS: dict[str, tuple[str, str, tuple[str, ...], t.Callable[[sa.Connection], list[Record]]]] = {
    "networks": ("network", "Network", NETWORK, _networks),
    "subnets": ("subnet", "Subnet", SUBNET, _subnets),
    "ports": ("port", "Port", PORT, _ports),
    "routers": ("router", "Router", ROUTER, _routers),
}


def _list(plural: str) -> Answer:
    _word, _shown, attributes, find = KINDS[plural]
    with reading_ledger() as connection:
        found = find(connection)
    return listing.answer(plural, found, attributes), 200


def _find(plural: str, number: str) -> Record:
    _word, shown, _attributes, find = KINDS[plural]
    with reading_ledger() as connection:
        for one in find(connection):
            if one["id"] == number:
                return one
    raise not_found(shown, number)


def _show(plural: str, number: str) -> Answer:
    return {KINDS[plural][0]: listing.fields(_find(plural, number))}, 200


def _refuse(plural: str, number: str | None = None) -> Answer:
    """Nobody changes these here. What is not there is still said first."""
    if number is not None:
        _find(plural, number)
    raise NeutronError(403, "PolicyNotAuthorized", MADE_BY[plural])


@network.get("/networks")
@policy.allows("network:read")
def list_networks() -> Answer:
    return _list("networks")


@network.get("/networks/<number>")
@policy.allows("network:read")
def show_network(number: str) -> Answer:
    return _show("networks", number)


@network.get("/subnets")
@policy.allows("network:read")
def list_subnets() -> Answer:
    return _list("subnets")


@network.get("/subnets/<number>")
@policy.allows("network:read")
def show_subnet(number: str) -> Answer:
    return _show("subnets", number)


@network.get("/ports")
@policy.allows("network:read")
def list_ports() -> Answer:
    return _list("ports")


@network.get("/ports/<number>")
@policy.allows("network:read")
def show_port(number: str) -> Answer:
    return _show("ports", number)


@network.get("/routers")
@policy.allows("network:read")
def list_routers() -> Answer:
    return _list("routers")


@network.get("/routers/<number>")
@policy.allows("network:read")
def show_router(number: str) -> Answer:
    return _show("routers", number)


@network.post("/<any(networks, subnets, ports, routers):plural>")
@policy.allows("network:write")
def create_any(plural: str) -> Answer:
    return _refuse(plural)


@network.route("/<any(networks, subnets, ports, routers):plural>/<number>", methods=["PUT", "DELETE"])
@policy.allows("network:write")
def change_any(plural: str, number: str) -> Answer:
    return _refuse(plural, number)


# Nothing here carries tags. Clients that compare what there is with what was asked for (nothing) find them equal.


@network.get("/<any(networks, subnets, ports, routers):plural>/<number>/tags")
@policy.allows("network:read")
def list_tags(plural: str, number: str) -> Answer:
    _find(plural, number)
    return {"tags": []}, 200


@network.put("/<any(networks, subnets, ports, routers):plural>/<number>/tags")
@policy.allows("network:write")
def replace_tags(plural: str, number: str) -> Answer:
    asked = validation.body(schemas.TAGS)
    _find(plural, number)
    if asked["tags"]:
        raise BadRequestError("tags are not kept here: leave them out")
    return {"tags": []}, 200
