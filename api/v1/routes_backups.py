# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Backups of servers: listed. Jobs take, restore, verify and delete them."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import server_backups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.server_listing import instance_row

from ..web.context import current
from ..web.host_names import host_name_mask
from ..web.services import reads
from ..work.calls import calling
from . import views
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
