# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that were recorded before they are worked on: an API wrote them down, a job carries on.

Whoever calls sees to it that no other run works on the same servers.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonObject
from ..._rules.build_states import BUILDS, build_of
from ..db import clock
from ..db.tables import instance
from ..instances import actions
from ..queries.compute import state_rules
from ..queries.compute.instance_rows import being_built, instance_rows
from ..queries.compute.state_rules import RULES, StateRule
from ..queries.compute.views import instances_by
from ..volumes import volume_attachments
from . import server_actions


class Task(t.TypedDict):
    """An instance, and what is being done to it."""

    uuid: str
    task_state: str | None


def to_build_and_existing(connection: sa.Connection, uuids: t.Collection[str]) -> JsonObject:
    """`to_build`, those of these servers that are BUILD or being unshelved, and `existing`, those that run, whatever
    their projects; not what is being deleted or is ERROR. A build that a dead run had begun goes on where it was: on
    its host, if it has one."""
    servers = [server for server in instances_by(connection, uuids=uuids) if server["task_state"] != "deleting"]
    pending: list[str] = []
    for build in BUILDS:
        theirs = [server["uuid"] for server in servers if build_of(server["vm_state"], server["task_state"]) is build]
        if theirs:
            connection.execute(
                sa.update(instance)
                .where(instance.c.uuid.in_(theirs), being_built(build))
                .values(task_state=build.waiting, updated_at=clock.seconds(connection))
            )
        pending += theirs
    waiting = {build.waiting for build in BUILDS}
    to_build = [server for server in instances_by(connection, uuids=pending) if server["task_state"] in waiting]
    return {
        "changed": bool(to_build),
        "to_build": to_build,
        "existing": [server for server in servers if server["uuid"] not in pending and server["vm_state"] != "error"],
    }


def leaving(connection: sa.Connection, uuids: t.Collection[str]) -> JsonObject:
    """`to_delete`: those of these servers that are still there, each marked as going if it was not."""
    to_delete = instances_by(connection, uuids=uuids)
    mark(connection, to_delete)
    return {
        "changed": bool(to_delete),
        "to_delete": instances_by(connection, uuids=[server["uuid"] for server in to_delete]),
    }


def mark(
    connection: sa.Connection,
    to_delete: t.Iterable[Task],
    request_id: str | None = None,
    *,
    user_id: str | None = None,
    project_id: str | None = None,
    by_admin: bool = False,
    rule: StateRule = RULES["delete"],
) -> str:
    """Mark these instances as being deleted and record the action; returns the id of the request. One that another run
    was deleting is deleted again: it may have died, and every step can be repeated. Raises StateError for one that
    `rule` does not let go."""
    now, request_id = clock.seconds(connection), request_id or actions.new_request_id()
    fresh = [server["uuid"] for server in to_delete if server["task_state"] != "deleting"]
    rows = instance_rows(connection, instance.c.uuid.in_(fresh), instance.c.deleted == 0)
    state_rules.check(connection, rule, rows, by_admin=by_admin)
    connection.execute(
        sa.update(instance)
        .where(instance.c.uuid.in_(fresh), instance.c.deleted == 0)
        .values(task_state="deleting", updated_at=now)
    )
    volume_attachments.stay(connection, fresh)
    server_actions.abandon(connection, fresh, "ended by a request to delete", now=now, deleting=True)
    details: dict[str, JsonObject] = {uuid: {} for uuid in fresh}
    actions.start(connection, "delete", details, request_id, now, user_id=user_id, project_id=project_id)
    return request_id
