# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attachments of volumes as resources of their own (from 3.27 on): those of servers, and reservations by clients."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import attachments
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import volume_holders
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog.volume_holders import Connector
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_listing, volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Attachment,
    Reservation,
    Volume,
    attachments_by,
    reservations_by,
    volumes_by,
)

from ...web.bodies import Answer, Body, Record
from ...web.services import reads, takes, writes_checked
from ...web.validation import check
from ...work.calls import calling
from . import listing, schemas, views
from .blueprint import cinder_writes, since, volume, whose


class Held(t.NamedTuple):
    id: str
    volume: Volume
    holder: Attachment | Reservation


def _load(connection: Connection, ids: list[str]) -> list[Held]:
    holders: list[Attachment | Reservation] = [
        *attachments_by(connection, ids=ids),
        *reservations_by(connection, ids=ids),
    ]
    of = {row.id: row for row in volumes_by(connection, ids=[holder.volume_id for holder in holders])}
    return [Held(holder.id, of[holder.volume_id], holder) for holder in holders]


ATTACHMENTS: listing.Kind[Held] = listing.Kind("attachments", volume_listing.ATTACHMENTS, _load)


def _brief(held: Held) -> Body:
    return views.brief_attachment(held.volume, held.holder)


def _full(held: Held) -> Body:
    return views.attachment(held.volume, held.holder)


@volume.get("/<project>/attachments", "volume:read", strict_slashes=True, defaults={"shown": _brief})
@volume.get("/<project>/attachments/detail", "volume:read", since(27), reads, defaults={"shown": _full})
def list_attachments(connection: Connection, shown: listing.View[Held]) -> Answer:
    return listing.page_of(connection, ATTACHMENTS, shown), 200


@volume.get("/<project>/attachments/<attachment_id>", "volume:read", since(27), reads)
def show_attachment(connection: Connection, attachment_id: str) -> Answer:
    return {"attachment": _full(_held(connection, attachment_id))}, 200


@volume.post(
    "/<project>/attachments",
    "volume:write",
    *(since(27), takes(schemas.ATTACHMENT), cinder_writes),
    strict_slashes=True,
)
def create_attachment(connection: Connection, body: Record) -> Answer:
    row = volume_views.one_volume(connection, body["volume_uuid"], whose())
    call, mode = calling(connection), body.get("mode")
    made: Attachment | Reservation
    if body.get("instance_uuid"):
        made = attachments.attach_volume(
            call, row.id, body["instance_uuid"], project_id=row.project_id, readonly=mode == "ro"
        )
    else:
        if body.get("connector"):
            check(body["connector"], schemas.CONNECTOR, "connector")
        connector = _connector(body["connector"]) if body.get("connector") else None
        made = volume_holders.reserve(call, row.id, mode=mode, connector=connector, project_id=whose())
    return {"attachment": _full(_held(connection, made.id))}, 200


@volume.put(
    "/<project>/attachments/<attachment_id>",
    "volume:write",
    since(27),
    takes(schemas.CONNECTED_ATTACHMENT),
    writes_checked,
)
def update_attachment(connection: Connection, body: Record, attachment_id: str) -> Answer:
    held = _held(connection, attachment_id)
    volume_holders.connect(calling(connection), held.volume, held.holder, _connector(body["connector"]))
    return {"attachment": _full(_held(connection, attachment_id))}, 200


def _connector(body: Record) -> Connector:
    return Connector(body["host"], body.get("mountpoint"), body.get("mode"))


@volume.delete("/<project>/attachments/<attachment_id>", "volume:write", since(27), cinder_writes)
def delete_attachment(connection: Connection, attachment_id: str) -> Answer:
    held = _held(connection, attachment_id)
    volume_holders.release(calling(connection), held.volume, held.holder)
    if isinstance(held.holder, Reservation):
        return {"attachments": []}, 200
    row = volume_views.one_volume(connection, held.volume.id)
    return {"attachments": [views.brief_attachment(row, held.holder)]}, 200


@volume.post(
    "/<project>/attachments/<attachment_id>/action",
    "volume:write",
    *(since(44), takes(schemas.COMPLETE), cinder_writes),
)
def complete_attachment(connection: Connection, _body: Record, attachment_id: str) -> Answer:
    held = _held(connection, attachment_id)
    volume_holders.complete(calling(connection), held.volume, held.holder)
    return "", 204


def _held(connection: Connection, number: str) -> Held:
    """Return an attachment that the caller may ask for. Raises NotFoundError."""
    rows = _load(connection, [number])
    if not rows or whose() not in (None, rows[0].volume.project_id):
        raise NotFoundError(f"Volume attachment could not be found with filter: attachment_id = {number[:60]}.")
    return rows[0]
