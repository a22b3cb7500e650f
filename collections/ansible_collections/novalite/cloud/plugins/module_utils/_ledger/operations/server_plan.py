# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_plan`: the plan of every compute host that instances are on, or that they are to go to."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._plan.targets import of_plan
from ..compute.plans import plan_hosts


def server_plan(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """`{"changed": False, "hosts": {host: {"build": plan, "keep": plan, ...}}, "targets": {part: hosts}, "secret":
    bool}`: see plan_hosts()."""
    plans = plan_hosts(
        connection,
        params["state_dir"],
        instances=params["instances"] or (),
        existing=params["existing"] or (),
        leaving=params["leaving"] or (),
        compute_hosts=params["compute_hosts"] or (),
        network_hosts=params.get("network_hosts") or (),
        count_room=params.get("count_room", False),
    )
    hosts = plans.rendered()
    return {"changed": False, "hosts": hosts, "secret": plans.secret, "targets": of_plan(hosts)}
