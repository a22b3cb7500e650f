# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, their subnets, and ports.

A project makes its own; the operator's networks are there to be looked at, and to be used.
"""

from __future__ import annotations

import typing as t

from flask import current_app

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ForbiddenError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import (
    external_networks,
    network_choices,
    port_details,
    provider_networks,
    subnets,
    tenant_networks,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.networks import DefaultTakenError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.pool_claims import (
    AddressInUseError,
    PoolExhaustedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import ports
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.hosts import update_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import Network, Port

from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError, Words, in_words
from ...web.services import takes, writes, writes_checked
from ...work.calls import calling
from ...work.networks import network_row
from . import records, schemas, views
from .blueprint import network, refused, word
from .changes import check_for_all, owner_of
from .routes_pools import from_pool

CREATE = schemas.one_or_many("network", schemas.CREATE_NETWORK)
UPDATE = schemas.wrapped("network", schemas.NETWORK)
CREATE_SUBNET = schemas.one_or_many("subnet", schemas.CREATE_SUBNET, ["network_id"])
UPDATE_SUBNET = schemas.wrapped("subnet", schemas.UPDATE_SUBNET)

FOR_ALL = ("shared", "router:external", "is_default")  # attributes for administrators
INVALID: Words = {NovaliteError: word(400, "InvalidInput")}
DEFAULT_TAKEN: Words = {DefaultTakenError: word(409, "DefaultExternalNetworkExists")}
POOL_WORDS: Words = {NotFoundError: word(404, "SubnetPoolNotFound"), **INVALID}
# Neutron's attributes of a subnet, and what the ledger calls them
SUBNET = {
    **{name: name for name in ("name", "description", "enable_dhcp")},
    **{"gateway_ip": "gateway", "dns_nameservers": "dns", "host_routes": "routes"},
}


records.put_into(network, "networks", "network:read")
records.put_into(network, "subnets", "network:read")


# --- Networks -------------------------------------------------------------------------------------------------------


@network.post("/networks", "network:write", takes(CREATE), writes_checked)
def create_networks(connection: Connection, body: Record) -> Answer:
    settings = current_app.extensions["settings"]

    def create(item: Record) -> str:
        check_for_all(item, "network", *FOR_ALL, *provider_networks.ATTRIBUTES)
        owner = owner_of(connection, item)
        if item.get("router:external"):
            with in_words(INVALID):
                return external_networks.create_external(connection, owner, item, settings.interfaces)
        values = {**item, "made_by": owner}
        with in_words(INVALID):
            how = provider_networks.carrier_of(item, settings.interfaces) or settings.carrier
        with in_words(DEFAULT_TAKEN):
            return tenant_networks.create_network(connection, "" if item.get("shared") else owner, values, how)

    return records.create_some(connection, "networks", body, create), 201


@network.put("/networks/<network_id>", "network:write", takes(UPDATE), writes_checked)
def update_network(connection: Connection, body: Record, network_id: str) -> Answer:
    settings, pool = current_app.extensions["settings"], records.pool_row(connection, network_id)
    row = network_row(connection, network_id, set(body)) if pool is None else None
    check_for_all(body, "network", *FOR_ALL, *provider_networks.ATTRIBUTES)
    if set(provider_networks.ATTRIBUTES) & set(body):
        raise INVALID[NovaliteError](
            "Invalid input for operation: Plugin does not support updating provider attributes."
        )
    external = body.get("router:external", pool is not None)
    if external and body.get("is_default"):
        with in_words(INVALID):
            external_networks.check_attributes({"is_default": True})
    if pool is not None and external:
        external_networks.update_external(connection, pool, body)
    else:
        if pool is not None:
            external_networks.make_internal(connection, pool, current().project, settings.carrier, settings.interfaces)
            row = network_row(connection, network_id, set(body))
        assert row is not None
        with in_words(DEFAULT_TAKEN):
            hosts = tenant_networks.update_network(connection, row, body)
        if hosts:
            update_hosts(calling(connection), "floating_ips", {"network_hosts": hosts}, row.owner or None)
        if external:
            external_networks.make_external(connection, row, settings.interfaces)
    return {"network": records.find(connection, "networks", network_id.lower())}, 200


@network.delete("/networks/<network_id>", "network:write", writes)
def delete_network(connection: Connection, network_id: str) -> Answer:
    pool = records.pool_row(connection, network_id)
    if pool is not None:
        external_networks.delete_external(connection, pool)
    else:
        tenant_networks.delete_network(connection, network_row(connection, network_id, ()))
    return "", 204


# --- Subnets --------------------------------------------------------------------------------------------------------


@network.post("/subnets", "network:write", takes(CREATE_SUBNET), writes_checked)
def create_subnets(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        owner_of(connection, item)
        pool = records.pool_row(connection, item["network_id"])
        if pool is not None:
            with in_words(POOL_WORDS):
                return external_networks.create_subnet(connection, pool, item)
        drawn = from_pool(connection, item)
        version = int(item["ip_version"]) if "ip_version" in item else drawn["version"]
        if version == 4 and (item.get("ipv6_ra_mode") or item.get("ipv6_address_mode")):
            raise BadRequestError("Invalid input for operation: ipv6_ra_mode and ipv6_address_mode need IPv6.")
        row = network_row(connection, item["network_id"], ["subnets"])
        with in_words(POOL_WORDS):
            values = {**drawn, "version": version, **_subnet_values(item)}
            return subnets.create_subnet(connection, row, values, naming=current().is_admin)

    return records.create_some(connection, "subnets", body, create), 201


@network.put("/subnets/<subnet_id>", "network:write", takes(UPDATE_SUBNET), writes_checked)
def update_subnet(connection: Connection, body: Record, subnet_id: str) -> Answer:
    row, before = records.subnet_row(connection, subnet_id, write=True)
    subnets.update_subnet(connection, row, before, _subnet_values(body), naming=current().is_admin)
    return {"subnet": records.find(connection, "subnets", subnet_id.lower())}, 200


@network.delete("/subnets/<subnet_id>", "network:write", writes)
def delete_subnet(connection: Connection, subnet_id: str) -> Answer:
    pool = records.pool_row(connection, subnet_id, of_subnet=True)
    if pool is not None:
        external_networks.delete_subnet(connection, pool)
        return "", 204
    row, before = records.subnet_row(connection, subnet_id, write=True)
    gone = subnets.delete_subnet(connection, row, before)
    if gone.hosts:
        update_hosts(calling(connection), "floating_ips", {"network_hosts": gone.hosts}, row.owner or None)
    if gone.interfaces:
        update_hosts(calling(connection), "security_groups", {"ports": gone.interfaces}, row.owner or None)
    return "", 204


def _subnet_values(body: Record) -> Record:
    values = {ours: body[name] for name, ours in SUBNET.items() if name in body}
    if "allocation_pools" in body:
        values["pools"] = [(pool["start"], pool["end"]) for pool in body["allocation_pools"]]
    return values


# --- Ports ------------------------------------------------------------------------------------------------------------

CREATE_PORT = schemas.one_or_many("port", schemas.CREATE_PORT, ["network_id"])
UPDATE_PORT = schemas.wrapped("port", schemas.UPDATE_PORT)
DEFAULTS: Record = {
    **dict.fromkeys(("name", "description", "device_id", "device_owner"), ""),
    **dict.fromkeys(
        ("security_groups", "allowed_address_pairs", "fixed_ips", "port_security_enabled", "extra_dhcp_opts")
    ),
    "admin_state_up": True,
}
in_use = word(409, "PortInUse")
RESERVED = "network:"  # owners of what the cloud itself makes
# Neutron's words for what the ledger refuses
WORDS = {
    AddressInUseError: word(409, "IpAddressInUse"),
    PoolExhaustedError: word(409, "IpAddressGenerationFailure"),
    NotFoundError: word(404, "SecurityGroupNotFound"),
}

records.put_into(network, "ports", "network:ports:read")


@network.post("/ports", "network:ports:write", takes(CREATE_PORT), writes_checked)
def create_ports(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        owner = owner_of(connection, item)
        _check_device_owner(item)
        row = network_row(connection, item["network_id"])
        _check_choices(row, item)
        with in_words(WORDS):
            values = {**DEFAULTS, **item, "mac": item.get("mac_address"), "binding": _binding(None, item)}
            return ports.create(calling(connection), owner, row, values)

    return records.create_some(connection, "ports", body, create), 201


@network.put("/ports/<port_id>", "network:ports:write", takes(UPDATE_PORT), writes_checked)
def update_port(connection: Connection, body: Record, port_id: str) -> Answer:
    _check_device_owner(body)
    check_for_all(body, "port", "mac_address")
    seen = records.port_row(connection, port_id)
    if "fixed_ips" in body and _has_already(seen, body["fixed_ips"] or []):
        del body["fixed_ips"]
    if seen.router_id is not None and {"device_id", "device_owner", "fixed_ips"} & set(body):
        raise in_use(f"Port {seen.id} is a router's: take it from the router first.")
    if seen.instance_uuid is not None:
        _check_attached(seen, body)
    row = network_row(connection, seen.network_uuid)
    _check_choices(row, body)
    with in_words(WORDS):
        body["binding"] = _binding(seen.binding, body)
        ports.update(calling(connection), row, seen, body)
        secured = body.get("port_security_enabled", seen.port_security_enabled)
        if "security_groups" in body and seen.instance_uuid is not None and secured:
            groups = [group.lower() for group in body["security_groups"] or ()]
            ports.change_groups(calling(connection), seen, seen.instance_uuid, groups)
    return {"port": records.find(connection, "ports", seen.id)}, 200


@network.delete("/ports/<port_id>", "network:ports:write", writes)
def delete_port(connection: Connection, port_id: str) -> Answer:
    ports.delete(calling(connection), records.port_row(connection, port_id))
    return "", 204


def _check_device_owner(body: Record) -> None:
    """Refuse device owners of the cloud itself, except to administrators."""
    if body.get("device_owner", "").startswith(RESERVED) and not current().is_admin:
        raise refused(f"device_owner {body['device_owner'][:60]} is the cloud's own")


def _check_choices(row: Network, body: Record) -> None:
    caller = current()
    with in_words({ForbiddenError: refused}):
        network_choices.check_port(row, caller.project, body, caller.is_admin)


def _binding(there: Record | None, body: Record) -> Record | None:
    with in_words({ForbiddenError: refused}):
        return port_details.merged_binding(there, body, current().is_admin)


def _has_already(seen: Port, addresses: t.Sequence[Record]) -> bool:
    """Tell whether the port has the addresses asked for, which may name no more than their subnets."""
    there = views.fixed_ips(seen)
    return len(addresses) == len(there) and all(
        any(address.items() <= own.items() for own in there) for address in addresses
    )


def _check_attached(seen: Port, body: Record) -> None:
    """Refuse changes that a running guest's host would have to carry out: they are made with the server."""
    if not body.get("admin_state_up", True):
        raise in_use(f"Port {seen.id} is a server's: detach it instead of taking it down.")
