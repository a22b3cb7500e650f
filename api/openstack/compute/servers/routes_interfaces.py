# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network interfaces of servers: to be looked at, attached and detached. The host's part is a job."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import interfaces, server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.interfaces import Wanted
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import network_choices
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.pool_claims import PoolExhaustedError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records, server_listing

from ....jobs.queue import enqueue
from ....web import policy, validation
from ....web.context import current, request_id
from ....web.errors import STATUS, BadRequestError
from ....web.ledger import reading_ledger, writing_ledger
from ..blueprint import Answer, compute
from ..microversions import microversion
from . import views_parts
from .schemas import DEVICE_TAG, UUID, Schema, of

Record = dict[str, t.Any]


@compute.get("/servers/<server_id>/os-interface")
@policy.allows("compute:interfaces:read")
def list_interfaces(server_id: str) -> Answer:
    with reading_ledger() as connection:
        record = _record(connection, server_id)
    attachments = [views_parts.interface(nic, record["vm_state"], microversion()) for nic in record["nics"]]
    return {"interfaceAttachments": attachments}, 200


@compute.get("/servers/<server_id>/os-interface/<port_id>")
@policy.allows("compute:interfaces:read")
def show_interface(server_id: str, port_id: str) -> Answer:
    with reading_ledger() as connection:
        return {"interfaceAttachment": _shown(connection, server_id, port_id)}, 200


@compute.post("/servers/<server_id>/os-interface")
@policy.allows("compute:interfaces:write")
def add_interface(server_id: str) -> Answer:
    asked_for = validation.body(of("interfaceAttachment", _schema()))["interfaceAttachment"]
    addresses = asked_for.get("fixed_ips") or []
    if asked_for.get("port_id") is not None and asked_for.get("net_id") is not None:
        raise BadRequestError("Must not input both network_id and port_id")
    if addresses and asked_for.get("net_id") is None:
        raise BadRequestError("Must input network_id when request IP address")
    caller = current()
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        server_changes.refuse_locked(row, caller.is_admin)
        row = interfaces.server_row(connection, row.uuid)
        interfaces.check(connection, "attach_interface", row)
        fixed = addresses[0]["ip_address"] if addresses else None
        if asked_for.get("port_id") is not None:
            wanted = Wanted(port=asked_for["port_id"].lower())
        elif asked_for.get("net_id") is not None:
            uuid = asked_for["net_id"].lower()
            of_network = interfaces.network_named(connection, row.project_id, uuid=uuid)
            choice = {"fixed_ips:ip_address": fixed}
            network_choices.check(uuid, of_network.owner, row.project_id, choice, caller.is_admin)
            wanted = Wanted(of_network, fixed_ip=fixed)
        else:
            wanted = Wanted(_only_network(connection, row.project_id))
        try:
            number = interfaces.begin_attach(connection, row, wanted, request_id=request_id(), user_id=caller.user_id)
        except PoolExhaustedError as error:
            raise BadRequestError(str(error)) from error
        except NovaliteError as error:
            if isinstance(error, tuple(STATUS)):
                raise
            raise BadRequestError(str(error)) from error
        _enqueue(connection, "interface_attach", row)
        return {"interfaceAttachment": _shown(connection, server_id, number)}, 200


@compute.delete("/servers/<server_id>/os-interface/<port_id>")
@policy.allows("compute:interfaces:write")
def remove_interface(server_id: str, port_id: str) -> Answer:
    caller = current()
    with writing_ledger() as connection:
        _shown(connection, server_id, port_id)
        row = server_listing.one(connection, server_id, caller.reach)
        server_changes.refuse_locked(row, caller.is_admin)
        row = interfaces.server_row(connection, row.uuid)
        interfaces.begin_detach(connection, row, port_id, request_id=request_id(), user_id=caller.user_id)
        _enqueue(connection, "interface_detach", row)
    return "", 202


def _schema() -> Schema:
    address: Schema = {
        "type": "object",
        "properties": {"ip_address": {"type": "string", "format": "ipv4", "maxLength": 45}},
        "required": ["ip_address"],
        "additionalProperties": False,
    }
    properties: Schema = {
        "net_id": UUID,
        "port_id": UUID,
        "fixed_ips": {"type": "array", "minItems": 1, "maxItems": 1, "items": address},
    }
    if microversion() >= (2, 49):
        properties["tag"] = DEVICE_TAG
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _record(connection: Connection, server_id: str) -> Record:
    row = server_listing.one(connection, server_id, current().reach)
    return server_listing.load(connection, [row.id])[0]


def _shown(connection: Connection, server_id: str, port_id: str) -> Record:
    record = _record(connection, server_id)
    for nic in record["nics"]:
        if nic["id"] == port_id:
            return views_parts.interface(nic, record["vm_state"], microversion())
    raise NotFoundError(f"Instance {server_id} does not have a port with id {port_id}")


def _only_network(connection: Connection, project_id: str) -> t.Any:
    seen = network_records.networks_seen(connection, project_id)
    if not seen:
        raise BadRequestError("No specific network was requested and none are available.")
    if len(seen) > 1:
        raise BadRequestError("Multiple possible networks found, use a Network ID to be more specific.")
    return interfaces.network_named(connection, project_id, uuid=seen[0].uuid)


def _enqueue(connection: Connection, kind: str, row: t.Any) -> None:
    enqueue(
        connection,
        kind,
        instances=[row.uuid],
        project_id=row.project_id,
        user_id=current().user_id,
        request_id=request_id(),
    )
