# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attachments of servers: interfaces and volumes, shown, attached and detached. The host's part is a job."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    InvalidVolumeError,
    NotFoundError,
    NovaliteError,
    PoolExhaustedError,
    RootVolumeError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import attachments
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.attachments import InterfaceRequest
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import locked_row
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_records import subnet_ids
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Attachment,
    attachments_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_requests import network_of_choice

from ....web.bodies import Answer, Body, Record, the_one
from ....web.context import current
from ....web.errors import BadRequestError, ForbiddenError, in_words
from ....web.ledger import reading_ledger, writing_ledger
from ....web.schemas import UUID, Schema, a_list, an_object, wrapped
from ....web.services import reads, takes, writes
from ....work import waiting
from ....work.calls import calling
from ..blueprint import compute, from_version, microversion, part
from .routes_parts import interface
from .schemas import BOOLEAN, DEVICE_TAG, TRUE

# --- interfaces (os-interface) --------------------------------------------------------------------------------------


@compute.get("/servers/<server_id>/os-interface", "compute:interfaces:read", reads)
def list_interfaces(connection: Connection, server_id: str) -> Answer:
    record = _record(connection, server_id)
    subnets = subnet_ids(connection, [nic["network_uuid"] for nic in record["nics"]])
    return {"interfaceAttachments": [interface(nic, record["vm_state"], subnets) for nic in record["nics"]]}, 200


@compute.get("/servers/<server_id>/os-interface/<port_id>", "compute:interfaces:read", reads)
def show_interface(connection: Connection, server_id: str, port_id: str) -> Answer:
    return {"interfaceAttachment": _interface(connection, server_id, port_id)}, 200


def _interface_schema() -> Schema:
    address = an_object({"ip_address": {"type": "string", "format": "ipv4", "maxLength": 45}}, ["ip_address"])
    tag = from_version((2, 49), {"tag": DEVICE_TAG})
    return wrapped("interfaceAttachment", {"net_id": UUID, "port_id": UUID, "fixed_ips": a_list(address, 1, 1), **tag})


@compute.post("/servers/<server_id>/os-interface", "compute:interfaces:write", takes(_interface_schema))
def add_interface(interface_body: Record, server_id: str) -> Answer:
    addresses = interface_body.get("fixed_ips") or []
    if interface_body.get("port_id") is not None and interface_body.get("net_id") is not None:
        raise BadRequestError("Must not input both network_id and port_id")
    if addresses and interface_body.get("net_id") is None:
        raise BadRequestError("Must input network_id when request IP address")
    with writing_ledger() as connection:
        row = _locked_row(connection, server_id)
        call = calling(connection)
        attachments.check_attach_interface(call, row)
        fixed = addresses[0]["ip_address"] if addresses else None
        if interface_body.get("port_id") is not None:
            interface_request = InterfaceRequest(port=interface_body["port_id"].lower())
        elif interface_body.get("net_id") is not None:
            interface_request = attachments.interface_in(
                call, row, uuid=interface_body["net_id"].lower(), fixed_ip=fixed
            )
        else:
            interface_request = _network_of_choice(call, row)
        with in_words({PoolExhaustedError: BadRequestError, NovaliteError: BadRequestError}):
            port_id, job_id = attachments.attach_interface(call, row, interface_request)
    # As Nova, which answers when the guest has the NIC: until then, the next request for the server would be refused
    job = waiting.ended(job_id)
    if job is not None and job.state != "succeeded":
        raise ConflictError(f"Failed to attach network adapter device to {server_id}: {job.message or 'ask its host'}")
    with reading_ledger() as connection:
        return {"interfaceAttachment": _interface(connection, server_id, port_id)}, 200


@compute.delete("/servers/<server_id>/os-interface/<port_id>", "compute:interfaces:write", writes)
def remove_interface(connection: Connection, server_id: str, port_id: str) -> Answer:
    _interface(connection, server_id, port_id)
    attachments.detach_interface(calling(connection), _locked_row(connection, server_id), port_id)
    return "", 202


def _locked_row(connection: Connection, server_id: str) -> InstanceRow:
    row = server_listing.instance_row(connection, server_id, current().reach)
    return locked_row(connection, row.uuid)


def _record(connection: Connection, server_id: str) -> Record:
    row = server_listing.instance_row(connection, server_id, current().reach)
    return server_listing.load(connection, [row.id])[0]


def _interface(connection: Connection, server_id: str, port_id: str) -> Body:
    record = _record(connection, server_id)
    missing = NotFoundError(f"Instance {server_id} does not have a port with id {port_id}")
    nic = the_one(record["nics"], "id", port_id, missing)
    return interface(nic, record["vm_state"], subnet_ids(connection, [nic["network_uuid"]]))


def _network_of_choice(call: Call, row: InstanceRow) -> InterfaceRequest:
    seen = network_records.networks_seen(call.connection, row.project_id)
    if not seen:
        raise BadRequestError("No specific network was requested and none are available.")
    if (chosen := network_of_choice(seen)) is None:
        raise BadRequestError("Multiple possible networks found, use a Network ID to be more specific.")
    return attachments.interface_in(call, row, uuid=chosen.uuid)


# --- volumes (os-volume_attachments) --------------------------------------------------------------------------------

DEVICE: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._/-]*$"}


def _volume(attachment: Attachment, created: bool = False) -> Body:
    by_its_own = microversion() >= (2, 89) and not created
    return {
        **({"attachment_id": attachment.id, "bdm_uuid": attachment.id} if by_its_own else {"id": attachment.volume_id}),
        "serverId": attachment.instance_uuid,
        **{"volumeId": attachment.volume_id, "device": attachment.device},
        **from_version((2, 70), {"tag": attachment.tag}),
        **from_version((2, 79), {"delete_on_termination": attachment.delete_on_termination}),
    }


def _in_novas_words() -> t.ContextManager[None]:
    """Turn errors about the volume into bad requests, and those about the server into conflicts."""
    return in_words(
        {
            RootVolumeError: ForbiddenError,
            InvalidVolumeError: BadRequestError,
            ConflictError: ConflictError,
            NotFoundError: NotFoundError,
            NovaliteError: BadRequestError,
        }
    )


def _attachment_of(connection: Connection, row: InstanceRow, volume_id: str) -> Attachment:
    for attachment in attachments_by(connection, volumes=[volume_id], instances=[row.uuid]):
        return attachment
    raise NotFoundError(f"Instance {row.uuid} is not attached to volume {volume_id[:64]}")


def _attaching() -> Schema:
    terminating = from_version((2, 79), {"delete_on_termination": BOOLEAN})
    properties = {"device": DEVICE, **from_version((2, 49), {"tag": DEVICE_TAG}), **terminating}
    return wrapped("volumeAttachment", {"volumeId": UUID, **properties}, ["volumeId"])


def _updating() -> Schema:
    same_again = {"device": DEVICE, "tag": DEVICE_TAG, "serverId": UUID, "id": UUID}
    properties = from_version((2, 85), {**same_again, "delete_on_termination": BOOLEAN})
    return wrapped("volumeAttachment", {"volumeId": UUID, **properties}, ["volumeId"])


@compute.get("/servers/<server_id>/os-volume_attachments", "compute:server-volumes:read", reads)
def list_volume_attachments(connection: Connection, server_id: str) -> Answer:
    row = server_listing.instance_row(connection, server_id, current().reach)
    shown = sorted(attachments_by(connection, instances=[row.uuid]), key=lambda attachment: attachment.device)
    return {"volumeAttachments": [_volume(attachment) for attachment in part(shown)]}, 200


@compute.get("/servers/<server_id>/os-volume_attachments/<volume_id>", "compute:server-volumes:read", reads)
def show_volume_attachment(connection: Connection, server_id: str, volume_id: str) -> Answer:
    row = server_listing.instance_row(connection, server_id, current().reach)
    return {"volumeAttachment": _volume(_attachment_of(connection, row, volume_id))}, 200


@compute.post("/servers/<server_id>/os-volume_attachments", "compute:server-volumes:write", takes(_attaching), writes)
def attach_volume(connection: Connection, attachment_body: Record, server_id: str) -> Answer:
    row = server_listing.instance_row(connection, server_id, current().reach)
    with _in_novas_words():
        made = attachments.attach_volume(
            calling(connection),
            attachment_body["volumeId"].lower(),
            row.uuid,
            project_id=row.project_id,
            device=attachment_body.get("device"),
            tag=attachment_body.get("tag"),
            delete_on_termination=attachment_body.get("delete_on_termination") in TRUE,
        )
    return {"volumeAttachment": _volume(made, created=True)}, 200


@compute.put(
    "/servers/<server_id>/os-volume_attachments/<volume_id>", "compute:server-volumes:write", takes(_updating), writes
)
def update_volume_attachment(connection: Connection, attachment_body: Record, server_id: str, volume_id: str) -> Answer:
    """Set whether the volume is deleted with its server. Swapping it for another volume is not offered."""
    row = server_listing.instance_row(connection, server_id, current().reach)
    attachment = _attachment_of(connection, row, volume_id)
    if attachment_body["volumeId"].lower() != volume_id.lower():
        raise ConflictError(
            f"Volume {volume_id[:64]} of instance {row.uuid} cannot be swapped for another one: detach it, and "
            "attach the other."
        )
    if "delete_on_termination" in attachment_body:
        attachments.update_volume(
            calling(connection), attachment.id, delete_on_termination=attachment_body["delete_on_termination"] in TRUE
        )
    return "", 202


@compute.delete("/servers/<server_id>/os-volume_attachments/<volume_id>", "compute:server-volumes:write", writes)
def detach_volume(connection: Connection, server_id: str, volume_id: str) -> Answer:
    row = server_listing.instance_row(connection, server_id, current().reach)
    attachment = _attachment_of(connection, row, volume_id)
    with _in_novas_words():
        attachments.detach_volume(calling(connection), attachment.volume_id, row.uuid, project_id=row.project_id)
    return "", 202
