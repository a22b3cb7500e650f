# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `security_group_info`: security groups with their rules and members, also as a picture."""

from __future__ import annotations

import sqlalchemy as sa

from ..._graph import security_groups
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Rule
from ..db.tables import instance, instance_security_group, project, security_group, security_group_rule
from ..queries import lookups


def security_group_info(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """The groups of a project, or of all, with rules and members; with `picture` also as a graph."""
    query = (
        sa.select(security_group, project.c.name.label("project"))
        .join(project, project.c.id == security_group.c.project_id)
        .order_by(project.c.name, security_group.c.name)
    )
    if not params["all_projects"]:
        owner = lookups.project_by_name(connection, params["project"])["id"]
        query = query.where(security_group.c.project_id == owner)
    groups: dict[int, JsonObject] = {
        row.id: {
            **{field: getattr(row, field) for field in ("id", "uuid", "name", "project", "description")},
            "rules": [],
            "servers": [],
        }
        for row in connection.execute(query)
    }
    rules, link = security_group_rule, instance_security_group
    for row in connection.execute(sa.select(rules).where(rules.c.group_id.in_(sorted(groups))).order_by(rules.c.id)):
        groups[row.group_id]["rules"].append({field: getattr(row, field) for field in Rule.__annotations__})
    names = connection.execute(
        sa.select(link.c.group_id, instance.c.name)
        .join(instance, instance.c.id == link.c.instance_id)
        .where(link.c.group_id.in_(sorted(groups)), instance.c.deleted == 0)
        .order_by(instance.c.id)
    )
    for group_id, name in names:
        groups[group_id]["servers"].append(name)
    result: JsonObject = {"changed": False, "security_groups": list(groups.values())}
    if params["picture"]:
        result["dot"] = security_groups.dot(groups.values())
    return result
