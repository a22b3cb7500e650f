# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on backups of servers, for every door: recorded, and carried out by jobs."""

from __future__ import annotations

from ..._json import JsonMapping
from ..._model.rows import InstanceRow
from ..compute import server_backups
from ..compute.server_backups import CREATE, DELETE, RESTORE, VERIFY
from ..queries.volumes import backup_ages
from ..queries.volumes.server_backup_rows import ServerBackup, backup_in, backups_by
from ..queries.volumes.volume_views import Volume
from ..volumes import volumes
from . import servers
from .call import Call
from .servers import Begun

READ, WRITE = "compute:server-backups:read", "compute:server-backups:write"
RESTORING = "compute:server-backups:restore"


def listed(call: Call, row: InstanceRow) -> list[ServerBackup]:
    """The backups of a server, oldest first."""
    call.check(READ)
    return backups_by(call.connection, servers=[row.uuid])


def of_project(call: Call) -> list[ServerBackup]:
    """The backups of the caller's project, also those of servers that are gone, oldest first."""
    call.check(READ)
    return backups_by(call.connection, project_id=call.project)


def ages(
    call: Call, *, server: str | None = None, marker: str | None = None, limit: int | None = None
) -> list[backup_ages.Ages]:
    """The servers of the caller's project, or this one, with the times of their newest backups."""
    call.check(READ)
    return backup_ages.ages(call.connection, call.project_id, everyone=True, server=server, marker=marker, limit=limit)


def create(call: Call, row: InstanceRow, request: JsonMapping) -> Begun:
    """Begin to take the backup that `request` (server_backups.details_of) says. Raises as servers.begin(), and
    ConflictError for a name that another one has, QuotaError."""
    return _begin(call, CREATE, row, request)


def restore(call: Call, row: InstanceRow, name: str) -> Begun:
    """Begin to give a server the disks of a backup. Raises as servers.begin(), NotFoundError, and ConflictError."""
    return _begin(call, RESTORE, row, {"backup": name})


def verify(call: Call, row: InstanceRow, name: str | None) -> Begun:
    """Begin to verify a backup, or the newest one. Raises as servers.begin(), NotFoundError, and ConflictError."""
    return _begin(call, VERIFY, row, {"backup": name})


def delete(call: Call, row: InstanceRow, name: str) -> Begun:
    """Begin to delete a backup. Raises as servers.begin(), NotFoundError, and ConflictError."""
    return _begin(call, DELETE, row, {"backup": name})


def restore_volume(call: Call, name: str, disk: str, values: JsonMapping, *, project_id: str | None) -> Volume:
    """Record a new volume that is made of a disk of a backup in this project (None: in any), which gets the volume: by
    the backup's name or id, and the disk's place or the id of its volume. `values` are those of
    volumes.create_volume(), which says what it raises."""
    call.check(RESTORING)
    call.check("volume:write")
    backup = backup_in(call.connection, project_id, name)
    of_backup = {**values, "backup": backup.id, "backup_disk": disk}
    row = volumes.create_volume(call.connection, backup.project_id, of_backup)
    call.enqueue("volume_restore", [], row.project_id, {"volumes": [row.id]})
    return row


def forget(call: Call, backup_id: str) -> ServerBackup:
    """Begin to delete a backup of a server that is gone. Raises as server_backups.begin_forget()."""
    call.check(WRITE)
    backup = server_backups.begin_forget(call.connection, backup_id, call.project_id)
    call.enqueue("volume_backup", [], backup.project_id, {"backups": [backup.id]})
    return backup


def _begin(call: Call, action: str, row: InstanceRow, request: JsonMapping) -> Begun:
    return servers.begin(call, action, [row.uuid], server_backups.details_of(action, request))
