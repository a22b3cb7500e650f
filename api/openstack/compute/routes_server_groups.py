# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups: servers that shall run together, or apart."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import server_groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.server_group_records import (
    ServerGroup,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.placement.server_group_records import (
    server_groups as groups_of,
)

from ...web import policy
from ...web.bodies import Answer, Body, Record, same, the_one
from ...web.context import current
from ...web.schemas import NAME, Schema, a_list, an_object, size, wrapped
from ...web.services import reads, takes, writes, writes_checked
from ...work.calls import calling
from .blueprint import compute, from_version, microversion, part

HARD = ["affinity", "anti-affinity"]
POLICIES = [*HARD, "soft-affinity", "soft-anti-affinity"]


def _schema() -> Schema:
    version = microversion()
    name = {**NAME, "pattern": r"^\S(.*\S)?$"}
    if version >= (2, 64):
        rules = an_object({"max_server_per_host": size(1)})
        return wrapped("server_group", {"name": name, "policy": {"enum": POLICIES}, "rules": rules}, ["name", "policy"])
    policies = a_list({"enum": POLICIES if version >= (2, 15) else HARD}, 1, 1)
    return wrapped("server_group", {"name": name, "policies": policies}, ["name", "policies"])


@compute.get("/os-server-groups", "compute:server_groups:read", reads)
def list_server_groups(connection: Connection) -> Answer:
    caller = current()
    everybody = "all_projects" in request.args
    if everybody:
        policy.check("compute:server_groups:all_projects")
    rows = groups_of(connection, None if everybody else caller.project)
    return {"server_groups": [_shown(row) for row in part(rows, "all_projects")]}, 200


@compute.get("/os-server-groups/<group_id>", "compute:server_groups:read", reads)
def show_server_group(connection: Connection, group_id: str) -> Answer:
    return {"server_group": _shown(_row(connection, group_id))}, 200


@compute.post("/os-server-groups", "compute:server_groups:write", takes(_schema), writes_checked)
def create_server_group(connection: Connection, body: Record) -> Answer:
    rule = body["policy"] if "policy" in body else body["policies"][0]
    most = body.get("rules", {}).get("max_server_per_host")
    most = None if most is None else int(most)
    row = server_groups.create(calling(connection), body["name"], rule, max_server_per_host=most)
    return {"server_group": _shown(row)}, 200


@compute.delete("/os-server-groups/<group_id>", "compute:server_groups:write", writes)
def delete_server_group(connection: Connection, group_id: str) -> Answer:
    server_groups.delete(calling(connection), _row(connection, group_id))
    return "", 204


def _shown(row: ServerGroup) -> Body:
    if microversion() >= (2, 64):
        apart = row.policy == "anti-affinity"
        rule: Body = {"policy": row.policy, "rules": same(row, "max_server_per_host") if apart else {}}
    else:
        rule = {"policies": [row.policy], "metadata": {}}
    owner = from_version((2, 13), {"project_id": row.project_id, "user_id": row.user_id or ""})
    return {**same(row, "id", "name", "members"), **rule, **owner}


def _row(connection: Connection, group_id: str) -> ServerGroup:
    missing = NotFoundError(f"Instance group {group_id[:255]} could not be found.")
    return the_one(groups_of(connection, current().reach), "id", group_id, missing)
