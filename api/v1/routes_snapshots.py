# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of servers: listed. Jobs take them, roll back to them and delete them."""

from __future__ import annotations

from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import server_snapshots
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.server_listing import instance_row

from ..web.context import current
from ..web.host_names import host_name_mask
from ..web.services import reads
from ..work.calls import calling
from . import views
from .operations import Operation


@Operation(
    "GET",
    "/instances/{uuid}/snapshots",
    server_snapshots.READ,
    "The snapshots of an instance",
    {200: "Snapshots"},
    description="All disks of the instance as they were at one moment. Jobs of the kinds `createSnapshot`, "
    "`revertSnapshot` and `deleteSnapshot`, with the variable `snapshot`, take, roll back to and delete them.",
    ledger=reads,
)
def list_instance_snapshots(connection: Connection, uuid: str) -> ResponseReturnValue:
    caller = current()
    row = instance_row(connection, uuid, caller.reach)
    mask = host_name_mask(connection, caller.reach)
    listed = server_snapshots.listed(calling(connection), row)
    return {"snapshots": [views.snapshot(snapshot, mask) for snapshot in listed]}
