# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of volumes. Reads only."""

from __future__ import annotations

import base64
import dataclasses
import json
import typing as t

import sqlalchemy as sa

from ...._errors import ConflictError, NotFoundError
from ...db.tables_volumes import volume_backup as table
from .. import counts
from ..catalog.volume_type_records import check_shown
from .volume_views import Fault

CREATING, AVAILABLE, RESTORING, DELETING, ERROR = "creating", "available", "restoring", "deleting", "error"
STATES = (CREATING, AVAILABLE, RESTORING, DELETING, ERROR, "error_deleting")
SERVICE = "novalite.restic"  # what an exported record is of


@dataclasses.dataclass(frozen=True)
class VolumeBackup:
    """A backup of a volume. Times are in seconds since the epoch, `moved` and `size` in bytes."""

    id: str
    volume_id: str
    project_id: str
    user_id: str | None
    name: str | None
    description: str | None
    metadata: dict[str, str]
    size_gb: int
    status: str
    incremental: bool
    parent_id: str | None
    reason: str | None
    host: str | None
    restore_volume_id: str | None
    consistency: str | None
    moved: int | None
    size: int | None
    fault: Fault | None
    created_at: int
    updated_at: int
    has_dependents: bool


def backups_by(
    connection: sa.Connection,
    *,
    ids: t.Iterable[str] | None = None,
    volumes: t.Iterable[str] | None = None,
    project_id: str | None = None,
    name: str | None = None,
) -> list[VolumeBackup]:
    """The backups with these ids, of these volumes, of this project and with this name (None: any), oldest first."""
    child = table.alias("child")
    dependents = sa.exists().where(child.c.parent_id == table.c.id).label("has_dependents")
    query = sa.select(table, dependents)
    for column, values in ((table.c.id, ids), (table.c.volume_id, volumes)):
        if values is not None:
            query = query.where(column.in_(sorted(set(values))))
    query = query.where(*counts.equal({table.c.project_id: project_id, table.c.name: name}))
    rows = connection.execute(query.order_by(table.c.created_at, table.c.id)).mappings()
    return [VolumeBackup(**{**row, "has_dependents": bool(row["has_dependents"])}) for row in rows]


def one_backup(connection: sa.Connection, backup_id: str, project_id: str | None = None) -> VolumeBackup:
    """The backup of this id, if the project (None: anybody) has it. Raises NotFoundError."""
    rows = backups_by(connection, ids=[backup_id], project_id=project_id)
    if not rows:
        raise NotFoundError(f"Backup {check_shown(backup_id)} could not be found.")
    return rows[0]


EXPORTED: t.Mapping[str, type] = {
    **dict.fromkeys(("id", "volume_id", "parent_id", "name", "description"), str),
    **dict.fromkeys(("size_gb", "size", "created_at"), int),
    "metadata": dict,
}


def exported(connection: sa.Connection, backup_id: str, project_id: str | None = None) -> str:
    """Return the record of a backup as a text that imported() takes, of a cloud with the same store and key."""
    row = one_backup(connection, backup_id, project_id)
    if row.status != AVAILABLE:
        raise ConflictError(f"Invalid backup: Backup status must be available and not {row.status}.")
    fields = {key: getattr(row, key) for key in EXPORTED}
    return base64.b64encode(json.dumps(fields, sort_keys=True).encode()).decode()
