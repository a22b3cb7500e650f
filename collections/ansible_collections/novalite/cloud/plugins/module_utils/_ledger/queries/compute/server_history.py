# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on one instance, page by page, and its security groups with their rules. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import JsonMapping, JsonObject
from ...._model import whole_servers
from ...db.tables import (
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


_OF_THESE = instance_action.c.instance_uuid.in_(sa.bindparam("uuids", expanding=True))
# What whole_servers.history reads. The command `novalite` has them as texts, too: operations/looks.py
LOAD: dict[str, sa.Select[t.Any]] = {
    "action_events": sa.select(instance_action_event)
    .join(instance_action, instance_action.c.id == instance_action_event.c.action_id)
    .where(_OF_THESE)
    .order_by(instance_action_event.c.id),
    "actions": sa.select(instance_action).where(_OF_THESE).order_by(instance_action.c.id.desc()),
}


def history(connection: sa.Connection, uuids: t.Iterable[str]) -> dict[str, list[JsonObject]]:
    """Return all actions of each instance, newest first, each with its events, in two queries."""
    of_these = sorted(set(uuids))

    def read(name: str, _values: JsonMapping) -> t.Iterable[t.Any]:
        return connection.execute(LOAD[name], {"uuids": of_these}).mappings()

    return whole_servers.history(read)
