# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `compute_host`: what hosts reported and their operator decided goes into the ledger, or leaves it."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._rules.records import with_diff
from ..db import clock
from ..db.tables import compute_host as table
from ..operations.call import by_playbook
from ..operations.catalog import compute_hosts
from ..placement.compute_hosts import record
from ..queries.placement.host_states import STATE_COLUMNS

_PUBLIC_COLUMNS = (*STATE_COLUMNS, "state_dir", "count_foreign", "id", "last_seen_at")


def compute_host(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Record what hosts reported (facts, with any of the policy's keys beside them), or forget one. To have seen a host
    again is no change, and one that is down keeps what is known about it. Raises NovaliteError for facts that make no
    sense, HostInUseError for a host that cannot leave."""
    if params.get("state") == "absent":
        gone = compute_hosts.delete(by_playbook(connection), params["name"])
        return with_diff({"changed": gone is not None, "compute_hosts": []}, {params["name"]: gone}, {})
    entries = params["compute_hosts"]
    before, after = record(connection, entries, clock.seconds(connection))
    names = {entry["name"] for entry in entries}
    columns = (table.c[name] for name in _PUBLIC_COLUMNS)
    query = sa.select(*columns).where(table.c.name.in_(names)).order_by(table.c.name)
    rows = [dict(row._mapping) for row in connection.execute(query)]
    return with_diff({"changed": before != after, "compute_hosts": rows}, before, after)
