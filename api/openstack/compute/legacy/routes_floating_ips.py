# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating IPs as Compute had them: until microversion 2.35, and the two actions of a server until 2.43."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import FloatingIp
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ....web import validation
from ....web.bodies import Answer, Body, Record, same, the_one
from ....web.context import Caller, current
from ....web.errors import BadRequestError, as_bad_request
from ....web.ledger import reading_ledger, writing_ledger
from ....web.schemas import OPTIONAL, Schema, an_object, or_null
from ...network.blueprint import NeutronError
from ...network.routes_floating import allocate, associate, release
from ..blueprint import compute_legacy
from ..microversions import microversion
from ..servers.routes_actions import ACTIONS, Action
from .routes_networks import OLD

LAST_ACTION = (2, 43)
ADDRESS: Schema = {"type": "string", "format": "ipv4", "minLength": 1, "maxLength": 64}
POOL = or_null(an_object({"pool": OPTIONAL}))
ADD = an_object({"address": ADDRESS, "fixed_address": ADDRESS}, ["address"])
REMOVE = an_object({"address": ADDRESS}, ["address"])


@compute_legacy.get("/os-floating-ip-pools", "network:floating_ips:read", OLD)
def list_floating_ip_pools_here() -> Answer:
    with reading_ledger() as connection:
        rows = network_records.pools_seen(connection)
    return {"floating_ip_pools": [{"name": row.name} for row in rows]}, 200


@compute_legacy.get("/os-floating-ips", "network:floating_ips:read", OLD)
def list_floating_ips_here() -> Answer:
    with reading_ledger() as connection:
        rows = network_records.floating_ips_of(connection, current().project)
    return {"floating_ips": [_floating(row) for row in rows]}, 200


@compute_legacy.get("/os-floating-ips/<floating_ip_id>", "network:floating_ips:read", OLD)
def show_floating_ip_here(floating_ip_id: str) -> Answer:
    with reading_ledger() as connection:
        return {"floating_ip": _floating(_found(connection, floating_ip_id))}, 200


@compute_legacy.post("/os-floating-ips", "network:floating_ips:write", OLD)
def create_floating_ip_here() -> Answer:
    pool = (validation.body(POOL) or {}).get("pool")
    with writing_ledger() as connection, as_bad_request():
        if pool is not None:
            pool = _pool(connection, pool)
        row = _found(connection, allocate(connection, pool))
    return {"floating_ip": _floating(row)}, 200


@compute_legacy.delete("/os-floating-ips/<floating_ip_id>", "network:floating_ips:write", OLD)
def delete_floating_ip_here(floating_ip_id: str) -> Answer:
    with writing_ledger() as connection, as_bad_request():
        release(connection, _found(connection, floating_ip_id))
    return "", 202


def _add(connection: Connection, server: InstanceRow, value: Record, caller: Caller) -> None:
    """The action addFloatingIp."""
    _check_action()
    floating = _of_address(connection, value["address"])
    ports = network_records.interfaces_of(connection, caller.project, server.uuid)
    ports = [port for port in ports if port.ip is not None]
    if not ports:
        raise BadRequestError("No fixed IPs associated to instance")
    if "fixed_address" in value:
        ports = [port for port in ports if port.ip == value["fixed_address"]]
        if not ports:
            raise BadRequestError("Specified fixed address not assigned to instance")
    with as_bad_request():
        try:
            associate(connection, floating.id, ports[0])
        except (ConflictError, NeutronError) as error:
            raise BadRequestError(f"Unable to associate floating IP {value['address']}: {error}") from error


def _remove(connection: Connection, server: InstanceRow, value: Record, caller: Caller) -> None:
    """The action removeFloatingIp."""
    _check_action()
    floating = _of_address(connection, value["address"])
    if floating.instance_uuid != server.uuid:
        raise ConflictError(f"Floating IP {value['address']} is not associated with instance {server.uuid}.")
    with as_bad_request():
        associate(connection, floating.id, None)


def _check_action() -> None:
    if microversion() > LAST_ACTION:
        raise BadRequestError("There is no such action: use the Network service for floating IPs.")


def _of_address(connection: Connection, address: str) -> FloatingIp:
    rows = network_records.floating_ips_of(connection, current().reach)
    return the_one(rows, "address", address, NotFoundError(f"floating IP {address} not found"))


def _pool(connection: Connection, wanted: str) -> str:
    """The pool's name; clients give that of its network, or the network's id."""
    for row in network_records.pools_seen(connection):
        if wanted in (row.name, network_records.pool_network_id(row.name)):
            return row.name
    raise NotFoundError("Floating IP pool not found.")


def _found(connection: Connection, number: str) -> FloatingIp:
    rows = network_records.floating_ips_of(connection, current().reach, number)
    return the_one(rows, "id", number, NotFoundError(f"Floating IP not found for ID {number[:255]}"))


def _floating(row: FloatingIp) -> Body:
    return {"id": row.id, "ip": row.address, **same(row, "pool", "fixed_ip"), "instance_id": row.instance_uuid}


ACTIONS["addFloatingIp"] = Action("network:floating_ips:write", ADD, _add)
ACTIONS["removeFloatingIp"] = Action("network:floating_ips:write", REMOVE, _remove)
