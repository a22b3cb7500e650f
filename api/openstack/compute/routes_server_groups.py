# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Server groups: servers that shall run together, or apart."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import server_group_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement.server_group_records import ServerGroup

from ...web import policy, validation
from ...web.context import current
from ...web.errors import ForbiddenError, as_bad_request
from ...web.ledger import reading_ledger, writing_ledger
from . import paging
from .blueprint import Answer, compute
from .microversions import microversion

Record = dict[str, t.Any]


HARD = ["affinity", "anti-affinity"]
POLICIES = [*HARD, "soft-affinity", "soft-anti-affinity"]


@compute.get("/os-server-groups")
@policy.allows("compute:server_groups:read")
def list_server_groups() -> Answer:
    caller = current()
    everybody = "all_projects" in request.args
    if everybody and not caller.is_admin:
        raise ForbiddenError("Policy doesn't allow compute:server_groups:all_projects to be performed.")
    limit, offset = paging.number("limit", paging.MAX_LIMIT), paging.number("offset")
    with reading_ledger() as connection:
        rows = server_group_records.server_groups(connection, None if everybody else caller.project)
    page = rows[offset : offset + min(limit or paging.MAX_LIMIT, paging.MAX_LIMIT)]
    return {"server_groups": [_shown(row) for row in page]}, 200


@compute.get("/os-server-groups/<group_id>")
@policy.allows("compute:server_groups:read")
def show_server_group(group_id: str) -> Answer:
    with reading_ledger() as connection:
        return {"server_group": _shown(_row(connection, group_id))}, 200


@compute.post("/os-server-groups")
@policy.allows("compute:server_groups:write")
def create_server_group() -> Answer:
    wanted = validation.body(_schema())["server_group"]
    caller = current()
    rule = wanted["policy"] if "policy" in wanted else wanted["policies"][0]
    most = wanted.get("rules", {}).get("max_server_per_host")
    project = {"id": caller.project, "name": str(caller.project_name)}
    with writing_ledger() as connection, as_bad_request():
        number = server_group_records.create_server_group(
            connection, project, wanted["name"], rule, None if most is None else int(most), caller.user_id
        )
        return {"server_group": _shown(_row(connection, number))}, 200


@compute.delete("/os-server-groups/<group_id>")
@policy.allows("compute:server_groups:write")
def delete_server_group(group_id: str) -> Answer:
    with writing_ledger() as connection:
        _row(connection, group_id)
        server_group_records.delete_server_group(connection, group_id)
    return "", 204


def _schema() -> Record:
    version = microversion()
    properties: Record = {"name": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": r"^\S(.*\S)?$"}}
    if version >= (2, 64):
        most = {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 2**31 - 1},
                {"type": "string", "pattern": "^[1-9][0-9]{0,8}$"},
            ]
        }
        properties["policy"] = {"enum": POLICIES}
        properties["rules"] = {
            "type": "object",
            "properties": {"max_server_per_host": most},
            "additionalProperties": False,
        }
        required = ["name", "policy"]
    else:
        known = POLICIES if version >= (2, 15) else HARD
        properties["policies"] = {"type": "array", "items": {"enum": known}, "minItems": 1, "maxItems": 1}
        required = ["name", "policies"]
    inner = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"server_group": inner},
        "required": ["server_group"],
        "additionalProperties": False,
    }


def _shown(row: ServerGroup) -> Record:
    version = microversion()
    body: Record = {"id": row.id, "name": row.name}
    if version >= (2, 64):
        body["policy"] = row.policy
        apart = row.policy == "anti-affinity"
        body["rules"] = {"max_server_per_host": row.max_server_per_host} if apart else {}
    else:
        body["policies"] = [row.policy]
        body["metadata"] = {}
    body["members"] = row.members
    if version >= (2, 13):
        body.update({"project_id": row.project_id, "user_id": row.user_id or ""})
    return body


def _row(connection: Connection, group_id: str) -> ServerGroup:
    caller = current()
    for row in server_group_records.server_groups(connection, caller.reach):
        if row.id == group_id:
            return row
    raise NotFoundError(f"Instance group {group_id[:255]} could not be found.")
