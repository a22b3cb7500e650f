# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks and their subnets. A project makes its own; the operator's are there to be looked at, and to be used."""

from __future__ import annotations

import typing as t

from flask import current_app

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import subnets, tenant_networks

from ...web import validation
from ...web.bodies import Answer, Record
from ...web.errors import BadRequestError, as_bad_request
from ...web.ledger import writing_ledger
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


@network.post("/networks", "network:write")
def create_networks() -> Answer:
    body = validation.body(CREATE)
    how = current_app.extensions["settings"].carrier
    made = []
    with writing_ledger() as connection, as_bad_request():
        for item in _items(body, "network"):
            owner = owner_of(connection, item)
            values = {"name": "", "description": "", "mtu": None, **item}
            made.append(tenant_networks.create_network(connection, owner, values, how))
        return records.some(connection, "networks", made, "networks" in body), 201


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


@network.post("/subnets", "network:write")
def create_subnets() -> Answer:
    body = validation.body(CREATE_SUBNET)
    made = []
    with writing_ledger() as connection, as_bad_request():
        for item in _items(body, "subnet"):
            owner_of(connection, item)
            version = int(item["ip_version"])
            if version == 4 and (item.get("ipv6_ra_mode") or item.get("ipv6_address_mode")):
                raise BadRequestError("Invalid input for operation: ipv6_ra_mode and ipv6_address_mode need IPv6.")
            row = records.network_row(connection, item["network_id"], write=True)
            values = {"version": version, "cidr": item["cidr"], **_given(item)}
            made.append(subnets.create_subnet(connection, row, values))
        return records.some(connection, "subnets", made, "subnets" in body), 201


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


def _items(body: Record, word: str) -> list[Record]:
    return t.cast("list[Record]", body.get(f"{word}s") or [body[word]])
