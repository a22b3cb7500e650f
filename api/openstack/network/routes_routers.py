# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routers: each compute host lets the guests of their networks out by itself, and is told so by a job."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import (
    external_networks,
    network_choices,
    routers,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.pool_claims import (
    AddressInUseError,
    PoolExhaustedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.routers import Router
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.hosts import update_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import Network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.subnet_records import Subnet
from ansible_collections.novalite.cloud.plugins.module_utils._rules import pools

from ...web import policy
from ...web.bodies import Answer, Record
from ...web.errors import BadRequestError, Words, in_words
from ...web.services import takes, writes, writes_checked
from ...work.calls import calling
from ...work.networks import network_row
from . import records, schemas
from .blueprint import NeutronError, network, not_found, word
from .changes import owner_of

CREATE = schemas.wrapped("router", schemas.CREATE_ROUTER)
UPDATE = schemas.wrapped("router", schemas.UPDATE_ROUTER)

WORDS: Words = {
    AddressInUseError: word(409, "IpAddressInUse"),
    PoolExhaustedError: word(409, "IpAddressGenerationFailure"),
}

records.put_into(network, "routers", "network:routers:read")


@network.post("/routers", "network:routers:write", takes(CREATE), writes_checked)
def create_router(connection: Connection, body: Record) -> Answer:
    owner = owner_of(connection, body)
    with in_words(WORDS):
        number = routers.create_router(connection, owner, _router_values(connection, body))
    return {"router": records.find(connection, "routers", number)}, 201


@network.put("/routers/<router_id>", "network:routers:write", takes(UPDATE), writes_checked)
def update_router(connection: Connection, body: Record, router_id: str) -> Answer:
    row = records.router_row(connection, router_id)
    with in_words(WORDS):
        hosts = routers.update_router(connection, row, _router_values(connection, body))
    _tell(connection, hosts, row.project_id)
    return {"router": records.find(connection, "routers", row.id)}, 200


@network.delete("/routers/<router_id>", "network:routers:write", writes)
def delete_router(connection: Connection, router_id: str) -> Answer:
    routers.delete_router(connection, records.router_row(connection, router_id))
    return "", 204


@network.put(
    "/routers/<router_id>/add_router_interface", "network:routers:write", takes(schemas.INTERFACE), writes_checked
)
def add_interface(connection: Connection, body: Record, router_id: str) -> Answer:
    row = records.router_row(connection, router_id)
    port_id: str | None = None
    if "port_id" in body:
        port_id, of_network, subnet = _free_port(connection, body["port_id"])
    else:
        of_network, subnet = records.subnet_row(connection, body["subnet_id"])
    network_choices.check_router(of_network, row.project_id, policy.allowed("network:routers:any_network"))
    _check_overlap(connection, row, subnet)
    gateway = subnet.gateway if of_network.tenant else None
    port_id, hosts = routers.add_interface(connection, row, subnet, gateway, port_id)
    _tell(connection, hosts, row.project_id)
    return _interface(row, port_id, of_network.uuid, subnet.id), 200


@network.put("/routers/<router_id>/remove_router_interface", "network:routers:write", takes(schemas.INTERFACE), writes)
def remove_interface(connection: Connection, body: Record, router_id: str) -> Answer:
    row = records.router_row(connection, router_id)
    for interface in routers.interfaces(connection, row.id):
        if body.get("port_id", interface.vif_id).lower() == interface.vif_id and (
            body.get("subnet_id", interface.subnet_id).lower() == interface.subnet_id
        ):
            hosts = routers.remove_interface(connection, row.id, interface.vif_id)
            _tell(connection, hosts, row.project_id)
            return _interface(row, interface.vif_id, interface.network_uuid, interface.subnet_id), 200
    if "subnet_id" in body:
        records.subnet_row(connection, body["subnet_id"])
    raise NeutronError(
        404,
        "RouterInterfaceNotFound",
        f"Router {row.id} does not have an interface with id {body.get('port_id') or body.get('subnet_id')}",
    )


def _interface(row: Router, port_id: str, network_uuid: str, subnet_id: str) -> Record:
    return {
        **{"id": row.id, "tenant_id": row.project_id, "project_id": row.project_id, "tags": []},
        **{"port_id": port_id, "network_id": network_uuid, "subnet_id": subnet_id, "subnet_ids": [subnet_id]},
    }


def _free_port(connection: Connection, number: str) -> tuple[str, Network, Subnet]:
    seen = records.port_row(connection, number)
    if seen.instance_uuid is not None or seen.router_id is not None or seen.device_id:
        raise NeutronError(
            409,
            "PortInUse",
            f"Unable to complete operation on port {seen.id} for network {seen.network_uuid}. Port already has "
            f"an attached device {seen.instance_uuid or seen.router_id or seen.device_id}.",
        )
    if seen.ip is None and seen.ipv6 is None:
        raise BadRequestError("Bad router request: Router port must have at least one fixed IP.")
    if seen.more_ips:
        raise BadRequestError(
            f"Bad router request: Cannot have multiple IPv4 subnets on router port ({seen.id}): leave it one address."
        )
    return seen.id, *records.subnet_row(connection, seen.subnet_ids[str(seen.ip or seen.ipv6)])


def _check_overlap(connection: Connection, row: Router, subnet: Subnet) -> None:
    """A router could not tell two subnets with the same addresses apart."""
    for interface in routers.interfaces(connection, row.id):
        other = records.subnet_row(connection, interface.subnet_id)[1]
        if other.version == subnet.version and pools.overlap(subnet.cidr, other.cidr):
            raise BadRequestError(
                f"Bad router request: Cidr {subnet.cidr} of subnet {subnet.id} overlaps with cidr {other.cidr} of "
                f"subnet {other.id}."
            )


def _router_values(connection: Connection, body: Record) -> Record:
    router_values: Record = {key: body[key] for key in ("name", "description", "admin_state_up") if key in body}
    if "external_gateway_info" in body:
        leads = body["external_gateway_info"] or {}
        if "enable_snat" in leads:
            policy.check("network:routers:enable_snat")
        if leads.get("external_fixed_ips") is not None:
            policy.check("network:routers:external_fixed_ips")
            router_values["addresses"] = leads["external_fixed_ips"]
        pool = leads.get("network_id")
        if pool is not None:
            _check_pool(connection, pool.lower())
        router_values["pool"] = None if pool is None else pool.lower()
        router_values["enable_snat"] = leads.get("enable_snat", True)
    return router_values


def _check_pool(connection: Connection, number: str) -> None:
    if external_networks.find_pool(connection, number) is None:
        try:
            network_row(connection, number)
        except (NeutronError, NotFoundError):
            raise not_found("Network", number) from None
        raise BadRequestError(f"Bad router request: Network {number} is not an external network.")


def _tell(connection: Connection, hosts: t.Sequence[str], owner: str) -> None:
    if hosts:
        update_hosts(calling(connection), "floating_ips", {"network_hosts": list(hosts)}, owner)
