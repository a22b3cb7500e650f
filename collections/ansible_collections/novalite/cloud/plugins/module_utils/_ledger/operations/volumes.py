# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on volumes and their snapshots, for every door: recorded, and carried out by jobs."""

from __future__ import annotations

import typing as t

from ..._guest.image_properties import check_new, checked_host_mount
from ..._json import JsonMapping, JsonObject
from ..._rules.volume_mappings import NO_IMAGE
from ..queries.catalog import volume_type_records
from ..queries.volumes import volume_views
from ..queries.volumes.volume_backup_records import VolumeBackup
from ..queries.volumes.volume_views import Snapshot, Volume
from ..volumes import volume_attachments, volume_backups, volume_snapshots, volume_uploads, volumes
from .call import Call

ADMIN: t.Final = "volume:admin"
PRIVATE_TYPES: t.Final = "volume:private_types"


def create(call: Call, values: JsonMapping) -> Volume:
    """Record the caller's volume that `values` (volumes.create_volume) ask for, and have it made if something has to be
    made now. Raises as create_volume()."""
    own = {"user_id": call.user_id, "private_types": call.permits(PRIVATE_TYPES)}
    row = volumes.create_volume(call.connection, call.project, {**values, **own})
    if row.status == "creating":
        call.enqueue("volume_create", [], row.project_id, {"volumes": [row.id]})
    return row


def delete(
    call: Call, volume_id: str, *, project_id: str | None, force: bool = False, with_snapshots: bool = False
) -> None:
    """Begin to delete a volume of the project (None: of any), with its snapshots if that is said. Raises as
    volumes.begin_delete(), and ForbiddenError for `force`."""
    if force:
        call.check(ADMIN)
    begin = volume_snapshots.begin_delete_all if with_snapshots else volumes.begin_delete
    row = begin(call.connection, volume_id, project_id=project_id, force=force)
    if volumes.is_nowhere(call.connection, row):
        volumes.finish_delete(call.connection, volume_id)
    else:
        call.enqueue("volume_delete", [], row.project_id, {"volumes": [row.id]})


class Changes(t.TypedDict, total=False):
    """Texts of a volume, a snapshot or a backup that are only shown."""

    name: str | None
    description: str | None
    metadata: t.Mapping[str, str]


def update(call: Call, volume_id: str, changes: Changes, *, project_id: str | None) -> Volume:
    """Change what is shown of a volume. Raises as volumes.update_volume()."""
    return volumes.update_volume(call.connection, volume_id, changes, project_id=project_id)


def set_bootable(call: Call, row: Volume, bootable: bool) -> None:
    """Say whether servers start from a volume."""
    volumes.update_volume(call.connection, row.id, {"bootable": bootable})


def set_readonly(call: Call, row: Volume, readonly: bool) -> None:
    """Have a volume read only, or written too. Raises ConflictError for one that a server has."""
    metadata = {**row.metadata, "readonly": str(readonly)}  # where Cinder's clients look
    volumes.update_volume(call.connection, row.id, {"readonly": readonly, "metadata": metadata})


def describe_image(call: Call, row: Volume, properties: t.Mapping[str, str]) -> JsonObject:
    """Change what a volume knows of the image that it was made of, or looks like; return that. The image itself stays.
    Raises NovaliteError for properties that cannot be, ForbiddenError for what is not the caller's to say."""
    known: JsonObject = {**(row.image or NO_IMAGE)}
    before = known.get("properties") or {}
    checked = volumes.checked_metadata(properties)
    # a volume that waits for its data is what servers start from that hosts inject into
    check_new(str(known.get("name")), checked, before)
    checked_host_mount(f"volume {row.id}", before, checked, call.permits("image:host_mount"))
    image = known | {"properties": checked}
    volumes.write(call.connection, "volume", row.id, {"image": image})
    return image


def retype(call: Call, row: Volume, type_name: str) -> None:
    """Have a volume be of another type, by its name or id. Raises NotFoundError for a type that its project does not
    see, and as volumes.retype()."""
    of_type = volume_type_records.type_seen(call.connection, type_name, row.project_id, call.permits(PRIVATE_TYPES))
    volumes.retype(call.connection, row.id, of_type)


def reserve(call: Call, row: Volume) -> None:
    """Begin to attach a volume before anybody knows where to. Raises ConflictError."""
    volumes.begin(call.connection, row, "reserve", ("available",), "attaching")


def unreserve(call: Call, row: Volume) -> None:
    """Go back from reserve(); a volume that a server is really getting stays, or that has a reservation."""
    if not row.attachments and row.reservation is None:
        volumes.swap(call.connection, row.id, ("attaching",), "available")


def begin_detaching(call: Call, row: Volume) -> None:
    """Say that a volume is about to be detached. Raises ConflictError."""
    volumes.begin(call.connection, row, "detach", ("in-use",), "detaching")


def roll_detaching(call: Call, row: Volume) -> None:
    """Go back from begin_detaching(). Raises ConflictError, also while a host takes the volume from its server."""
    volume_attachments.check_not_leaving(call.connection, row)
    volumes.begin(call.connection, row, "keep", ("detaching",), "in-use")


def reset_status(call: Call, row: Volume, status: str | None) -> None:
    """Give a volume this status (None: its own), as administrators may; nothing is done to its data. Raises
    ForbiddenError."""
    call.check(ADMIN)
    if status is not None:
        volumes.reset_status(call.connection, row.id, status)


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
    volume_uploads.begin_upload(), and ForbiddenError for an image that is to be public."""
    if options.get("visibility") == "public":
        call.check("image:publicize")
    row, image_id = volume_uploads.begin_upload(call.connection, volume_id, project_id=project_id, **options)
    call.enqueue("volume_upload", _servers_of(row), row.project_id, {"volumes": [row.id]})
    return row, image_id


def create_snapshot(call: Call, values: JsonMapping) -> Snapshot:
    """Record the caller's snapshot that `values` (volume_snapshots.create_snapshot) ask for, and have it taken."""
    row = volume_snapshots.create_snapshot(call.connection, call.project, {**values, "user_id": call.user_id})
    if row.status == "creating":
        _have_done_of_snapshot(call, "volume_snapshot_create", row)
    return row


def delete_snapshot(call: Call, snapshot_id: str, *, project_id: str | None, force: bool = False) -> None:
    """Begin to delete a snapshot. Raises as begin_delete_snapshot(), and ForbiddenError for `force`."""
    if force:
        call.check(ADMIN)
    row = volume_snapshots.begin_delete_snapshot(call.connection, snapshot_id, project_id=project_id, force=force)
    _have_done_of_snapshot(call, "volume_snapshot_delete", row)


def update_snapshot(call: Call, snapshot_id: str, changes: Changes, *, project_id: str | None) -> Snapshot:
    """Change what is shown of a snapshot. Raises as volume_snapshots.update_snapshot()."""
    return volume_snapshots.update_snapshot(call.connection, snapshot_id, changes, project_id=project_id)


def reset_snapshot_status(call: Call, snapshot_id: str, status: str, *, project_id: str | None) -> None:
    """Give a snapshot this status, as administrators may; nothing is done to its data. Raises ForbiddenError."""
    call.check(ADMIN)
    volume_snapshots.update_snapshot(call.connection, snapshot_id, {"status": status}, project_id=project_id)


class BackupRequest(t.TypedDict, total=False):
    """Options of volume_backups.begin_create()."""

    volume_id: t.Required[str]
    name: str | None
    description: str | None
    metadata: JsonMapping | None
    incremental: bool
    force: bool


def create_backup(call: Call, request: BackupRequest) -> VolumeBackup:
    """Record a backup of a volume, and have it taken. Raises as volume_backups.begin_create()."""
    row = volume_backups.begin_create(call.connection, call.project, {**request, "user_id": call.user_id})
    _have_done_of_backup(call, row, volume_views.one_volume(call.connection, row.volume_id))
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


def update_backup(call: Call, backup_id: str, changes: Changes, *, project_id: str | None) -> VolumeBackup:
    """Change what is shown of a backup. Raises as volume_backups.update()."""
    return volume_backups.update(call.connection, backup_id, changes, project_id=project_id)


def reset_backup_status(call: Call, backup_id: str, status: str) -> None:
    """Give a backup this status; nothing is done to its data. Raises NotFoundError."""
    volume_backups.reset_status(call.connection, backup_id, status)


def import_backup(call: Call, record: str, *, service: str) -> VolumeBackup:
    """Record another cloud's backup as one of the caller's project. Raises as volume_backups.imported()."""
    return volume_backups.imported(call.connection, call.project, record, service=service, user_id=call.user_id)


def _have_done_of_backup(call: Call, row: VolumeBackup, of: Volume | None) -> None:
    call.enqueue("volume_backup", [] if of is None else _servers_of(of), row.project_id, {"backups": [row.id]})


def _have_done_of_snapshot(call: Call, kind: str, row: Snapshot) -> None:
    of = volume_views.one_volume(call.connection, row.volume_id)
    call.enqueue(kind, _servers_of(of), row.project_id, {"snapshots": [row.id]})


def _servers_of(row: Volume) -> list[str]:
    return [attachment.instance_uuid for attachment in row.attachments]
