# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `launch_record`: how hosts carried out the plans of a launch, and the plans for what is tried again.

What the step `server_state` does and, for the instances whose hosts could not build them, what the step `launch_plan`
does, in one transaction.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._plan.targets import of_plan
from ..instances import actions
from ..queries.compute import launch_calls
from .launch_plan import changes, launch_plan
from .server_state import OUTCOMES, server_state

FRAGMENTS = ("scheduling", "scheduling.choice", "state_dir")
ARGUMENT_SPEC = {
    **OUTCOMES,
    # What the same launch has come to so far, `launch` of the step before.
    "launch": {"type": "dict", "required": True},
}


def launch_record(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, `instances` as they are now, and `launch`, `hosts` and `targets` as the step `launch_plan`
    does, for what hosts failed to build."""
    so_far, calls = params["launch"], list(params["launch"].get("calls") or ())
    outcomes = params.get("outcomes") or ()
    silent = [guest for outcome in outcomes for guest in outcome.get("silent") or ()]
    with launch_calls.timed(calls, "launch_record"):
        recorded = server_state(connection, params)
    actions.add_calls(
        connection,
        {
            uuid: [*calls[:-1], *launch_calls.of_trip(outcome.get("host"), outcome.get("trip") or {}), calls[-1]]
            for outcome in outcomes
            for uuid in outcome["uuids"]
        },
    )
    launch = {
        **so_far,
        "built": [*so_far["built"], *(server for server in recorded["instances"] if server["vm_state"] == "active")],
        "failures": [*so_far["failures"], *recorded["failures"]],
        # a host that falls out of the run after the first attempt still says in the second what it said then
        "silent": [*so_far["silent"], *(guest for guest in silent if guest not in so_far["silent"])],
        "calls": [],
    }
    planned: JsonObject = {"changed": False, "hosts": {}, "targets": of_plan({}), "instances": [], "launch": launch}
    if params["alone"] and recorded["retry"]:
        last_errors = {
            uuid: outcome["reason"] for outcome in outcomes if outcome.get("reason") for uuid in outcome["uuids"]
        }
        again = {"instances": recorded["retry"], "existing": (), "launch": launch, "last_errors": last_errors}
        planned = launch_plan(connection, {**params, **again})
    now = {server["uuid"]: server for server in planned["instances"]}
    instances = [now.get(server["uuid"], server) for server in recorded["instances"]]
    return {**planned, **changes(recorded, planned), "instances": instances}
