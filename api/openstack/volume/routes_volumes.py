# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes: list, show, make, change, delete; what is said about them in metadata."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import lookups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import Volume, volumes_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots, volumes

from ...web import policy, validation
from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.ledger import writing_ledger
from ...web.maps import Change, Map, Texts
from ...web.services import reads, takes
from . import listing, schemas, views
from .blueprint import cinder_writes, enqueue, in_cinders_words, speaks, volume, whose


# "/volumes/" is a volume without an id, which there is none of
@volume.get("/<project>/volumes", "volume:read", strict_slashes=True, defaults={"shown": views.brief_volume})
@volume.get("/<project>/volumes/detail", "volume:read", reads, defaults={"shown": views.volume})
def list_volumes(connection: Connection, shown: listing.View) -> Answer:
    rows = volumes_by(connection, project_id=listing.project_asked_for())
    return listing.page("volumes", rows, views.volume, shown), 200


@volume.get("/<project>/volumes/summary", "volume:read", reads)
def summarize(connection: Connection) -> Answer:
    rows = volumes_by(connection, project_id=listing.project_asked_for())
    body: Record = {"total_size": sum(row.size_gb for row in rows), "total_count": len(rows)}
    if speaks(36):
        values: dict[str, set[str]] = {}
        for row in rows:
            for key, value in row.metadata.items():
                values.setdefault(key, set()).add(value)
        body["metadata"] = {key: sorted(values) for key, values in values.items()}
    return {"volume-summary": body}, 200


@volume.get("/<project>/volumes/<volume_id>", "volume:read", reads)
def show_volume(connection: Connection, volume_id: str) -> Answer:
    return {"volume": views.volume(volumes.one_volume(connection, volume_id, whose()))}, 200


@volume.post("/<project>/volumes", "volume:write", strict_slashes=True)
def create_volume() -> Answer:
    return {"volume": views.new_volume(create(validation.body(schemas.VOLUME)["volume"]))}, 202


def create(body: Record) -> Volume:
    """Record the volume that `body` asks for, and have it made."""
    if schemas.truth(body.get("multiattach")):
        raise BadRequestError("Invalid input received: a volume is attached to one server at a time here.")
    with writing_ledger() as connection, in_cinders_words():
        row = volumes.create_volume(connection, current().project, _wanted(connection, body))
        if row.status == "creating":
            enqueue(connection, "volume_create", row, volumes=row.id)
    return row


def _wanted(connection: Connection, body: Record) -> Record:
    caller = current()
    image = None
    if body.get("imageRef"):
        try:
            image = lookups.image_by_id(connection, body["imageRef"], caller.project)
        except NotFoundError:
            raise BadRequestError("Invalid image identifier or unable to access requested image.") from None
    size = body.get("size")
    return {
        "size_gb": None if size is None else int(size),
        "name": body.get("name") or body.get("display_name"),
        "description": body.get("description") or body.get("display_description"),
        "type": body.get("volume_type") or None,
        "private_types": caller.is_admin,
        "image": image,
        "snapshot_id": body.get("snapshot_id"),
        "source_volume_id": body.get("source_volid"),
        "availability_zone": body.get("availability_zone"),
        "metadata": body.get("metadata") or {},
        "user_id": caller.user_id,
    }


@volume.put("/<project>/volumes/<volume_id>", "volume:write", takes(schemas.VOLUME_CHANGES), cinder_writes)
def update_volume(connection: Connection, body: Record, volume_id: str) -> Answer:
    row = volumes.update_volume(connection, volume_id, changes(body), project_id=whose())
    return {"volume": views.new_volume(row)}, 200


def changes(body: Record) -> Record:
    """What a client says of a volume or a snapshot, as the ledger takes it."""
    values: Record = {}
    for key, names in (("name", ("name", "display_name")), ("description", ("description", "display_description"))):
        for name in names:
            if name in body:
                values[key] = body[name]
    if body.get("metadata") is not None:
        values["metadata"] = body["metadata"]
    return values


@volume.delete("/<project>/volumes/<volume_id>", "volume:write")
def delete_volume(volume_id: str) -> Answer:
    force, cascade = (schemas.truth(request.args.get(name)) for name in ("force", "cascade"))
    if force:
        policy.check("volume:admin")
    with writing_ledger() as connection, in_cinders_words():
        remove(connection, volume_id, force, cascade)
    return "", 202


def remove(connection: Connection, number: str, force: bool, cascade: bool = False) -> None:
    begin = volume_snapshots.begin_delete_all if cascade else volumes.begin_delete
    row = begin(connection, number, project_id=whose(), force=force)
    if row.made_at is None and row.host is None:
        volumes.finish_delete(connection, number)  # it is nowhere yet
    else:
        enqueue(connection, "volume_delete", row, volumes=number)


# --- Metadata -------------------------------------------------------------------------------------------------------


def _describe(connection: Connection, change: Change, before: Texts, number: str) -> Texts:
    wanted = {"metadata": change.of(before)}
    metadata: Texts = volumes.update_volume(connection, number, wanted, project_id=whose()).metadata
    return metadata


METADATA = Map(
    name="volume_metadata",
    path="/<project>/volumes/<volume_id>/metadata",
    reads="volume:read",
    writes="volume:write",
    word="metadata",
    schema={**schemas.METADATA, "type": "object"},
    find=lambda connection, number: volumes.one_volume(connection, number, whose()).metadata,
    write=_describe,
    words=in_cinders_words,
    missing="Metadata item {key} was not found.",
    deleted=200,
    more=True,
)
METADATA.put_into(volume)
