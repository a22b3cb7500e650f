# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_info`: instances as the ledger knows them."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..queries import lookups
from ..queries.compute import server_history
from ..queries.compute.views import instances_by


def server_info(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation `server_info`: the instances of a project, or of all, that meet the conditions in `params`. Who asks
    for a host without naming a project means all that are on it."""
    names = None if params.get("names") is None else set(params["names"])
    if params.get("name") is not None:
        names = (names or set()) | {params["name"]}
    project_id = None
    whole_host = params.get("host") is not None and params.get("project") is None
    if not (params.get("all_projects") or whole_host):
        project_id = lookups.project_by_name(connection, params.get("project") or lookups.DEFAULT_PROJECT)["id"]
    servers = instances_by(
        connection,
        names=names,
        project_id=project_id,
        hosts=None if params.get("host") is None else [params["host"]],
        deleted=bool(params.get("deleted")),
    )
    if params.get("actions"):
        history = server_history.history(connection, [server["uuid"] for server in servers])
        for server in servers:
            server["actions"] = history.get(server["uuid"], [])
    return {"changed": False, "servers": servers}
