# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of volumes."""

from __future__ import annotations

import dataclasses

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import Snapshot, snapshots_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import volume_snapshots, volumes

from ...web import policy, validation
from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.ledger import reading_ledger, writing_ledger
from ...web.maps import Change, Texts
from ...web.schemas import ACTION, an_object
from ...web.services import reads, takes
from . import listing, schemas, views
from .blueprint import cinder_writes, enqueue, in_cinders_words, speaks, volume, whose
from .routes_volumes import METADATA, changes


@volume.get("/<project>/snapshots", "volume:read", strict_slashes=True, defaults={"shown": views.new_snapshot})
@volume.get("/<project>/snapshots/detail", "volume:read", reads, defaults={"shown": views.snapshot})
def list_snapshots(connection: Connection, shown: listing.View) -> Answer:
    rows = snapshots_by(connection, project_id=listing.project_asked_for())
    return listing.page("snapshots", rows, views.snapshot, shown), 200


@volume.get("/<project>/snapshots/<snapshot_id>", "volume:read", reads)
def show_snapshot(connection: Connection, snapshot_id: str) -> Answer:
    return {"snapshot": views.snapshot(volume_snapshots.one_snapshot(connection, snapshot_id, whose()))}, 200


@volume.post("/<project>/snapshots", "volume:write", strict_slashes=True)
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


@volume.put("/<project>/snapshots/<snapshot_id>", "volume:write", takes(schemas.SNAPSHOT_CHANGES), cinder_writes)
def update_snapshot(connection: Connection, body: Record, snapshot_id: str) -> Answer:
    row = volume_snapshots.update_snapshot(connection, snapshot_id, changes(body), project_id=whose())
    return {"snapshot": views.new_snapshot(row)}, 200


@volume.delete("/<project>/snapshots/<snapshot_id>", "volume:write")
def delete_snapshot(snapshot_id: str) -> Answer:
    remove(snapshot_id, force=False)
    return "", 202


def remove(number: str, force: bool) -> None:
    with writing_ledger() as connection, in_cinders_words():
        row = volume_snapshots.begin_delete_snapshot(connection, number, project_id=whose(), force=force)
        _enqueue(connection, "volume_snapshot_delete", row)


def _enqueue(connection: Connection, kind: str, row: Snapshot) -> None:
    of = volumes.one_volume(connection, row.volume_id)
    enqueue(connection, kind, row, [attachment.instance_uuid for attachment in of.attachments], snapshots=row.id)


STATES = ["creating", "available", "deleting", "error", "error_deleting"]
STATUS = an_object({"status": {"enum": STATES}}, ["status"], more=True)


@volume.post("/<project>/snapshots/<snapshot_id>/action", "volume:write")
def act_on_snapshot(snapshot_id: str) -> Answer:
    ((name, said),) = validation.body(ACTION).items()
    with reading_ledger() as connection:
        volume_snapshots.one_snapshot(connection, snapshot_id, whose())
    if name not in ("os-force_delete", "os-reset_status", "os-update_snapshot_status"):
        raise BadRequestError(f"There is no such action: {name[:60]}")
    policy.check("volume:admin")
    if name == "os-force_delete":
        remove(snapshot_id, force=True)
        return "", 202
    validation.check(said, STATUS, f"value of {name}")
    with writing_ledger() as connection, in_cinders_words():
        volume_snapshots.update_snapshot(connection, snapshot_id, {"status": said["status"]}, project_id=whose())
    return "", 202


# --- Metadata -------------------------------------------------------------------------------------------------------


def _describe(connection: Connection, change: Change, before: Texts, number: str) -> Texts:
    wanted = {"metadata": change.of(before)}
    metadata: Texts = volume_snapshots.update_snapshot(connection, number, wanted, project_id=whose()).metadata
    return metadata


dataclasses.replace(
    METADATA,
    name="snapshot_metadata",
    path="/<project>/snapshots/<snapshot_id>/metadata",
    find=lambda connection, number: volume_snapshots.one_snapshot(connection, number, whose()).metadata,
    write=_describe,
).put_into(volume)
