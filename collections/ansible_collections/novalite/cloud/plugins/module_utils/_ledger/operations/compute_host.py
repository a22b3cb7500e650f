# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `compute_host`: what hosts reported and their operator decided goes into the ledger, or leaves it."""

from __future__ import annotations

import time

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..db.tables import compute_host as table
from ..placement.compute_hosts import STATE_COLUMNS, record
from ..placement.host_removal import remove

_PUBLIC_COLUMNS = (*STATE_COLUMNS, "count_foreign", "failed_builds", "id", "last_seen_at")


def compute_host(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation of the module `compute_host`: record what hosts reported and how they are to be used, or forget one.

    `compute_hosts` is a list of facts, each with any of the policy's keys beside them. To have seen a host again is
    no change. A host that is down keeps what is known about it. With `state: absent`, `name` leaves the ledger. Raises
    NovaliteError for facts that make no sense, HostInUseError for a host that cannot leave.
    """
    if params.get("state") == "absent":
        return _absent(connection, params["name"])
    entries = params["compute_hosts"]
    before, after = record(connection, entries, int(time.time()))
    names = {entry["name"] for entry in entries}
    columns = (table.c[name] for name in _PUBLIC_COLUMNS)
    query = sa.select(*columns).where(table.c.name.in_(names)).order_by(table.c.name)
    result: JsonObject = {
        "changed": before != after,
        "compute_hosts": [dict(row._mapping) for row in connection.execute(query)],
    }
    if before != after:
        result["diff"] = {"before": before, "after": after}
    return result


def _absent(connection: sa.Connection, name: str) -> JsonObject:
    before = remove(connection, name)
    if before is None:
        return {"changed": False, "compute_hosts": []}
    return {"changed": True, "compute_hosts": [], "diff": {"before": {name: before}, "after": {}}}
