# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of servers: listed. Jobs take, restore, verify and delete them. And the policies by which that is done."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import backup_policies, server_backups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import instance_row

from ..web.bodies import Record
from ..web.context import current
from ..web.errors import as_bad_request
from ..web.host_names import host_name_mask
from ..web.services import reads, writes
from ..work.calls import calling
from . import schemas, schemas_backups, views
from .operations import Operation


@Operation(
    "GET",
    "/instances/{uuid}/backups",
    server_backups.READ,
    "The backups of an instance",
    {200: "Backups"},
    description="All disks of the instance as they were at one moment, in the store. Jobs of the kinds `createBackup`, "
    "`restoreBackup`, `verifyBackup` and `deleteBackup`, with the variable `backup`, take, restore, verify and delete "
    "them.",
    ledger=reads,
)
def list_instance_backups(connection: Connection, uuid: str) -> ResponseReturnValue:
    caller = current()
    row = instance_row(connection, uuid, caller.reach)
    mask = host_name_mask(connection, caller.reach)
    listed = server_backups.listed(calling(connection), row)
    return {"backups": [views.backup(backup, mask) for backup in listed]}


@Operation(
    "DELETE",
    "/backups/{backup}",
    server_backups.WRITE,
    "Delete a backup of an instance that is gone",
    {202: "Backups"},
    description="Of an instance that is there, a job of the kind `deleteBackup` deletes it.",
    conflicts=True,
    ledger=writes,
)
def forget_backup(connection: Connection, backup: str) -> ResponseReturnValue:
    mask = host_name_mask(connection, current().reach)
    gone = server_backups.forget(calling(connection), backup)
    return {"backups": [views.backup(gone, mask)]}, 202


@Operation(
    "GET",
    "/backup-ages",
    server_backups.READ,
    "The newest backups of each instance",
    {200: "BackupAges"},
    description="When the newest one was taken, the newest one that was found whole, and the newest that was booted; "
    "and what is late by the policy that it follows. Oldest instances first.",
    query=schemas_backups.BACKUP_AGES_QUERY,
    ledger=reads,
)
def list_backup_ages(connection: Connection, query: JsonObject) -> ResponseReturnValue:
    limit = query.get("limit", schemas.PAGE)
    listed = server_backups.ages(calling(connection), marker=query.get("marker"), limit=limit)
    following = f"/v1/backup-ages?limit={limit}&marker={listed[-1].uuid}" if len(listed) == limit else None
    return {"ages": [views.backup_ages(each) for each in listed], "next": following}


@Operation(
    "POST",
    "/backups/{backup}/volumes",
    server_backups.RESTORING,
    "Make a volume of a disk of a backup",
    {202: "VolumeOfBackup"},
    description="The new volume is `available` after all blocks of the disk were compared with what was saved, or is "
    "`error`.",
    body=schemas_backups.NEW_VOLUME_OF_BACKUP,
    conflicts=True,
    ledger=writes,
)
def restore_volume(connection: Connection, backup: str, body: Record) -> ResponseReturnValue:
    values = {"size_gb": body.get("size"), "user_id": current().user_id}
    values |= {name: body.get(name) for name in ("name", "type", "availability_zone")}
    with as_bad_request():
        call, reach = calling(connection), current().reach
        made = server_backups.restore_volume(call, backup, body["disk"], values, project_id=reach)
    return {"volume": views.volume_of_backup(made)}, 202


@Operation(
    "GET",
    "/backup-policies",
    backup_policies.POLICIES,
    "The policies of backups",
    {200: "BackupPolicies"},
    description="How often servers are backed up and proven, in seconds, and which of their backups are kept.",
    ledger=reads,
)
def list_backup_policies(connection: Connection) -> ResponseReturnValue:
    return {"backup_policies": backup_policies.listed(calling(connection))}


@Operation(
    "PUT",
    "/backup-policies/{name}",
    backup_policies.POLICIES,
    "Have a policy of backups",
    {200: "BackupPolicies"},
    description="For a server, a flavor or a project, by name; without one of these for all servers.",
    body=schemas_backups.NEW_BACKUP_POLICY,
    ledger=writes,
)
def set_backup_policy(connection: Connection, name: str, body: Record) -> ResponseReturnValue:
    call = calling(connection)
    with as_bad_request():
        backup_policies.ensure(call, {**body, "name": name})
    return {"backup_policies": backup_policies.listed(call)}


@Operation(
    "DELETE",
    "/backup-policies/{name}",
    backup_policies.POLICIES,
    "Delete a policy of backups; its backups stay",
    {200: "BackupPolicies"},
    ledger=writes,
)
def delete_backup_policy(connection: Connection, name: str) -> ResponseReturnValue:
    call = calling(connection)
    if not backup_policies.remove(call, name):
        raise NotFoundError(f"there is no policy of backups {name[:60]!r}: see /v1/backup-policies")
    return {"backup_policies": backup_policies.listed(call)}


@Operation(
    "GET",
    "/backups",
    server_backups.READ,
    "The backups of the project",
    {200: "Backups"},
    description="Those of instances that are gone, too: a job of the kind `restoreBackup` gives another instance their "
    "disks.",
    ledger=reads,
)
def list_backups(connection: Connection) -> ResponseReturnValue:
    mask = host_name_mask(connection, current().reach)
    return {"backups": [views.backup(backup, mask) for backup in server_backups.of_project(calling(connection))]}
