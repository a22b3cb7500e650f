# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on snapshots of servers, for every door: recorded, and carried out by jobs."""

from __future__ import annotations

from ..._json import JsonMapping
from ..._model.rows import InstanceRow
from ..compute import server_snapshots
from ..compute.server_snapshots import CREATE, DELETE, REVERT
from ..queries.volumes.server_snapshot_rows import ServerSnapshot, snapshots_of
from . import servers
from .call import Call
from .servers import Begun

READ = "compute:server-snapshots:read"


def listed(call: Call, row: InstanceRow) -> list[ServerSnapshot]:
    """The snapshots of a server, oldest first."""
    call.check(READ)
    return snapshots_of(call.connection, [row.uuid])


def create(call: Call, row: InstanceRow, request: JsonMapping) -> Begun:
    """Begin to take the snapshot that `request` (server_snapshots.details_of) says. Raises as servers.begin(), and
    ConflictError for a name that another one has, QuotaError."""
    return _begin(call, CREATE, row, request)


def revert(call: Call, row: InstanceRow, name: str) -> Begun:
    """Begin to roll a server back to its snapshot. Raises as servers.begin(), NotFoundError, and ConflictError."""
    return _begin(call, REVERT, row, {"snapshot": name})


def delete(call: Call, row: InstanceRow, name: str) -> Begun:
    """Begin to delete a snapshot. Raises as servers.begin(), and NotFoundError."""
    return _begin(call, DELETE, row, {"snapshot": name})


def _begin(call: Call, action: str, row: InstanceRow, request: JsonMapping) -> Begun:
    return servers.begin(call, action, [row.uuid], server_snapshots.details_of(action, request))
