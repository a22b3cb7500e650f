# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `power_sync`: where to look for guests' states, and what the ledger learns from the answers."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._rules.records import with_diff
from ..compute.power_states import follow, to_look_at
from ..queries.views import instances_by


def power_sync(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation `power_sync`: see the module's documentation for `params` and what is returned."""
    if params.get("observed") is None:
        at_rest = [instance for instance in instances_by(connection) if instance["host"] is not None]
        return {"changed": False, "hosts": to_look_at(at_rest), "followed": []}
    followed = follow(connection, params["observed"])
    before, after = ({domain["name"]: domain[side] for domain in followed} for side in ("before", "after"))
    return with_diff({"changed": bool(followed), "hosts": {}, "followed": followed}, before, after)
