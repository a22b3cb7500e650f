# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `launch_record`: how hosts carried out the plans of a launch, and the plans for what is tried again."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from .launch_plan import changes, launch_plan
from .server_state import server_state


def launch_record(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """See the module's documentation for `params` and what is returned."""
    recorded = server_state(connection, params)
    launch = {
        "built": [
            *params["launch"]["built"],
            *(server for server in recorded["instances"] if server["vm_state"] == "active"),
        ],
        "failures": [*params["launch"]["failures"], *recorded["failures"]],
        "silent": [*params["launch"]["silent"], *params["silent"]],
    }
    retry = recorded["retry"] if params["alone"] else []
    planned = launch_plan(connection, {**params, "instances": retry, "existing": (), "launch": launch})
    now = {server["uuid"]: server for server in planned["instances"]}
    instances = [now.get(server["uuid"], server) for server in recorded["instances"]]
    return {**planned, **changes(recorded, planned), "instances": instances}
