# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `security_group`: security groups that a project is to have with which rules, or not."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._rules.records import Changes, check_text, checked_names
from ..._rules.rules import ordered, range_of
from ..db import tables
from ..queries.lookups import project_by_name, security_groups_by_name
from ..queries.network.group_records import DEFAULT_GROUP
from ..security.firewalls import plan_for_groups
from ..security.group_rules import add_group, replace_rules
from ..security.security_groups import DEFAULT_DESCRIPTION, remove_groups, rules_query

Group = JsonObject  # {"description", "rules": [...]}


def security_group(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Make, change or remove the groups of a project. `rules`, when given, replaces all rules of a group in any order;
    one that stays keeps its id. Raises NovaliteError for a rule that makes no sense, NotFoundError for an unknown
    remote_group, ConflictError for a group that an instance or another group's rule uses, QuotaError."""
    owner = project_by_name(connection, params["project"], lock=True)["id"]
    items = params["security_groups"]
    names = checked_names("security group", items, spaces=True)
    there = _groups(connection, owner, names)
    changes = Changes()
    if params["state"] == "absent":
        for name in names:
            changes.note(name, there.get(name), None)
        remove_groups(connection, owner, [name for name in names if name in there])
        return changes.result("security_groups", [])
    # all groups first, so that their rules can name each other
    for item, name in zip(items, names):
        described = None if item["description"] is None else check_text("description", item["description"])
        if name not in there:
            default_description = DEFAULT_DESCRIPTION if name == DEFAULT_GROUP else ""
            add_group(connection, owner, name, default_description if described is None else described)
        elif described not in (None, there[name]["description"]):
            table = tables.security_group
            mine = sa.and_(table.c.project_id == owner, table.c.name == name)
            connection.execute(sa.update(table).where(mine).values(description=described))
    for item, name in zip(items, names):
        if item["rules"] is not None:
            replace_rules(connection, owner, name, item["rules"])
    now = _groups(connection, owner, names)
    for name in names:
        changes.note(name, there.get(name), now[name])
    rows = security_groups_by_name(connection, names, owner)
    result = changes.result(
        "security_groups",
        [{"id": row["id"], "uuid": row["uuid"], "name": row["name"], **now[row["name"]]} for row in rows],
    )
    if params.get("plan"):
        # Also when nothing changed here: an earlier run may not have reached every host.
        result["hosts"] = plan_for_groups(connection, [row["id"] for row in rows])
    return result


def _groups(connection: sa.Connection, project_id: str, names: t.Sequence[str]) -> dict[str, Group]:
    """The groups that exist, with their rules in order, in two queries."""
    table, rules = tables.security_group, tables.security_group_rule
    mine = sa.and_(table.c.project_id == project_id, table.c.name.in_(names))
    groups: dict[str, Group] = {
        row.name: {"description": row.description, "rules": []}
        for row in connection.execute(sa.select(table.c.name, table.c.description).where(mine))
    }
    for row in connection.execute(rules_query().where(rules.c.group_id.in_(sa.select(table.c.id).where(mine)))):
        rule = dict(row._mapping)
        if rule["remote_group"] is None:
            rule["cidr"] = range_of(rule)
        groups[rule.pop("group")]["rules"].append({key: rule[key] for key in rule if key not in ("id", "group_id")})
    for group in groups.values():
        group["rules"] = ordered(group["rules"])
    return groups
