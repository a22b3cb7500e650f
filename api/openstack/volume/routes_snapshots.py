# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of volumes."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import Snapshot, snapshots_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots, volumes

from ...web import policy, validation
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.ledger import reading_ledger, writing_ledger
from . import listing, schemas, views
from .blueprint import Answer, Record, enqueue, in_cinders_words, speaks, volume, whose
from .routes_volumes import changes, found, one_of, without


@volume.get("/<project>/snapshots", strict_slashes=True)
@policy.allows("volume:read")
def list_snapshots() -> Answer:
    return _listed(views.new_snapshot)


@volume.get("/<project>/snapshots/detail")
@policy.allows("volume:read")
def list_snapshots_in_detail() -> Answer:
    return _listed(views.snapshot)


def _listed(shown: t.Callable[[Snapshot], Record]) -> Answer:
    with reading_ledger() as connection:
        rows = snapshots_by(connection, project_id=listing.project_asked_for())
    return listing.page("snapshots", rows, views.snapshot, shown), 200


@volume.get("/<project>/snapshots/<number>")
@policy.allows("volume:read")
def show_snapshot(number: str) -> Answer:
    with reading_ledger() as connection:
        return {"snapshot": views.snapshot(volume_snapshots.one_snapshot(connection, number, whose()))}, 200


@volume.post("/<project>/snapshots", strict_slashes=True)
@policy.allows("volume:write")
def create_snapshot() -> Answer:
    return {"snapshot": views.new_snapshot(create(validation.body(schemas.SNAPSHOT)["snapshot"]))}, 202


def create(body: Record) -> Snapshot:
    """Record the snapshot that `body` asks for, and have it taken."""
    with writing_ledger() as connection, in_cinders_words():
        wanted = {
            **changes(body),
            "volume_id": body["volume_id"] or "",
            "user_id": current().user_id,
            "force": schemas.truth(body.get("force")) or speaks(66),
        }
        row = volume_snapshots.create_snapshot(connection, current().project, wanted)
        if row.status == "creating":
            _enqueue(connection, "volume_snapshot_create", row)
    return row


@volume.put("/<project>/snapshots/<number>")
@policy.allows("volume:write")
def update_snapshot(number: str) -> Answer:
    body = validation.body(schemas.SNAPSHOT_CHANGES)["snapshot"]
    with writing_ledger() as connection, in_cinders_words():
        row = volume_snapshots.update_snapshot(connection, number, changes(body), project_id=whose())
    return {"snapshot": views.new_snapshot(row)}, 200


@volume.delete("/<project>/snapshots/<number>")
@policy.allows("volume:write")
def delete_snapshot(number: str) -> Answer:
    remove(number, force=False)
    return "", 202


def remove(number: str, force: bool) -> None:
    with writing_ledger() as connection, in_cinders_words():
        row = volume_snapshots.begin_delete_snapshot(connection, number, project_id=whose(), force=force)
        _enqueue(connection, "volume_snapshot_delete", row)


def _enqueue(connection: Connection, kind: str, row: Snapshot) -> None:
    of = volumes.one_volume(connection, row.volume_id)
    enqueue(connection, kind, row, [attachment.instance_uuid for attachment in of.attachments], snapshots=row.id)


ACTION: Record = {"type": "object", "minProperties": 1, "maxProperties": 1}
STATUS: Record = {
    "type": "object",
    "properties": {"status": {"enum": ["creating", "available", "deleting", "error", "error_deleting"]}},
    "required": ["status"],
}


@volume.post("/<project>/snapshots/<number>/action")
@policy.allows("volume:write")
def act_on_snapshot(number: str) -> Answer:
    ((name, said),) = validation.body(ACTION).items()
    with reading_ledger() as connection:
        volume_snapshots.one_snapshot(connection, number, whose())
    if name not in ("os-force_delete", "os-reset_status", "os-update_snapshot_status"):
        raise BadRequestError(f"There is no such action: {name[:60]}")
    policy.check("volume:admin")
    if name == "os-force_delete":
        remove(number, force=True)
        return "", 202
    validation.check(said, STATUS, f"value of {name}")
    with writing_ledger() as connection, in_cinders_words():
        volume_snapshots.update_snapshot(connection, number, {"status": said["status"]}, project_id=whose())
    return "", 202


# --- Metadata -------------------------------------------------------------------------------------------------------


@volume.get("/<project>/snapshots/<number>/metadata")
@policy.allows("volume:read")
def list_snapshot_metadata(number: str) -> Answer:
    with reading_ledger() as connection:
        return {"metadata": volume_snapshots.one_snapshot(connection, number, whose()).metadata}, 200


@volume.route("/<project>/snapshots/<number>/metadata", methods=["POST", "PUT"])
@policy.allows("volume:write")
def write_snapshot_metadata(number: str) -> Answer:
    keep = request.method == "POST"

    def changed(old: Record) -> Record:
        said = validation.body(schemas.METADATA_BODY)["metadata"]
        return {**old, **said} if keep else said

    return {"metadata": _describe(number, changed)}, 200


@volume.get("/<project>/snapshots/<number>/metadata/<key>")
@policy.allows("volume:read")
def show_snapshot_metadata(number: str, key: str) -> Answer:
    with reading_ledger() as connection:
        metadata = volume_snapshots.one_snapshot(connection, number, whose()).metadata
    return {"meta": {key: found(metadata, key)}}, 200


@volume.put("/<project>/snapshots/<number>/metadata/<key>")
@policy.allows("volume:write")
def set_snapshot_metadata(number: str, key: str) -> Answer:
    return {"meta": {key: _describe(number, lambda old: {**old, **one_of(key)})[key]}}, 200


@volume.delete("/<project>/snapshots/<number>/metadata/<key>")
@policy.allows("volume:write")
def remove_snapshot_metadata(number: str, key: str) -> Answer:
    _describe(number, lambda old: without(old, key))
    return "", 200


def _describe(number: str, changed: t.Callable[[Record], Record]) -> Record:
    with writing_ledger() as connection, in_cinders_words():
        row = volume_snapshots.one_snapshot(connection, number, whose())
        wanted = {"metadata": changed(row.metadata)}
        row = volume_snapshots.update_snapshot(connection, number, wanted, project_id=whose())
    return t.cast("Record", row.metadata)
