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
from ...web.bodies import Answer, Body, Record
from ...web.context import current
from ...web.errors import BadRequestError, ForbiddenError, in_words
from ...web.ledger import reading_ledger, writing_ledger
from ...web.schemas import UUID, Schema, wrapped
from .blueprint import compute
from .microversions import from_version, microversion
from .paging import NOVA
from .servers.schemas import BOOLEAN, DEVICE_TAG, TRUE
from .tasks import asker, enqueue

DEVICE: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": 255, "pattern": "^[a-zA-Z0-9._/-]*$"}


def _body(properties: Schema) -> Record:
    """The request's body, which names a volume, and has `properties` beside. Raises BadRequestError."""
    schema = wrapped("volumeAttachment", {"volumeId": UUID, **properties}, ["volumeId"])
    asked: Record = validation.body(schema)["volumeAttachment"]
    return asked


def _shown(one: Attachment, created: bool = False) -> Body:
    by_its_own = microversion() >= (2, 89) and not created
    return {
        **({"attachment_id": one.id, "bdm_uuid": one.id} if by_its_own else {"id": one.volume_id}),
        "serverId": one.instance_uuid,
        **{"volumeId": one.volume_id, "device": one.device},
        **from_version((2, 70), {"tag": one.tag}),
        **from_version((2, 79), {"delete_on_termination": one.delete_on_termination}),
    }


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
    return {"volumeAttachments": [_shown(attachment) for attachment in shown]}, 200


@compute.get("/servers/<server_id>/os-volume_attachments/<volume_id>", "compute:server-volumes:read")
def show_volume_attachment(server_id: str, volume_id: str) -> Answer:
    with reading_ledger() as connection:
        row = server_listing.one(connection, server_id, current().reach)
        return {"volumeAttachment": _shown(_attachment(connection, row, volume_id))}, 200


@compute.post("/servers/<server_id>/os-volume_attachments", "compute:server-volumes:write")
def attach_volume(server_id: str) -> Answer:
    terminating = from_version((2, 79), {"delete_on_termination": BOOLEAN})
    asked = _body({"device": DEVICE, **from_version((2, 49), {"tag": DEVICE_TAG}), **terminating})
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, current().reach)
        with _in_novas_words():
            made = volume_attachments.begin_attach(
                connection,
                asked["volumeId"].lower(),
                row.uuid,
                project_id=row.project_id,
                device=asked.get("device"),
                tag=asked.get("tag"),
                delete_on_termination=asked.get("delete_on_termination") in TRUE,
                **asker(),
            )
        enqueue(connection, "volume_attach", row, {"attachments": [made.id]})
        return {"volumeAttachment": _shown(made, created=True)}, 200


@compute.put("/servers/<server_id>/os-volume_attachments/<volume_id>", "compute:server-volumes:write")
def update_volume_attachment(server_id: str, volume_id: str) -> Answer:
    """Whether the volume goes with its server. To put another volume in its place is not offered."""
    same_again = {"device": DEVICE, "tag": DEVICE_TAG, "serverId": UUID, "id": UUID}
    asked = _body(from_version((2, 85), {**same_again, "delete_on_termination": BOOLEAN}))
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
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, current().reach)
        one = _attachment(connection, row, volume_id)
        with _in_novas_words():
            volume_attachments.begin_detach(connection, one.volume_id, row.uuid, **asker())
        enqueue(connection, "volume_detach", row, {"attachments": [one.id]})
    return "", 202
