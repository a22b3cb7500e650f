# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `group_plan`: what hosts are told of security groups whose rules or members changed.

The ledger says already what holds: whoever runs this later than another change brings hosts that one, too, and takes
nothing back. Names play no part, for they may be others' by then. Reads the ledger, changes nothing.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..db.tables import security_group
from ..security import firewalls

ARGUMENT_SPEC = {
    # UUIDs of the groups. One that is gone has no members, and no rule names it.
    "groups": {"type": "list", "elements": "str", "required": True},
    # UUIDs of the servers that joined these groups, or left them. Empty: the groups' rules changed.
    "members": {"type": "list", "elements": "str", "default": []},
}


def group_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and `hosts`: for each compute host that must know, the arguments of `firewall`."""
    query = sa.select(security_group.c.id).where(security_group.c.uuid.in_(params["groups"]))
    groups = set(connection.execute(query).scalars())
    if params["members"]:
        hosts = firewalls.plan_for_members(connection, params["members"], groups)
    else:
        hosts = firewalls.plan_for_groups(connection, groups)
    return {"changed": False, "hosts": hosts}
