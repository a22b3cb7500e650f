# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `power_sync`: where to look for guests' states, and what the ledger learns from the answers.

A guest can shut itself down, and a person can use virsh. Records what was found, and does nothing to a guest. Instances
that something is being done to, or was since, are left as they are.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._rules.records import with_diff
from ..compute.power_states import follow, to_look_at
from ..queries.compute.views import instances_by

ARGUMENT_SPEC = {
    # What was found, once for each host. Without it, `hosts` tells where to look.
    "observed": {
        "type": "list",
        "elements": "dict",
        "options": {
            # The `uuid` and the `state` of each domain, as `domain_info` returns them. Of a state that says nothing of
            # the guest, such as `missing`, nothing is recorded.
            "domains": {"type": "list", "elements": "dict", "required": True},
            # What `hosts` had for these.
            "updated_at": {"type": "dict", "required": True},
        },
    }
}


def power_sync(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `hosts`: for each compute host `domains`, those of its instances that nothing is being done to, as `domain_info`
      takes them, and `updated_at`
    * `followed`: the instances that this changed, `uuid`, `name`, `before` and `after`
    """
    if params.get("observed") is None:
        at_rest = [instance for instance in instances_by(connection) if instance["host"] is not None]
        return {"changed": False, "hosts": to_look_at(at_rest), "followed": []}
    followed = follow(connection, params["observed"])
    before, after = ({domain["name"]: domain[side] for domain in followed} for side in ("before", "after"))
    return with_diff({"changed": bool(followed), "hosts": {}, "followed": followed}, before, after)
