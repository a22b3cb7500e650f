# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on one instance, page by page, and its security groups with their rules. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import NotFoundError
from ..._json import JsonObject
from ..db.tables import (
    instance_action,
    instance_action_event,
    instance_security_group,
    security_group,
    security_group_rule,
)

Record = JsonObject

_SHOWN = (
    *(instance_action.c[name] for name in ("id", "action", "request_id", "user_id", "project_id", "message")),
    instance_action.c.started_at,
    instance_action.c.finished_at,
)


def actions_of(
    connection: sa.Connection,
    uuid: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    since: int | None = None,
    before: int | None = None,
) -> list[Record]:
    """The actions of an instance, the newest first: those behind the request `marker`, that changed from `since` to
    `before` (seconds since the epoch). Raises NotFoundError for a marker that is none."""
    c = instance_action.c
    query = sa.select(*_SHOWN).where(c.instance_uuid == uuid).order_by(c.id.desc())
    if marker is not None:
        last = connection.execute(
            sa.select(c.id).where(c.instance_uuid == uuid, c.request_id == marker).order_by(c.id).limit(1)
        ).scalar()
        if last is None:
            raise NotFoundError(f"marker [{marker}] not found")
        query = query.where(c.id < last)
    changed = sa.func.coalesce(c.finished_at, c.started_at)
    if since is not None:
        query = query.where(changed >= since)
    if before is not None:
        query = query.where(changed <= before)
    if limit is not None:
        query = query.limit(limit)
    return [dict(row) for row in connection.execute(query).mappings()]


def action_of(connection: sa.Connection, uuid: str, request_id: str) -> Record:
    """Return the request's action on the instance, with its `events`. Raises NotFoundError.

    An event that failed has the action's message.
    """
    c = instance_action.c
    query = sa.select(*_SHOWN).where(c.instance_uuid == uuid, c.request_id == request_id).order_by(c.id.desc())
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotFoundError(f"Action for request_id {request_id} on instance {uuid} not found")
    events = connection.execute(
        sa.select(instance_action_event)
        .where(instance_action_event.c.action_id == row["id"])
        .order_by(instance_action_event.c.id.desc())
    ).mappings()
    return {**row, "events": [{**event, "message": row["message"]} for event in events]}


def groups_with_rules(connection: sa.Connection, instance_id: int) -> list[Record]:
    """The security groups that the instance is in, each with its rules; `remote_group` is a name."""
    link, remote = instance_security_group, security_group.alias("remote")
    groups = {
        row["id"]: {**row, "rules": []}
        for row in connection.execute(
            sa.select(security_group)
            .join(link, link.c.group_id == security_group.c.id)
            .where(link.c.instance_id == instance_id)
            .order_by(security_group.c.id)
        ).mappings()
    }
    rules = connection.execute(
        sa.select(security_group_rule, remote.c.name.label("remote_group"))
        .outerjoin(remote, remote.c.id == security_group_rule.c.remote_group_id)
        .where(security_group_rule.c.group_id.in_(sorted(groups)))
        .order_by(security_group_rule.c.id)
    ).mappings()
    for rule in rules:
        groups[rule["group_id"]]["rules"].append(dict(rule))
    return list(groups.values())
