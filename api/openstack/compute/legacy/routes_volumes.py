# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes and their snapshots as Compute showed them until microversion 2.35."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as volume_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Snapshot,
    Volume,
    snapshots_by,
    volumes_by,
)

from ....web.bodies import Answer, Body, Record, same
from ....web.context import current
from ....web.services import reads, takes
from ....web.times import precise
from ....work.calls import calling
from ...volume import listing, routes_volumes, schemas
from ...volume import views as cinders
from ...volume.blueprint import cinder_writes, whose
from ..blueprint import compute_legacy, since

OLD = since("2.1", "2.35")
_NAMES = {"display_name": schemas.OPTIONAL, "display_description": schemas.OPTIONAL}
VOLUME = schemas.wrapped(
    "volume",
    {
        **_NAMES,
        "size": schemas.SIZE,
        "volume_type": schemas.OPTIONAL,
        "metadata": schemas.METADATA,
        "snapshot_id": schemas.OPTIONAL,
        "availability_zone": schemas.OPTIONAL,
    },
    ["size"],
)
SNAPSHOT = schemas.wrapped("snapshot", {**_NAMES, "volume_id": schemas.UUID, "force": schemas.BOOLEAN}, ["volume_id"])


# "/os-volumes/" is a volume without an id, which there is none of
@compute_legacy.get("/os-volumes", "volume:read", OLD, strict_slashes=True)
@compute_legacy.get("/os-volumes/detail", "volume:read", OLD, reads)
def list_volumes_here(connection: Connection) -> Answer:
    rows = volumes_by(connection, project_id=current().project)
    return {"volumes": listing.page("volumes", rows, cinders.volume, _volume)["volumes"]}, 200


@compute_legacy.get("/os-volumes/<volume_id>", "volume:read", OLD, reads)
def show_volume_here(connection: Connection, volume_id: str) -> Answer:
    return {"volume": _volume(volume_views.one_volume(connection, volume_id, whose()))}, 200


@compute_legacy.post("/os-volumes", "volume:write", OLD, takes(VOLUME), cinder_writes, strict_slashes=True)
def create_volume_here(connection: Connection, body: Record) -> Answer:
    return {"volume": _volume(routes_volumes.create(connection, body))}, 200


@compute_legacy.delete("/os-volumes/<volume_id>", "volume:write", OLD, cinder_writes)
def delete_volume_here(connection: Connection, volume_id: str) -> Answer:
    volume_operations.delete(calling(connection), volume_id, project_id=whose())
    return "", 202


@compute_legacy.get("/os-snapshots", "volume:read", OLD, strict_slashes=True)
@compute_legacy.get("/os-snapshots/detail", "volume:read", OLD, reads)
def list_snapshots_here(connection: Connection) -> Answer:
    rows = snapshots_by(connection, project_id=current().project)
    return {"snapshots": listing.page("snapshots", rows, cinders.snapshot, _snapshot)["snapshots"]}, 200


@compute_legacy.get("/os-snapshots/<snapshot_id>", "volume:read", OLD, reads)
def show_snapshot_here(connection: Connection, snapshot_id: str) -> Answer:
    return {"snapshot": _snapshot(volume_views.one_snapshot(connection, snapshot_id, whose()))}, 200


@compute_legacy.post("/os-snapshots", "volume:write", OLD, takes(SNAPSHOT), cinder_writes, strict_slashes=True)
def create_snapshot_here(connection: Connection, body: Record) -> Answer:
    return {"snapshot": _snapshot(routes_volumes.record_snapshot(connection, body))}, 200


@compute_legacy.delete("/os-snapshots/<snapshot_id>", "volume:write", OLD, cinder_writes)
def delete_snapshot_here(connection: Connection, snapshot_id: str) -> Answer:
    volume_operations.delete_snapshot(calling(connection), snapshot_id, project_id=whose())
    return "", 202


def _volume(row: Volume) -> Body:
    attached = [
        {"id": row.id, "volumeId": row.id, "serverId": attachment.instance_uuid, "device": cinders.device(attachment)}
        for attachment in row.shown_attachments
    ]
    return {
        "id": row.id,
        "status": row.shown_status,
        "size": row.size_gb,
        "availabilityZone": row.availability_zone or "nova",
        "createdAt": precise(row.created_at),
        "attachments": attached or [{}],  # as Nova
        "displayName": cinders.name(row),
        "displayDescription": row.description,
        "volumeType": row.type,
        "snapshotId": row.snapshot_id,
        "metadata": row.metadata,
    }


def _snapshot(row: Snapshot) -> Body:
    return {
        **same(row, "id", "status"),
        "size": row.size_gb,
        "createdAt": precise(row.created_at),
        "displayName": cinders.name(row),
        "displayDescription": row.description,
        "volumeId": row.volume_id,
    }
