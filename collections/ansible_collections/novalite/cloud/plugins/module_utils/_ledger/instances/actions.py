# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The instance action log: what was asked of an instance, when it ended, and how, in words fit for its owner.

Beside it what every subject writes of an instance: its row, unless that is another than expected meanwhile."""

from __future__ import annotations

import re
import typing as t
import uuid

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.plain_text import shortened, without_controls
from ..db import clock
from ..db.tables import instance, instance_action, instance_action_event
from ..queries.compute.launch_calls import KEPT, Call

EVENTS = {"extend_volume": "compute_extend_volume"}  # which clients wait for by Nova's name
MAX_MESSAGE = 255  # as Nova's fault messages

# Messages come from failed commands. What looks like a secret there stays there (CVE-2014-7230, CVE-2019-14433).
_URL_LOGIN = re.compile(r"(://)[^/\s@]+@")
_SECRET = re.compile(r"(?i)\b([a-z_-]*(?:passw(?:or)?d|secret|token|passphrase|api_?key))(\s*[=:]\s*)(\S+)")


def one_line(message: str | None, longest: int = MAX_MESSAGE) -> str:
    """`message` as one printable line of at most so many characters, without passwords and the like."""
    return shortened(without_secrets(" ".join(without_controls(message or "", " ").split())), longest)


def without_secrets(text: str) -> str:
    """`text` with stars for what looks like a password, a token, or the login of a URL."""
    return _SECRET.sub(r"\1\2***", _URL_LOGIN.sub(r"\1***@", text))


def new_request_id() -> str:
    """An id for one request, as OpenStack's clients print it."""
    return f"req-{uuid.uuid4()}"


def _unfinished(uuids: t.Iterable[str], action: str | None = None) -> sa.ColumnElement[bool]:
    """The actions of these instances (None: whatever they are) that have not ended."""
    c = instance_action.c
    of_these = sa.and_(c.instance_uuid.in_(sorted(set(uuids))), c.finished_at.is_(None))
    return of_these if action is None else sa.and_(of_these, c.action == action)


def start(
    connection: sa.Connection,
    action: str,
    details: t.Mapping[str, JsonMapping],
    request_id: str | None,
    now: int | None = None,
    user_id: str | None = None,
    project_id: str | None = None,
) -> None:
    """Record that `action` began on every instance in `details` (UUID -> what is worth keeping about it).

    `request_id` None: a new one. `user_id` and `project_id` say who asked, where the API knows.
    """
    if not details:
        return
    started, request_id = clock.seconds(connection) if now is None else now, request_id or new_request_id()
    connection.execute(
        sa.insert(instance_action),
        [
            {
                "instance_uuid": instance_uuid,
                "action": action,
                "request_id": request_id,
                "user_id": user_id,
                "project_id": project_id,
                "started_at": started,
                "details": dict(detail),
            }
            for instance_uuid, detail in details.items()
        ],
    )


def finish(
    connection: sa.Connection,
    action: str,
    outcomes: t.Sequence[tuple[str, str | None, str | None]],
    ended: bool = True,
    now: int | None = None,
) -> None:
    """Record on the unfinished `action` of each (UUID, host, error message or None) one event, and its end. The message
    may be any text, even an empty one.

    With `ended` false the action goes on: an attempt on one host failed, the next is to come. An instance without
    such an action (its record was made by hand, or it ended already) is passed over.
    """
    if not outcomes:
        return
    finished = clock.seconds(connection) if now is None else now
    rows = connection.execute(
        sa.select(instance_action.c.instance_uuid, instance_action.c.id, instance_action.c.started_at)
        .where(_unfinished((instance_uuid for instance_uuid, _host, _error in outcomes), action))
        .order_by(instance_action.c.id)
    )
    running = {row.instance_uuid: row for row in rows}
    events, ends, over = [], [], []
    for instance_uuid, host, error in outcomes:
        row = running.get(instance_uuid)
        if row is None:
            continue
        result = "Success" if error is None else "Error"
        if ended:
            over.append({"of_action": row.id, "at": finished, "how": result})
        events.append(
            {
                "action_id": row.id,
                "event": EVENTS.get(action) or (f"{action}_on_host" if host else action),
                "host": host,
                "started_at": row.started_at,
                "finished_at": finished,
                "result": result,
            }
        )
        message = None if error is None else one_line(error) or "no reason was given"
        ends.append({"of_action": row.id, "finished": finished if ended else None, "error": message})
    if over:  # steps that were under way
        connection.execute(
            sa.update(instance_action_event)
            .where(
                instance_action_event.c.action_id == sa.bindparam("of_action"),
                instance_action_event.c.finished_at.is_(None),
            )
            .values(finished_at=sa.bindparam("at"), result=sa.bindparam("how")),
            over,
        )
    if events:
        connection.execute(sa.insert(instance_action_event), events)
        connection.execute(
            sa.update(instance_action)
            .where(instance_action.c.id == sa.bindparam("of_action"))
            .values(finished_at=sa.bindparam("finished"), message=sa.bindparam("error")),
            ends,
        )


def last_details(connection: sa.Connection, action: str, uuids: t.Collection[str]) -> dict[str, JsonObject]:
    """Return with which details `action` was last begun on each of these instances (UUIDs), those without it left
    out."""
    log = instance_action.c
    query = sa.select(log.instance_uuid, log.details).where(log.instance_uuid.in_(sorted(uuids)), log.action == action)
    return {row.instance_uuid: row.details or {} for row in connection.execute(query.order_by(log.id))}


def open_details(connection: sa.Connection, action: str, uuids: t.Iterable[str]) -> dict[str, JsonObject]:
    """UUID -> the details of the unfinished `action` of each instance that has one."""
    rows = connection.execute(
        sa.select(instance_action.c.instance_uuid, instance_action.c.details)
        .where(_unfinished(uuids, action))
        .order_by(instance_action.c.id)
    )
    return {row.instance_uuid: row.details for row in rows}


def step(connection: sa.Connection, action: str, uuids: t.Iterable[str], event: str | None, now: int) -> None:
    """The unfinished `action` of each of these comes to its next step, `event`; the one before is over.

    With None, there is no next one.
    """
    unfinished = sa.select(instance_action.c.id).where(_unfinished(uuids, action))
    connection.execute(
        sa.update(instance_action_event)
        .where(instance_action_event.c.action_id.in_(unfinished), instance_action_event.c.finished_at.is_(None))
        .values(finished_at=now, result="Success")
    )
    ids = connection.execute(unfinished.order_by(instance_action.c.id)).scalars().all()
    if event is not None and ids:
        connection.execute(
            sa.insert(instance_action_event),
            [{"action_id": action_id, "event": event, "started_at": now} for action_id in ids],
        )


def abandon(connection: sa.Connection, uuids: t.Iterable[str], message: str, now: int | None = None) -> None:
    """End every unfinished action of these instances: something else was begun, and they will not go on."""
    connection.execute(
        sa.update(instance_action)
        .where(_unfinished(uuids))
        .values(finished_at=clock.seconds(connection) if now is None else now, message=message)
    )


def add_calls(connection: sa.Connection, calls: t.Mapping[str, t.Sequence[Call]]) -> None:
    """Write to the last launch of each instance (by UUID) these calls beside those that it has; at most KEPT."""
    if not calls:
        return
    c = instance_action.c
    newest = (
        sa.select(sa.func.max(c.id))
        .where(c.instance_uuid.in_(sorted(calls)), c.action == "create")
        .group_by(c.instance_uuid)
    )
    rows = connection.execute(sa.select(c.id, c.instance_uuid, c.details).where(c.id.in_(newest)).order_by(c.id))
    writes = [
        {
            "of_action": row.id,
            "new": {**row.details, "calls": [*row.details.get("calls", ()), *calls[row.instance_uuid]][:KEPT]},
        }
        for row in rows
    ]
    if writes:
        connection.execute(
            sa.update(instance_action).where(c.id == sa.bindparam("of_action")).values(details=sa.bindparam("new")),
            writes,
        )


def swap(connection: sa.Connection, uuid: str, values: JsonMapping, *expected: sa.ColumnElement[bool]) -> bool:
    """Write `values` to the instance, unless it is deleted or is not as `expected` any more; returns whether it was."""
    mine = sa.update(instance).where(instance.c.uuid == uuid, instance.c.deleted == 0, *expected)
    return connection.execute(mine.values(**values)).rowcount == 1
