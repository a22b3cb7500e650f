# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of volumes, as Cinder has them: a volume's data in the store of backups, where it outlives the volume.

The first one stands for itself. An incremental one changes the newest one of the same volume, if the volume still knows
what was written since: else it stands for itself, too. Messages are Cinder's.
"""

from __future__ import annotations

import base64
import json
import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, InvalidVolumeError, NovaliteError
from ..._host.files import is_uuid
from ..._json import JsonMapping, JsonObject
from ..._rules.records import check_range, check_text
from ..catalog.volume_types import LOCAL_BACKENDS
from ..db import clock
from ..db.tables_volumes import volume_backup as table
from ..identity import quotas
from ..instances import actions
from ..queries import counts, lookups
from ..queries.counts import is_any
from ..queries.volumes import volume_views
from ..queries.volumes.volume_backup_records import (
    AVAILABLE,
    CREATING,
    DELETING,
    ERROR,
    EXPORTED,
    RESTORING,
    SERVICE,
    VolumeBackup,
    backups_by,
    one_backup,
)
from ..queries.volumes.volume_views import Volume, volumes_by
from . import volume_sources, volumes

BACKING_UP, RESTORING_VOLUME = "backing-up", "restoring-backup"  # a volume's statuses meanwhile
_LONGEST_RECORD = 1 << 16
_NO_PARENT = "No backups available to do an incremental backup."


def begin_create(connection: sa.Connection, project_id: str, params: JsonMapping) -> VolumeBackup:
    """Record a new backup, `creating`; a job `volume_backup` is to take it.

    `params`: `volume_id`, `name`, `description`, `metadata`, `user_id`, `incremental`, `force` (also while an instance
    has the volume), `limit_to` (the compute hosts of which one makes a volume of which nothing was made yet). Raises
    NotFoundError, ConflictError for what cannot be done now, QuotaError.
    """
    lookups.lock_project(connection, project_id)
    row = volume_views.one_volume(connection, params["volume_id"], project_id)
    if row.status not in ("available", "in-use"):
        raise InvalidVolumeError(
            "Invalid volume: Volume to be backed up must be available or in-use, but the current status is "
            f'"{row.status}".'
        )
    if row.status == "in-use" and not params.get("force"):
        raise InvalidVolumeError("Invalid volume: Backing up an in-use volume must use the force flag.")
    incremental = bool(params.get("incremental"))
    there = backups_by(connection, volumes=[row.id], project_id=project_id)
    if incremental and not any(each.status == AVAILABLE for each in there):
        raise ConflictError(f"Invalid backup: {_NO_PARENT}")
    if row.host is None and row.backend in LOCAL_BACKENDS and not row.attachments:  # nothing was made of it yet
        host = volume_sources.choose_host(
            connection, row.type, row.options, row.availability_zone, limit_to=params.get("limit_to")
        )
        volumes.write(connection, "volume", row.id, {"host": host})
    volumes.begin(connection, row, "back up", ("available", "in-use"), BACKING_UP)
    backup_id = str(uuid.uuid4())
    _insert(connection, backup_id, project_id, {**params, "size_gb": row.size_gb, "incremental": incremental})
    return one_backup(connection, backup_id)


def _insert(connection: sa.Connection, backup_id: str, project_id: str, values: JsonMapping) -> None:
    now = clock.seconds(connection)
    name, description = values.get("name") or None, values.get("description") or None
    if name is not None:
        check_text("backup name", name)
    connection.execute(
        sa.insert(table).values(
            id=backup_id,
            project_id=project_id,
            name=name,
            description=description,
            metadata=volumes.checked_metadata(values.get("metadata") or {}),
            status=values.get("status") or CREATING,
            incremental=bool(values.get("incremental")),
            **{key: values.get(key) for key in ("volume_id", "user_id", "size_gb", "parent_id", "host", "size")},
            created_at=values.get("created_at") or now,
            updated_at=now,
        )
    )
    quotas.check_quota(connection, project_id, "backups", counts.backups(connection, project_id))
    quotas.check_quota(connection, project_id, "backup_gigabytes", counts.backup_gigabytes(connection, project_id))


def finish_create(
    connection: sa.Connection, backup_id: str, *, error: str | None = None, outcome: JsonMapping | None = None
) -> bool:
    """Record how it ended; the volume is what it was. `outcome` has the `record` of the backup, and the host's name."""
    if not _swap(connection, backup_id, CREATING, AVAILABLE if error is None else ERROR, error):
        return False
    row = one_backup(connection, backup_id)
    if error is None and outcome is not None:
        record = outcome["record"]
        fields = {key: record.get(key) for key in ("parent_id", "reason", "consistency", "moved", "size")}
        _write(connection, backup_id, {**fields, "host": outcome.get("host")})
    _release(connection, row.volume_id, BACKING_UP, made=error is None)
    return True


def begin_restore(
    connection: sa.Connection,
    backup_id: str,
    *,
    volume_id: str | None = None,
    name: str | None = None,
    project_id: str | None = None,
    caller_project: str | None = None,
    user_id: str | None = None,
) -> tuple[VolumeBackup, Volume]:
    """Begin to give a volume the data of a backup; without a `volume_id` a new one, called `name`, of the project
    `caller_project`. Raises NotFoundError, ConflictError, QuotaError."""
    row = one_backup(connection, backup_id, project_id)
    if row.status != AVAILABLE:
        raise ConflictError("Invalid backup: Backup status must be available")
    if volume_id is None:
        values = {
            "size_gb": row.size_gb,
            "name": name or f"restore_backup_{row.id}",
            "description": "auto-created_from_restore_from_backup",
            "user_id": user_id,
        }
        of = volumes.create_volume(connection, caller_project or row.project_id, values)
    else:
        of = volume_views.one_volume(connection, volume_id, caller_project or project_id)
    if of.status != "available":
        raise InvalidVolumeError("Invalid volume: Volume to be restored to must be available")
    if row.size_gb > of.size_gb:
        raise InvalidVolumeError(
            f"Invalid volume: volume size {of.size_gb} is too small to restore backup of size {row.size_gb}."
        )
    if of.host is None and of.backend in LOCAL_BACKENDS:
        host = volume_sources.choose_host(connection, of.type, of.options, of.availability_zone)
        volumes.write(connection, "volume", of.id, {"host": host})
    volumes.begin(connection, of, "restore", ("available",), RESTORING_VOLUME)
    if not _swap(connection, row.id, AVAILABLE, RESTORING):
        raise ConflictError("Invalid backup: Backup status must be available")
    _write(connection, row.id, {"restore_volume_id": of.id})
    return one_backup(connection, row.id), volume_views.one_volume(connection, of.id)


def finish_restore(connection: sa.Connection, backup_id: str, *, error: str | None = None) -> bool:
    """Record how it ended: the volume has the backup's data then, or nobody knows what it has."""
    rows = backups_by(connection, ids=[backup_id])
    if not rows or not _swap(connection, backup_id, RESTORING, AVAILABLE, error):
        return False
    after = "available" if error is None else "error_restoring"
    volumes.swap(connection, str(rows[0].restore_volume_id), (RESTORING_VOLUME,), after, error, made=error is None)
    return True


def begin_delete(
    connection: sa.Connection, backup_id: str, *, project_id: str | None = None, force: bool = False
) -> VolumeBackup:
    """Begin to delete a backup. Raises ConflictError while something is done with it, and while others change it.
    `force`: also while it is taken or restored, which counts as failed: its volume is free again."""
    row = one_backup(connection, backup_id, project_id)
    allowed = (AVAILABLE, ERROR, "error_deleting")
    if row.status not in allowed and not force:
        raise ConflictError("Invalid backup: Backup status must be available or error")
    if row.has_dependents:
        raise ConflictError("Invalid backup: Incremental backups exist for this backup.")
    if row.status in (CREATING, RESTORING):
        settle(connection, [row.id], "its backup is deleted by force")
        row = one_backup(connection, row.id)
    if not _swap(connection, row.id, row.status, DELETING):
        raise ConflictError("Invalid backup: Backup status must be available or error")
    return one_backup(connection, row.id)


def finish_delete(connection: sa.Connection, backup_id: str, *, error: str | None = None) -> bool:
    """Record how its deletion ended: without `error` the row goes."""
    if error is not None:
        return _swap(connection, backup_id, DELETING, "error_deleting", error)
    mine = sa.and_(table.c.id == backup_id, table.c.status == DELETING)
    return bool(connection.execute(sa.delete(table).where(mine)).rowcount)


def update(
    connection: sa.Connection, backup_id: str, changes: JsonMapping, *, project_id: str | None = None
) -> VolumeBackup:
    """Change what is only shown: `name`, `description`, `metadata`."""
    one_backup(connection, backup_id, project_id)
    values: JsonObject = {key: changes[key] or None for key in ("name", "description") if key in changes}
    if values.get("name"):
        check_text("backup name", values["name"])
    if "metadata" in changes:
        values["metadata"] = volumes.checked_metadata(changes["metadata"])
    if values:
        _write(connection, backup_id, values)
    return one_backup(connection, backup_id)


def reset_status(connection: sa.Connection, backup_id: str, status: str) -> None:
    """Set the status that an administrator gives; nothing is done to the backup itself."""
    one_backup(connection, backup_id)
    _write(connection, backup_id, {"status": status})


# --- records for another cloud ------------------------------------------------------------------------------------


def imported(
    connection: sa.Connection, project_id: str, text: str, *, service: str = SERVICE, user_id: str | None = None
) -> VolumeBackup:
    """Record the backup of an exported record. That it is in the store is seen when it is restored. Raises
    ConflictError for a record of another service, or of a backup that is there, NovaliteError for one that cannot be
    read, QuotaError."""
    lookups.lock_project(connection, project_id)
    if service != SERVICE:
        raise ConflictError(f"Invalid backup: service {service[:60]!r} is not known here: records of {SERVICE!r} are.")
    fields = _record_of(text)
    if is_any(connection, table.c.id == fields["id"]):
        raise ConflictError("Invalid backup: Backup already exists in database.")
    _insert(connection, fields["id"], project_id, {**fields, "status": AVAILABLE, "user_id": user_id})
    return one_backup(connection, fields["id"])


def _record_of(text: str) -> JsonObject:
    try:
        fields = json.loads(base64.b64decode(text[:_LONGEST_RECORD], validate=True))
    except ValueError:
        fields = None
    if not isinstance(fields, dict) or not {"id", "volume_id", "size_gb"} <= set(fields):
        raise NovaliteError("Invalid input received: backup_url is not a record that was exported: give one as it is")
    known: JsonObject = {key: fields.get(key) for key in EXPORTED}
    bad = "Invalid input received: the record's {} is not what was exported: give the record as it is"
    for key, kind in EXPORTED.items():
        value = known[key]  # true is an integer to Python
        if value is not None and not (isinstance(value, kind) and isinstance(value, bool) == (kind is bool)):
            raise NovaliteError(bad.format(key))
    for key in ("id", "volume_id", "parent_id"):
        if known[key] is not None and not is_uuid(known[key]):
            raise NovaliteError(bad.format(key))
    for key in ("name", "description"):
        if known[key] is not None:
            check_text(f"backup {key}", known[key])
    for key, least in (("size_gb", 1), ("size", 0), ("created_at", 1)):
        if known[key] is not None:
            check_range(f"backup {key}", known[key], least)
    return known


# --- jobs that died -----------------------------------------------------------------------------------------------


def settle(connection: sa.Connection, backup_ids: t.Iterable[str], reason: str) -> list[str]:
    """Give an end to what is still under way on these backups, for its job is dead. Returns what it changed."""
    ends = {CREATING: finish_create, RESTORING: finish_restore, DELETING: finish_delete}
    return [
        row.id
        for row in backups_by(connection, ids=backup_ids)
        if row.status in ends and ends[row.status](connection, row.id, error=reason)
    ]


def settle_volume(connection: sa.Connection, volume_id: str, reason: str) -> list[str]:
    """End the backup that is being taken of this volume, or restored to it, as settle() does. A volume that waits for
    none of them any more, as after another status was set by hand, is free again; nobody knows what one has that was
    restored to."""
    ids = connection.execute(
        sa.select(table.c.id).where(
            sa.or_(
                sa.and_(table.c.volume_id == volume_id, table.c.status == CREATING),
                sa.and_(table.c.restore_volume_id == volume_id, table.c.status == RESTORING),
            )
        )
    ).scalars()
    if changed := settle(connection, list(ids), reason):
        return changed
    freed = _release(connection, volume_id, BACKING_UP, made=False)
    freed = volumes.swap(connection, volume_id, (RESTORING_VOLUME,), "error_restoring", reason) or freed
    return [volume_id] if freed else []


def _release(connection: sa.Connection, volume_id: str, status: str, made: bool) -> bool:
    released = [
        volumes.swap(connection, row.id, (status,), "in-use" if row.is_attached else "available", made=made)
        for row in volumes_by(connection, ids=[volume_id])
    ]
    return any(released)


def _swap(connection: sa.Connection, backup_id: str, before: str, after: str, error: str | None = None) -> bool:
    now = clock.seconds(connection)
    fault = None if error is None else {"code": 500, "message": actions.one_line(error), "created": now}
    mine = sa.and_(table.c.id == backup_id, table.c.status == before)
    changed = sa.update(table).where(mine).values(status=after, updated_at=now, fault=fault)
    return bool(connection.execute(changed).rowcount)


def _write(connection: sa.Connection, backup_id: str, values: JsonMapping) -> None:
    values = {**values, "updated_at": clock.seconds(connection)}
    connection.execute(sa.update(table).where(table.c.id == backup_id).values(**values))
