# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks and their subnets. A project makes its own; the operator's are there to be looked at, and to be used."""

from __future__ import annotations

from flask import current_app

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import subnets, tenant_networks

from ...web.bodies import Answer, Record
from ...web.errors import BadRequestError
from ...web.services import takes, writes, writes_checked
from . import records, schemas
from .blueprint import network
from .changes import owner_of

CREATE = schemas.one_or_many("network", schemas.CREATE_NETWORK)
UPDATE = schemas.wrapped("network", schemas.NETWORK)
CREATE_SUBNET = schemas.one_or_many("subnet", schemas.CREATE_SUBNET, ["network_id", "ip_version", "cidr"])
UPDATE_SUBNET = schemas.wrapped("subnet", schemas.UPDATE_SUBNET)

# Neutron's attributes of a subnet, and what the ledger calls them
SUBNET = {
    "name": "name",
    "description": "description",
    "gateway_ip": "gateway",
    "dns_nameservers": "dns",
    "host_routes": "routes",
    "enable_dhcp": "enable_dhcp",
}


records.put_into(network, "networks", "network:read")
records.put_into(network, "subnets", "network:read")


# --- Networks -------------------------------------------------------------------------------------------------------


@network.post("/networks", "network:write", takes(CREATE), writes_checked)
def create_networks(connection: Connection, body: Record) -> Answer:
    how = current_app.extensions["settings"].carrier

    def create(item: Record) -> str:
        values = {"name": "", "description": "", "mtu": None, **item}
        return tenant_networks.create_network(connection, owner_of(connection, item), values, how)

    return records.create_some(connection, "networks", body, create), 201


@network.put("/networks/<network_id>", "network:write", takes(UPDATE), writes_checked)
def update_network(connection: Connection, wanted: Record, network_id: str) -> Answer:
    row = records.network_row(connection, network_id, write=True)
    tenant_networks.update_network(connection, row, wanted)
    return {"network": records.find(connection, "networks", row.uuid)}, 200


@network.delete("/networks/<network_id>", "network:write", writes)
def delete_network(connection: Connection, network_id: str) -> Answer:
    tenant_networks.delete_network(connection, records.network_row(connection, network_id, write=True))
    return "", 204


# --- Subnets --------------------------------------------------------------------------------------------------------


@network.post("/subnets", "network:write", takes(CREATE_SUBNET), writes_checked)
def create_subnets(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        owner_of(connection, item)
        version = int(item["ip_version"])
        if version == 4 and (item.get("ipv6_ra_mode") or item.get("ipv6_address_mode")):
            raise BadRequestError("Invalid input for operation: ipv6_ra_mode and ipv6_address_mode need IPv6.")
        row = records.network_row(connection, item["network_id"], write=True)
        return subnets.create_subnet(connection, row, {"version": version, "cidr": item["cidr"], **_given(item)})

    return records.create_some(connection, "subnets", body, create), 201


@network.put("/subnets/<subnet_id>", "network:write", takes(UPDATE_SUBNET), writes_checked)
def update_subnet(connection: Connection, wanted: Record, subnet_id: str) -> Answer:
    row, version = records.subnet_row(connection, subnet_id, write=True)
    before = tenant_networks.subnets_of(connection, [row.id])[row.id, version]
    subnets.update_subnet(connection, row, before, _given(wanted))
    return {"subnet": records.find(connection, "subnets", subnet_id.lower())}, 200


@network.delete("/subnets/<subnet_id>", "network:write", writes)
def delete_subnet(connection: Connection, subnet_id: str) -> Answer:
    row, version = records.subnet_row(connection, subnet_id, write=True)
    subnets.delete_subnet(connection, row, version)
    return "", 204


def _given(wanted: Record) -> Record:
    values = {ours: wanted[name] for name, ours in SUBNET.items() if name in wanted}
    if "allocation_pools" in wanted:
        values["pools"] = [(pool["start"], pool["end"]) for pool in wanted["allocation_pools"]]
    return values
