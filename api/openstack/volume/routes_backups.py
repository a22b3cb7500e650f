# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of volumes: list, show, take, restore, change, delete, and their records for another cloud."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as volume_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import (
    volume_backup_records,
    volume_listing,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_backup_records import (
    VolumeBackup,
)

from ...web import policy, validation
from ...web.bodies import Answer, Body, Record
from ...web.errors import BadRequestError
from ...web.ledger import reading_ledger, writing_ledger
from ...web.schemas import ACTION, NAME, OPTIONAL, TEXT, an_object, or_null
from ...web.services import reads, takes
from ...web.times import precise
from ...work.calls import calling
from . import listing, schemas, views
from .blueprint import cinder_writes, in_cinders_words, since, speaks, volume, whose

BACKUPS: listing.Kind[VolumeBackup] = listing.Kind(
    "backups", volume_listing.BACKUPS, lambda connection, ids: volume_backup_records.backups_by(connection, ids=ids)
)
CONTAINER = "novalite"
_SHOWN = {"name": OPTIONAL, "description": OPTIONAL}
BACKUP = schemas.wrapped(
    "backup",
    {
        **{"volume_id": schemas.UUID, "container": OPTIONAL, "snapshot_id": OPTIONAL, "availability_zone": OPTIONAL},
        **{name: {"anyOf": [schemas.BOOLEAN, schemas.NULL]} for name in ("incremental", "force")},
        **{**_SHOWN, "metadata": schemas.METADATA},
    },
    ["volume_id"],
)
CHANGES = schemas.wrapped("backup", {**_SHOWN, "metadata": schemas.METADATA})
RESTORE = an_object({"restore": or_null(an_object({"name": OPTIONAL, "volume_id": OPTIONAL}))}, ["restore"], more=True)
RECORD = schemas.wrapped(
    "backup-record",
    {"backup_service": NAME, "backup_url": {**TEXT, "minLength": 1, "maxLength": 1 << 16}},
    ["backup_service", "backup_url"],
)
STATUS = an_object({"status": {"enum": list(volume_backup_records.STATES)}}, ["status"], more=True)


def brief(row: VolumeBackup) -> Body:
    return {"id": row.id, "name": row.name, "links": views.links("backups", row.id, row.project_id)}


def full(row: VolumeBackup) -> Body:
    body: Body = {
        **brief(row),
        **{"status": row.status, "size": row.size_gb, "volume_id": row.volume_id, "description": row.description},
        **{"created_at": precise(row.created_at), "updated_at": precise(row.updated_at)},
        **{"data_timestamp": precise(row.created_at), "snapshot_id": None, "availability_zone": "nova"},
        **{
            "container": CONTAINER,
            "object_count": 1,
            "fail_reason": None if row.fault is None else row.fault["message"],
        },
        **{"is_incremental": row.parent_id is not None, "has_dependent_backups": row.has_dependents},
    }
    if speaks(18) and policy.allowed("volume:admin"):
        body["os-backup-project-attr:project_id"] = row.project_id
    if speaks(43):
        body["metadata"] = row.metadata
    if speaks(56) and policy.allowed("volume:admin"):
        body["user_id"] = row.user_id
    return body


@volume.get("/<project>/backups", "volume:read", reads, strict_slashes=True, defaults={"shown": brief})
@volume.get("/<project>/backups/detail", "volume:read", reads, defaults={"shown": full})
def list_backups(connection: Connection, shown: listing.View) -> Answer:
    return listing.page_of(connection, BACKUPS, shown), 200


@volume.get("/<project>/backups/<backup_id>", "volume:read", reads)
def show_backup(connection: Connection, backup_id: str) -> Answer:
    return {"backup": full(volume_backup_records.one_backup(connection, backup_id, whose()))}, 200


@volume.post("/<project>/backups", "volume:write", takes(BACKUP), cinder_writes, strict_slashes=True)
def create_backup(connection: Connection, body: Record) -> Answer:
    if body.get("snapshot_id"):
        raise BadRequestError("Invalid snapshot: backups are of volumes here: make a volume of the snapshot first.")
    if body.get("metadata") and not speaks(43):
        raise BadRequestError("Additional properties are not allowed ('metadata' was unexpected)")
    request: volume_operations.BackupRequest = {
        "volume_id": body["volume_id"],
        "name": body.get("name"),
        "description": body.get("description"),
        "metadata": body.get("metadata"),
        "incremental": schemas.truth(body.get("incremental")),
        "force": schemas.truth(body.get("force")),
    }
    return {"backup": brief(volume_operations.create_backup(calling(connection), request))}, 202


@volume.put("/<project>/backups/<backup_id>", "volume:write", since(9), takes(CHANGES), cinder_writes)
def update_backup(connection: Connection, body: volume_operations.Changes, backup_id: str) -> Answer:
    row = volume_operations.update_backup(calling(connection), backup_id, body, project_id=whose())
    return {"backup": brief(row)}, 200


@volume.delete("/<project>/backups/<backup_id>", "volume:write", cinder_writes)
def delete_backup(connection: Connection, backup_id: str) -> Answer:
    volume_operations.delete_backup(calling(connection), backup_id, project_id=whose())
    return "", 202


@volume.post("/<project>/backups/<backup_id>/restore", "volume:write", takes(RESTORE), cinder_writes)
def restore_backup(connection: Connection, body: Record, backup_id: str) -> Answer:
    body = body or {}
    row, of = volume_operations.restore_backup(
        calling(connection),
        backup_id,
        volume_id=body.get("volume_id") or None,
        name=body.get("name") or None,
        project_id=whose(),
    )
    return {"restore": {"backup_id": row.id, "volume_id": of.id, "volume_name": views.name(of)}}, 202


@volume.get("/<project>/backups/<backup_id>/export_record", "volume:admin")
def export_record(backup_id: str) -> Answer:
    with reading_ledger() as connection, in_cinders_words():
        record = volume_backup_records.exported(connection, backup_id)
    return {"backup-record": {"backup_service": volume_backup_records.SERVICE, "backup_url": record}}, 200


@volume.post("/<project>/backups/import_record", "volume:admin", takes(RECORD), cinder_writes)
def import_record(connection: Connection, body: Record) -> Answer:
    row = volume_operations.import_backup(calling(connection), body["backup_url"], service=body["backup_service"])
    return {"backup": brief(row)}, 201


@volume.post("/<project>/backups/<backup_id>/action", "volume:admin")
def act_on_backup(backup_id: str) -> Answer:
    ((name, body),) = validation.body(ACTION).items()
    if name not in ("os-force_delete", "os-reset_status"):
        raise BadRequestError(f"There is no such action: {name[:60]}")
    if name == "os-reset_status":
        validation.check(body, STATUS, f"value of {name}")
    with writing_ledger() as connection, in_cinders_words():
        if name == "os-force_delete":
            volume_operations.delete_backup(calling(connection), backup_id, project_id=None, force=True)
        else:
            volume_operations.reset_backup_status(calling(connection), backup_id, body["status"])
    return "", 202
