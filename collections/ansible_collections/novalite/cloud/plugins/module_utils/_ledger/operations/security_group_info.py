# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `security_group_info`: security groups with their rules and members, also as a picture."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._graph import security_groups
from ..db.tables import instance, instance_security_group, project, security_group, security_group_rule
from ..queries import lookups

_RULE = ("id", "direction", "ethertype", "protocol", "port_min", "port_max", "cidr", "remote_group_id")


def security_group_info(connection: sa.Connection, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The groups of a project, or of all, with rules and members; with `picture` also as a graph."""
    query = (
        sa.select(security_group, project.c.name.label("project"))
        .join(project, project.c.id == security_group.c.project_id)
        .order_by(project.c.name, security_group.c.name)
    )
    if not params["all_projects"]:
        owner = lookups.project_by_name(connection, params["project"])["id"]
        query = query.where(security_group.c.project_id == owner)
    groups: dict[int, dict[str, t.Any]] = {
        row.id: {
            "id": row.id,
            "uuid": row.uuid,
            "name": row.name,
            "project": row.project,
            "description": row.description,
            "rules": [],
            "servers": [],
        }
        for row in connection.execute(query)
    }
    rules, link = security_group_rule, instance_security_group
    for row in connection.execute(sa.select(rules).where(rules.c.group_id.in_(sorted(groups))).order_by(rules.c.id)):
        groups[row.group_id]["rules"].append({field: getattr(row, field) for field in _RULE})
    names = connection.execute(
        sa.select(link.c.group_id, instance.c.name)
        .join(instance, instance.c.id == link.c.instance_id)
        .where(link.c.group_id.in_(sorted(groups)), instance.c.deleted == 0)
        .order_by(instance.c.id)
    )
    for group_id, name in names:
        groups[group_id]["servers"].append(name)
    result: dict[str, t.Any] = {"changed": False, "security_groups": list(groups.values())}
    if params["picture"]:
        result["dot"] = security_groups.dot(groups.values())
    return result
