# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, their subnets, and ports.

A project makes its own; the operator's networks are there to be looked at, and to be used.
"""

from __future__ import annotations

import typing as t

from flask import current_app

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    AddressInUseError,
    DefaultTakenError,
    NotFoundError,
    NovaliteError,
    PoolExhaustedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import networks, ports, subnets
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.networks import NetworkValues
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.ports import PortValues
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.subnets import SubnetValues
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.carriers import (
    ATTRIBUTES as PROVIDER,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Port
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import find_pool

from ...web.bodies import Answer, Record
from ...web.errors import BadRequestError, Words, in_words
from ...web.services import takes, writes, writes_checked
from ...work.calls import calling
from ...work.networks import network_row
from . import records, schemas, views
from .blueprint import network, word
from .changes import OWNER, named
from .routes_pools import from_pool

CREATE = schemas.one_or_many("network", schemas.CREATE_NETWORK)
UPDATE = schemas.wrapped("network", schemas.NETWORK)
CREATE_SUBNET = schemas.one_or_many("subnet", schemas.CREATE_SUBNET, ["network_id"])
UPDATE_SUBNET = schemas.wrapped("subnet", schemas.UPDATE_SUBNET)

INVALID: Words = {NovaliteError: word(400, "InvalidInput")}
NETWORK_WORDS: Words = {**OWNER, DefaultTakenError: word(409, "DefaultExternalNetworkExists"), **INVALID}
POOL_WORDS: Words = {**OWNER, NotFoundError: word(404, "SubnetPoolNotFound"), **INVALID}
# Neutron's attributes of a network and of a subnet, and what the ledger calls them
NETWORK = {
    **{name: name for name in ("name", "description", "mtu", "port_security_enabled", "admin_state_up", "is_default")},
    **{"shared": "shared", "router:external": "external"},
}
SUBNET = {
    **{name: name for name in ("name", "description", "enable_dhcp")},
    **{"gateway_ip": "gateway", "dns_nameservers": "dns", "host_routes": "routes"},
}


records.put_into(network, "networks", "network:read")
records.put_into(network, "subnets", "network:read")


# --- Networks -------------------------------------------------------------------------------------------------------


@network.post("/networks", "network:write", takes(CREATE), writes_checked)
def create_networks(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        with in_words(NETWORK_WORDS):
            return networks.create(calling(connection), named(item), _network_values(item), _settings())

    return records.create_some(connection, "networks", body, create), 201


@network.put("/networks/<network_id>", "network:write", takes(UPDATE), writes_checked)
def update_network(connection: Connection, body: Record, network_id: str) -> Answer:
    seen = records.network_or_pool(connection, network_id)
    with in_words(NETWORK_WORDS):
        networks.update(calling(connection), seen, _network_values(body), _settings())
    return {"network": records.find(connection, "networks", network_id)}, 200


@network.delete("/networks/<network_id>", "network:write", writes)
def delete_network(connection: Connection, network_id: str) -> Answer:
    networks.delete(calling(connection), records.network_or_pool(connection, network_id))
    return "", 204


def _settings() -> networks.Site:
    site: networks.Site = current_app.extensions["settings"]
    return site


def _network_values(body: Record) -> NetworkValues:
    values = {ours: body[name] for name, ours in NETWORK.items() if name in body}
    provider = {name: body[name] for name in PROVIDER if name in body}
    return t.cast("NetworkValues", {**values, "provider": provider} if provider else values)


# --- Subnets --------------------------------------------------------------------------------------------------------


@network.post("/subnets", "network:write", takes(CREATE_SUBNET), writes_checked)
def create_subnets(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        pool = find_pool(connection, item["network_id"].lower())
        source = _source(connection, item) if pool is None else {"cidr": item.get("cidr")}
        seen = pool or network_row(connection, item["network_id"])
        with in_words(POOL_WORDS):
            return subnets.create(calling(connection), seen, named(item), _subnet_values(item, **source))

    return records.create_some(connection, "subnets", body, create), 201


def _source(connection: Connection, item: Record) -> Record:
    """The version of IP and the source of a new subnet's range."""
    drawn = from_pool(connection, item)
    version = int(item["ip_version"]) if "ip_version" in item else drawn["version"]
    if version == 4 and (item.get("ipv6_ra_mode") or item.get("ipv6_address_mode")):
        raise BadRequestError("Invalid input for operation: ipv6_ra_mode and ipv6_address_mode need IPv6.")
    return {**drawn, "version": version}


@network.put("/subnets/<subnet_id>", "network:write", takes(UPDATE_SUBNET), writes_checked)
def update_subnet(connection: Connection, body: Record, subnet_id: str) -> Answer:
    row, before = records.subnet_row(connection, subnet_id)
    subnets.update(calling(connection), row, before, _subnet_values(body))
    return {"subnet": records.find(connection, "subnets", subnet_id)}, 200


@network.delete("/subnets/<subnet_id>", "network:write", writes)
def delete_subnet(connection: Connection, subnet_id: str) -> Answer:
    pool = find_pool(connection, subnet_id.lower(), of_subnet=True)
    if pool is not None:
        subnets.delete_of_pool(calling(connection), pool)
    else:
        subnets.delete(calling(connection), *records.subnet_row(connection, subnet_id))
    return "", 204


def _subnet_values(body: Record, **source: t.Any) -> SubnetValues:
    values = source | {ours: body[name] for name, ours in SUBNET.items() if name in body}
    if "allocation_pools" in body:
        values["pools"] = [(pool["start"], pool["end"]) for pool in body["allocation_pools"]]
    return t.cast("SubnetValues", values)


# --- Ports ------------------------------------------------------------------------------------------------------------

CREATE_PORT = schemas.one_or_many("port", schemas.CREATE_PORT, ["network_id"])
UPDATE_PORT = schemas.wrapped("port", schemas.UPDATE_PORT)
BINDING = "binding:"  # begins the attributes of a port's binding
# Neutron's words for what the ledger refuses
WORDS: Words = {
    **OWNER,
    AddressInUseError: word(409, "IpAddressInUse"),
    PoolExhaustedError: word(409, "IpAddressGenerationFailure"),
    NotFoundError: word(404, "SecurityGroupNotFound"),
}

records.put_into(network, "ports", "network:ports:read")


@network.post("/ports", "network:ports:write", takes(CREATE_PORT), writes_checked)
def create_ports(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        row = network_row(connection, item["network_id"])
        with in_words(WORDS):
            return ports.create(calling(connection), named(item), row, _port_values(item))

    return records.create_some(connection, "ports", body, create), 201


@network.put("/ports/<port_id>", "network:ports:write", takes(UPDATE_PORT), writes_checked)
def update_port(connection: Connection, body: Record, port_id: str) -> Answer:
    seen = records.port_row(connection, port_id)
    if "fixed_ips" in body and _has_already(seen, body["fixed_ips"]):
        del body["fixed_ips"]
    with in_words(WORDS):
        ports.update(calling(connection), network_row(connection, seen.network_uuid), seen, _port_values(body))
    return {"port": records.find(connection, "ports", seen.id)}, 200


@network.delete("/ports/<port_id>", "network:ports:write", writes)
def delete_port(connection: Connection, port_id: str) -> Answer:
    ports.delete(calling(connection), records.port_row(connection, port_id))
    return "", 204


def _port_values(body: Record) -> PortValues:
    values = {name: body[name] for name in PortValues.__annotations__ if name in body}
    binding = {name.removeprefix(BINDING): body[name] for name in body if name.startswith(BINDING)}
    return t.cast("PortValues", {**values, "binding": binding})


def _has_already(seen: Port, addresses: t.Sequence[Record]) -> bool:
    """Tell whether the port has the addresses asked for, which may name no more than their subnets."""
    there = views.fixed_ips(seen)
    return len(addresses) == len(there) and all(
        any(address.items() <= own.items() for own in there) for address in addresses
    )
