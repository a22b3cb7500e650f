# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routers: each compute host lets the guests of their networks out by itself, and is told so by a job."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    AddressInUseError,
    NotFoundError,
    PoolExhaustedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import routers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.routers import (
    Gateway,
    RouterValues,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.router_records import (
    Router,
    RouterInterface,
    interfaces,
)

from ...web.bodies import Answer, Record
from ...web.errors import BadRequestError, Words, in_words
from ...web.services import takes, writes, writes_checked
from ...work.calls import calling
from ...work.networks import network_row
from . import records, schemas
from .blueprint import NeutronError, network, not_found, word
from .changes import OWNER, named

CREATE = schemas.wrapped("router", schemas.CREATE_ROUTER)
UPDATE = schemas.wrapped("router", schemas.UPDATE_ROUTER)

WORDS: Words = {
    **OWNER,
    AddressInUseError: word(409, "IpAddressInUse"),
    PoolExhaustedError: word(409, "IpAddressGenerationFailure"),
}

records.put_into(network, "routers", "network:routers:read")


@network.post("/routers", "network:routers:write", takes(CREATE), writes_checked)
def create_router(connection: Connection, body: Record) -> Answer:
    with _words(connection, body):
        number = routers.create(calling(connection), named(body), _router_values(body))
    return {"router": records.find(connection, "routers", number)}, 201


@network.put("/routers/<router_id>", "network:routers:write", takes(UPDATE), writes_checked)
def update_router(connection: Connection, body: Record, router_id: str) -> Answer:
    row = records.router_row(connection, router_id)
    with _words(connection, body):
        routers.update(calling(connection), row, _router_values(body))
    return {"router": records.find(connection, "routers", row.id)}, 200


@network.delete("/routers/<router_id>", "network:routers:write", writes)
def delete_router(connection: Connection, router_id: str) -> Answer:
    routers.delete(calling(connection), records.router_row(connection, router_id))
    return "", 204


@network.put(
    "/routers/<router_id>/add_router_interface", "network:routers:write", takes(schemas.INTERFACE), writes_checked
)
def add_interface(connection: Connection, body: Record, router_id: str) -> Answer:
    row, call = records.router_row(connection, router_id), calling(connection)
    if "port_id" in body:
        added = routers.add_port(call, row, records.port_row(connection, body["port_id"]))
    else:
        added = routers.add_subnet(call, row, *records.subnet_row(connection, body["subnet_id"]))
    return _interface(row, added), 200


@network.put("/routers/<router_id>/remove_router_interface", "network:routers:write", takes(schemas.INTERFACE), writes)
def remove_interface(connection: Connection, body: Record, router_id: str) -> Answer:
    row = records.router_row(connection, router_id)
    for interface in interfaces(connection, row.id):
        if body.get("port_id", interface.vif_id).lower() == interface.vif_id and (
            body.get("subnet_id", interface.subnet_id).lower() == interface.subnet_id
        ):
            routers.remove_interface(calling(connection), interface, row.project_id)
            return _interface(row, interface), 200
    if "subnet_id" in body:
        records.subnet_row(connection, body["subnet_id"])
    raise NeutronError(
        404,
        "RouterInterfaceNotFound",
        f"Router {row.id} does not have an interface with id {body.get('port_id') or body.get('subnet_id')}",
    )


def _interface(row: Router, interface: RouterInterface) -> Record:
    subnet_id = interface.subnet_id
    return {
        **{"id": row.id, "tenant_id": row.project_id, "project_id": row.project_id, "tags": []},
        **{"port_id": interface.vif_id, "network_id": interface.network_uuid},
        **{"subnet_id": subnet_id, "subnet_ids": [subnet_id]},
    }


def _router_values(body: Record) -> RouterValues:
    values: Record = {key: body[key] for key in ("name", "description", "admin_state_up") if key in body}
    if "external_gateway_info" in body:
        leads = body["external_gateway_info"] or {}
        number = leads.get("network_id")
        values["gateway"] = Gateway(
            number and number.lower(), leads.get("enable_snat"), leads.get("external_fixed_ips")
        )
    return t.cast("RouterValues", values)


def _words(connection: Connection, body: Record) -> t.ContextManager[None]:
    """Around what may refuse the external network, of all that is looked for, and its addresses."""
    number = (body.get("external_gateway_info") or {}).get("network_id", "")
    return in_words({**WORDS, NotFoundError: lambda _message: _no_pool(connection, number.lower())})


def _no_pool(connection: Connection, number: str) -> Exception:
    try:
        network_row(connection, number)
    except NeutronError:
        return not_found("Network", number)
    return BadRequestError(f"Bad router request: Network {number} is not an external network.")
