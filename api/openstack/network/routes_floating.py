# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating IPs. A change that hosts must see is a job in the same transaction."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import PortLedToError, UnreachableError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import floating_ips
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.floating_ips import (
    FloatingIpRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Port
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import find_pool

from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError, Words, in_words
from ...web.services import takes, writes_checked
from ...work.calls import calling
from ...work.networks import floating_ip
from . import records, schemas, views
from .blueprint import network, not_found, word
from .changes import OWNER, named

records.put_into(network, "floatingips", "network:floating_ips:read")


WORDS: Words = {
    **OWNER,
    floating_ips.AddressHeldError: word(409, "FloatingIpAddressInUse"),
    PortLedToError: word(409, "FloatingIPPortAlreadyAssociated"),
    UnreachableError: word(404, "ExternalGatewayForFloatingIPNotFound"),
}


@network.post("/floatingips", "network:floating_ips:write", takes(schemas.CREATE_FLOATING), writes_checked)
def create_floating_ip(connection: Connection, body: Record) -> Answer:
    request: FloatingIpRequest = {
        "pool": _pool(connection, body["floating_network_id"].lower()),
        "address": body.get("floating_ip_address"),
        "port": _port(connection, body),
        "description": body.get("description"),
    }
    with in_words(WORDS):
        row = floating_ips.create(calling(connection), named(body), request)
    return {"floatingip": views.floating_ip(row)}, 201


@network.put(
    "/floatingips/<floatingip_id>", "network:floating_ips:write", takes(schemas.UPDATE_FLOATING), writes_checked
)
def update_floating_ip(connection: Connection, body: Record, floatingip_id: str) -> Answer:
    seen = floating_ip(connection, floatingip_id.lower())
    request: FloatingIpRequest = {"description": body.get("description")}
    if "port_id" in body or body.get("fixed_ip_address"):
        request["port"] = _port(connection, body)
    with in_words(WORDS):
        row = floating_ips.update(calling(connection), seen, request)
    return {"floatingip": views.floating_ip(row)}, 200


@network.delete("/floatingips/<floatingip_id>", "network:floating_ips:write", writes_checked)
def delete_floating_ip(connection: Connection, floatingip_id: str) -> Answer:
    floating_ips.release(calling(connection), floating_ip(connection, floatingip_id.lower()))
    return "", 204


def _pool(connection: Connection, number: str) -> str:
    pool = find_pool(connection, number)
    if pool is not None:
        return pool.name
    for row in network_records.networks_seen(connection, current().reach):
        if row.uuid == number:
            raise BadRequestError(f"Network {number} is not a valid external network")
    raise not_found("Network", number)


def _port(connection: Connection, body: Record) -> Port | None:
    number, fixed = body.get("port_id"), body.get("fixed_ip_address")
    if not number:
        if fixed:
            raise BadRequestError("fixed_ip_address cannot be specified without a port_id")
        return None
    for row in network_records.ports_of(connection, current().reach, number.lower()):
        if row.id == number.lower():
            if row.ip is None:
                raise BadRequestError(f"Port {number} has no fixed IPv4 address yet: no floating IP can lead to it")
            if not fixed and row.more_ips:
                raise BadRequestError(
                    f"Port {number} has multiple fixed IPv4 addresses. Must provide a specific IPv4 address when "
                    "assigning a floating IP: name one in fixed_ip_address."
                )
            at = row.at(fixed or row.ip)
            if at is None:
                raise BadRequestError(f"Port {number} does not have fixed ip {str(fixed)[:60]}.")
            return at
    raise not_found("Port", number)
