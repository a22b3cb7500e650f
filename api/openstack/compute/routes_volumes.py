# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes of servers (os-volume_attachments): what is asked for is begun here, with the job that carries it out."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import (
    Attachment,
    attachments_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_attachments
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ...web import validation
from ...web.bodies import Answer, Body
from ...web.context import current, request_id
from ...web.errors import BadRequestError, ForbiddenError, in_words
from ...web.ledger import reading_ledger, writing_ledger
from ...web.schemas import UUID, Schema, wrapped
from .blueprint import compute
from .microversions import Version, microversion
from .paging import NOVA
from .servers.schemas import BOOLEAN, DEVICE_TAG, TRUE
from .tasks import enqueue

DEVICE: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._/-]*$"}


def _creation(version: Version) -> Schema:
    properties: dict[str, Schema] = {"volumeId": UUID, "device": DEVICE}
    if version >= (2, 49):
        properties["tag"] = DEVICE_TAG
    if version >= (2, 79):
        properties["delete_on_termination"] = BOOLEAN
    return wrapped("volumeAttachment", properties, ["volumeId"])


def _update(version: Version) -> Schema:
    properties: dict[str, Schema] = {"volumeId": UUID}
    if version >= (2, 85):
        properties |= {"device": DEVICE, "tag": DEVICE_TAG, "serverId": UUID, "id": UUID}
        properties["delete_on_termination"] = BOOLEAN
    return wrapped("volumeAttachment", properties, ["volumeId"])


def _shown(one: Attachment, version: Version, created: bool = False) -> Body:
    body: Body = {"id": one.volume_id, "serverId": one.instance_uuid, "volumeId": one.volume_id, "device": one.device}
    if version >= (2, 70):
        body["tag"] = one.tag
    if version >= (2, 79):
        body["delete_on_termination"] = one.delete_on_termination
    if version >= (2, 89) and not created:
        del body["id"]
        body |= {"attachment_id": one.id, "bdm_uuid": one.id}
    return body


def _in_novas_words() -> t.ContextManager[None]:
    """What is wrong with the volume is a bad request; what is wrong with the server a conflict."""
    return in_words({ConflictError: _conflict, NotFoundError: NotFoundError, NovaliteError: BadRequestError})


def _conflict(message: str) -> Exception:
    if message.startswith("Cannot detach a root device"):
        return ForbiddenError(message)
    return BadRequestError(message) if message.startswith("Invalid volume") else ConflictError(message)


def _attachment(connection: Connection, row: InstanceRow, volume_id: str) -> Attachment:
    for attachment in attachments_by(connection, volumes=[volume_id], instances=[row.uuid]):
        return attachment
    raise NotFoundError(f"Instance {row.uuid} is not attached to volume {volume_id[:64]}")


@compute.get("/servers/<server_id>/os-volume_attachments", "compute:server-volumes:read")
def list_volume_attachments(server_id: str) -> Answer:
    offset, limit = NOVA.whole("offset", 0), NOVA.limit()
    with reading_ledger() as connection:
        row = server_listing.one(connection, server_id, current().reach)
        found = attachments_by(connection, instances=[row.uuid])
    shown = sorted(found, key=lambda attachment: attachment.device)[offset : offset + limit]
    return {"volumeAttachments": [_shown(attachment, microversion()) for attachment in shown]}, 200


@compute.get("/servers/<server_id>/os-volume_attachments/<volume_id>", "compute:server-volumes:read")
def show_volume_attachment(server_id: str, volume_id: str) -> Answer:
    with reading_ledger() as connection:
        row = server_listing.one(connection, server_id, current().reach)
        return {"volumeAttachment": _shown(_attachment(connection, row, volume_id), microversion())}, 200


@compute.post("/servers/<server_id>/os-volume_attachments", "compute:server-volumes:write")
def attach_volume(server_id: str) -> Answer:
    caller, version = current(), microversion()
    asked = validation.body(_creation(version))["volumeAttachment"]
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        with _in_novas_words():
            made = volume_attachments.begin_attach(
                connection,
                asked["volumeId"].lower(),
                row.uuid,
                project_id=row.project_id,
                device=asked.get("device"),
                tag=asked.get("tag"),
                delete_on_termination=asked.get("delete_on_termination") in TRUE,
                request_id=request_id(),
                user_id=caller.user_id,
                ignore_lock=caller.is_admin,
            )
        enqueue(connection, "volume_attach", row, {"attachments": [made.id]})
        return {"volumeAttachment": _shown(made, version, created=True)}, 200


@compute.put("/servers/<server_id>/os-volume_attachments/<volume_id>", "compute:server-volumes:write")
def update_volume_attachment(server_id: str, volume_id: str) -> Answer:
    """Whether the volume goes with its server. To put another volume in its place is not offered."""
    asked = validation.body(_update(microversion()))["volumeAttachment"]
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, current().reach)
        one = _attachment(connection, row, volume_id)
        if asked["volumeId"].lower() != volume_id.lower():
            raise ConflictError(
                f"Volume {volume_id[:64]} of instance {row.uuid} cannot be swapped for another one: detach it, and "
                "attach the other."
            )
        if "delete_on_termination" in asked:
            volume_attachments.update_attachment(
                connection, one.id, delete_on_termination=asked["delete_on_termination"] in TRUE
            )
    return "", 202


@compute.delete("/servers/<server_id>/os-volume_attachments/<volume_id>", "compute:server-volumes:write")
def detach_volume(server_id: str, volume_id: str) -> Answer:
    caller = current()
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        one = _attachment(connection, row, volume_id)
        with _in_novas_words():
            volume_attachments.begin_detach(
                connection,
                one.volume_id,
                row.uuid,
                request_id=request_id(),
                user_id=caller.user_id,
                ignore_lock=caller.is_admin,
            )
        enqueue(connection, "volume_detach", row, {"attachments": [one.id]})
    return "", 202
