# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Network interfaces of servers: to be looked at, attached and detached. The host's part is a job."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import interfaces, server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute.interfaces import InterfaceRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import network_choices
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.pool_claims import PoolExhaustedError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records, server_listing

from ....web import validation
from ....web.bodies import Answer, Body, Record, the_one
from ....web.context import current
from ....web.errors import BadRequestError, in_words
from ....web.ledger import reading_ledger, writing_ledger
from ....web.schemas import UUID, Schema, a_list, an_object, wrapped
from ..blueprint import compute
from ..microversions import from_version
from ..tasks import enqueue, who
from . import views_parts
from .schemas import DEVICE_TAG


@compute.get("/servers/<server_id>/os-interface", "compute:interfaces:read")
def list_interfaces(server_id: str) -> Answer:
    with reading_ledger() as connection:
        record = _record(connection, server_id)
    attachments = [views_parts.interface(nic, record["vm_state"]) for nic in record["nics"]]
    return {"interfaceAttachments": attachments}, 200


@compute.get("/servers/<server_id>/os-interface/<port_id>", "compute:interfaces:read")
def show_interface(server_id: str, port_id: str) -> Answer:
    with reading_ledger() as connection:
        return {"interfaceAttachment": _shown(connection, server_id, port_id)}, 200


@compute.post("/servers/<server_id>/os-interface", "compute:interfaces:write")
def add_interface(server_id: str) -> Answer:
    asked_for = validation.body(_schema())["interfaceAttachment"]
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
            wanted = InterfaceRequest(port=asked_for["port_id"].lower())
        elif asked_for.get("net_id") is not None:
            uuid = asked_for["net_id"].lower()
            of_network = interfaces.network_named(connection, row.project_id, uuid=uuid)
            choice = {"fixed_ips:ip_address": fixed}
            network_choices.check(uuid, of_network.owner, row.project_id, choice, caller.is_admin)
            wanted = InterfaceRequest(of_network, fixed_ip=fixed)
        else:
            wanted = _only_network(connection, row.project_id)
        with in_words({PoolExhaustedError: BadRequestError, NovaliteError: BadRequestError}):
            number = interfaces.begin_attach(connection, row, wanted, **who())
        enqueue(connection, "interface_attach", row)
        return {"interfaceAttachment": _shown(connection, server_id, number)}, 200


@compute.delete("/servers/<server_id>/os-interface/<port_id>", "compute:interfaces:write")
def remove_interface(server_id: str, port_id: str) -> Answer:
    caller = current()
    with writing_ledger() as connection:
        _shown(connection, server_id, port_id)
        row = server_listing.one(connection, server_id, caller.reach)
        server_changes.refuse_locked(row, caller.is_admin)
        row = interfaces.server_row(connection, row.uuid)
        interfaces.begin_detach(connection, row, port_id, **who())
        enqueue(connection, "interface_detach", row)
    return "", 202


def _schema() -> Schema:
    address = an_object({"ip_address": {"type": "string", "format": "ipv4", "maxLength": 45}}, ["ip_address"])
    tag = from_version((2, 49), {"tag": DEVICE_TAG})
    return wrapped("interfaceAttachment", {"net_id": UUID, "port_id": UUID, "fixed_ips": a_list(address, 1, 1), **tag})


def _record(connection: Connection, server_id: str) -> Record:
    row = server_listing.one(connection, server_id, current().reach)
    return server_listing.load(connection, [row.id])[0]


def _shown(connection: Connection, server_id: str, port_id: str) -> Body:
    record = _record(connection, server_id)
    missing = NotFoundError(f"Instance {server_id} does not have a port with id {port_id}")
    return views_parts.interface(the_one(record["nics"], "id", port_id, missing), record["vm_state"])


def _only_network(connection: Connection, project_id: str) -> InterfaceRequest:
    seen = network_records.networks_seen(connection, project_id)
    if not seen:
        raise BadRequestError("No specific network was requested and none are available.")
    if len(seen) > 1:
        raise BadRequestError("Multiple possible networks found, use a Network ID to be more specific.")
    return InterfaceRequest(interfaces.network_named(connection, project_id, uuid=seen[0].uuid))
