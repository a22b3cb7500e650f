# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attachments as resources of their own (from 3.27 on)."""

from __future__ import annotations

import typing as t

from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import (
    Attachment,
    Volume,
    volumes_by,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volumes

from ...web import validation
from ...web.bodies import Answer, Body
from ...web.ledger import reading_ledger, writing_ledger
from . import listing, schemas, views
from .blueprint import in_cinders_words, speaks, volume, whose
from .routes_volume_actions import attach, detach


class _Held(t.NamedTuple):
    id: str
    volume: Volume
    attachment: Attachment


@volume.get("/<project>/attachments", "volume:read", strict_slashes=True, defaults={"shown": views.brief_attachment})
@volume.get("/<project>/attachments/detail", "volume:read", defaults={"shown": views.attachment})
def list_attachments(shown: t.Callable[[Volume, Attachment], Body]) -> Answer:
    _check_version()
    with reading_ledger() as connection:
        rows = volumes_by(connection, project_id=listing.project_asked_for())
    return listing.page(
        "attachments",
        [_Held(attachment.id, row, attachment) for row in rows for attachment in row.attachments],
        lambda held: views.attachment(held.volume, held.attachment),
        lambda held: shown(held.volume, held.attachment),
    ), 200


@volume.get("/<project>/attachments/<attachment_id>", "volume:read")
def show_attachment(attachment_id: str) -> Answer:
    _check_version()
    with reading_ledger() as connection:
        return {"attachment": views.attachment(*_one(connection, attachment_id))}, 200


@volume.post("/<project>/attachments", "volume:write", strict_slashes=True)
def create_attachment() -> Answer:
    _check_version()
    body = validation.body(schemas.ATTACHMENT)["attachment"]
    with writing_ledger() as connection, in_cinders_words():
        made = attach(connection, body["volume_uuid"], body["instance_uuid"], readonly=body.get("mode") == "ro")
        return {"attachment": views.attachment(*_one(connection, made.id))}, 200


@volume.delete("/<project>/attachments/<attachment_id>", "volume:write")
def delete_attachment(attachment_id: str) -> Answer:
    _check_version()
    with writing_ledger() as connection, in_cinders_words():
        row, attachment = _one(connection, attachment_id)
        detach(connection, row, attachment.instance_uuid)
        row = volumes.one_volume(connection, row.id)
        return {"attachments": [views.brief_attachment(row, attachment)]}, 200


def _check_version() -> None:
    if not speaks(27):
        raise NotFound()


def _one(connection: Connection, number: str) -> tuple[Volume, Attachment]:
    for row in volumes_by(connection, project_id=whose()):
        for attachment in row.attachments:
            if attachment.id == number:
                return row, attachment
    raise NotFoundError(f"Volume attachment could not be found with filter: attachment_id = {number[:60]}.")
