# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on volumes and their snapshots, for every door: recorded, and carried out by jobs."""

from __future__ import annotations

import typing as t

from ..._json import JsonMapping
from ..queries.volume_views import Snapshot, Volume
from ..volumes import volume_backups, volume_snapshots, volume_uploads, volumes
from ..volumes.volume_backups import VolumeBackup
from .call import Call


def create(call: Call, values: JsonMapping) -> Volume:
    """Record the volume that `values` (volumes.create_volume) ask for, and have it made if something has to be made
    now."""
    row = volumes.create_volume(call.connection, call.project, values)
    if row.status == "creating":
        call.enqueue("volume_create", [], row.project_id, {"volumes": [row.id]})
    return row


def delete(
    call: Call, volume_id: str, *, project_id: str | None, force: bool = False, with_snapshots: bool = False
) -> None:
    """Begin to delete a volume of the project (None: of any), with its snapshots if that is said. Raises as
    volumes.begin_delete()."""
    begin = volume_snapshots.begin_delete_all if with_snapshots else volumes.begin_delete
    row = begin(call.connection, volume_id, project_id=project_id, force=force)
    if row.made_at is None and row.host is None:
        volumes.finish_delete(call.connection, volume_id)  # it is nowhere yet
    else:
        call.enqueue("volume_delete", [], row.project_id, {"volumes": [row.id]})


def extend(call: Call, volume_id: str, size_gb: int, *, project_id: str | None, online: bool = True) -> Volume:
    """Begin to give a volume `size_gb` GiB. Raises as volumes.begin_extend()."""
    row = volumes.begin_extend(
        call.connection, volume_id, size_gb, online=online, project_id=project_id, **call.signature
    )
    if row.status == "extending":
        call.enqueue("volume_extend", _servers_of(row), row.project_id, {"volumes": [row.id]})
    return row


def revert(call: Call, volume_id: str, snapshot_id: str | None, *, project_id: str | None) -> None:
    """Begin to give a volume back the data of its newest snapshot. Raises as volume_snapshots.begin_revert()."""
    row = volume_snapshots.begin_revert(call.connection, volume_id, snapshot_id, project_id=project_id)
    call.enqueue("volume_revert", [], row.project_id, {"volumes": [row.id]})


class UploadOptions(t.TypedDict, total=False):
    """Options of volume_uploads.begin_upload()."""

    name: t.Required[str]
    disk_format: str
    visibility: str
    protected: bool
    force: bool


def upload(
    call: Call, volume_id: str, *, project_id: str | None, **options: t.Unpack[UploadOptions]
) -> tuple[Volume, str]:
    """Begin to make an image of a volume; return the volume and the image's id. Raises as
    volume_uploads.begin_upload()."""
    row, image_id = volume_uploads.begin_upload(call.connection, volume_id, project_id=project_id, **options)
    call.enqueue("volume_upload", _servers_of(row), row.project_id, {"volumes": [row.id]})
    return row, image_id


def create_snapshot(call: Call, values: JsonMapping) -> Snapshot:
    """Record the snapshot that `values` (volume_snapshots.create_snapshot) ask for, and have it taken."""
    row = volume_snapshots.create_snapshot(call.connection, call.project, values)
    if row.status == "creating":
        _have_done_of_snapshot(call, "volume_snapshot_create", row)
    return row


def delete_snapshot(call: Call, snapshot_id: str, *, project_id: str | None, force: bool = False) -> None:
    """Begin to delete a snapshot. Raises as volume_snapshots.begin_delete_snapshot()."""
    row = volume_snapshots.begin_delete_snapshot(call.connection, snapshot_id, project_id=project_id, force=force)
    _have_done_of_snapshot(call, "volume_snapshot_delete", row)


class BackupRequest(t.TypedDict, total=False):
    """Options of volume_backups.begin_create()."""

    volume_id: t.Required[str]
    name: str | None
    description: str | None
    metadata: JsonMapping | None
    incremental: bool
    force: bool
    user_id: str | None


def create_backup(call: Call, request: BackupRequest) -> VolumeBackup:
    """Record a backup of a volume, and have it taken. Raises as volume_backups.begin_create()."""
    row = volume_backups.begin_create(call.connection, call.project, request)
    _have_done_of_backup(call, row, volumes.one_volume(call.connection, row.volume_id))
    return row


def restore_backup(
    call: Call, backup_id: str, *, volume_id: str | None, name: str | None, project_id: str | None
) -> tuple[VolumeBackup, Volume]:
    """Begin to give a volume, or a new one, the data of a backup. Raises as volume_backups.begin_restore()."""
    row, of = volume_backups.begin_restore(
        call.connection,
        backup_id,
        volume_id=volume_id,
        name=name,
        project_id=project_id,
        caller_project=call.project,
        user_id=call.user_id,
    )
    _have_done_of_backup(call, row, of)
    return row, of


def delete_backup(call: Call, backup_id: str, *, project_id: str | None, force: bool = False) -> None:
    """Begin to delete a backup of a volume. Raises as volume_backups.begin_delete()."""
    row = volume_backups.begin_delete(call.connection, backup_id, project_id=project_id, force=force)
    _have_done_of_backup(call, row, None)


def _have_done_of_backup(call: Call, row: VolumeBackup, of: Volume | None) -> None:
    call.enqueue("volume_backup", [] if of is None else _servers_of(of), row.project_id, {"backups": [row.id]})


def _have_done_of_snapshot(call: Call, kind: str, row: Snapshot) -> None:
    of = volumes.one_volume(call.connection, row.volume_id)
    call.enqueue(kind, _servers_of(of), row.project_id, {"snapshots": [row.id]})


def _servers_of(row: Volume) -> list[str]:
    return [attachment.instance_uuid for attachment in row.attachments]
