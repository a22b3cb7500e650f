# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `call_diagram`: an instance's real launch as a picture of calls. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import NotFoundError
from ..._graph.call_diagram import svg
from ..._json import JsonMapping, JsonObject
from ..queries import lookups
from ..queries.compute import launch_calls
from ..queries.compute.views import instances_by


def call_diagram(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """See the module's documentation for `params` and what is returned. Raises NotFoundError."""
    owner = lookups.project_by_name(connection, params["project"])["id"]
    server = params["server"]
    servers = instances_by(connection, names=[server], project_id=owner) or instances_by(
        connection, uuids=[server], project_id=owner, deleted=True
    )
    if not servers:
        raise lookups.unknown_server(connection, owner, server)
    launch = launch_calls.of_instance(connection, servers[0]["uuid"])
    if launch is None:
        raise NotFoundError(f"'{server}' was not launched here: there are no calls to draw")
    return {"changed": False, "launch": launch, "svg": svg(launch)}
