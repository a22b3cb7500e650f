# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs of playbooks that no job of the API began: what they left in the log of actions, one run for each request."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import JsonObject
from ...db.tables import instance, instance_action, instance_action_event
from ...db.tables_jobs import job, job_instance
from ..placement.silence import with_silence

LOOKED_AT = 5000  # actions: one page of runs costs no more, however few of them are a playbook's
GUESTS_OWN = "power_state"  # the guest did it by itself, and a playbook saw it

_LOG = instance_action.c


@dataclasses.dataclass(frozen=True)
class RunStep:
    """A step of a run. Times are in seconds since the epoch; `failed` is None while it goes on."""

    name: str
    instance_uuid: str
    host: str | None
    began: float
    seconds: float | None
    failed: bool | None


@dataclasses.dataclass(frozen=True)
class Run:
    """A run of a playbook: its actions on servers. Times are in seconds since the epoch."""

    id: int  # of its first action; older runs have lower ones
    actions: t.Sequence[str]
    servers: t.Mapping[str, str]  # names by UUIDs
    started_at: int
    finished_at: int | None  # None: it goes on, or died
    message: str | None  # of what failed
    failed: int  # servers
    silent_for: int | None  # seconds without a sign of life, where it died

    @property
    def state(self) -> str:
        """A word like those of jobs, or "silent"."""
        if self.finished_at is None:
            return "running" if self.silent_for is None else "silent"
        return "succeeded" if self.message is None else "failed"


def list_runs(connection: sa.Connection, project_id: str | None, limit: int, marker: int | None = None) -> list[Run]:
    """Return the runs about servers of the project (None: of any), the newest first; those before the run `marker`."""
    if marker is None:
        marker = 1 + (connection.execute(sa.select(sa.func.max(_LOG.id))).scalar() or 0)
    query = _actions(project_id).where(_LOG.id < marker, _LOG.id >= marker - LOOKED_AT).order_by(_LOG.id.desc())
    rows_by_request: dict[str, list[sa.Row[t.Any]]] = {}
    with connection.execute(query) as rows:
        for row in rows:
            if row.request_id not in rows_by_request and len(rows_by_request) == limit:
                break
            rows_by_request.setdefault(row.request_id, []).append(row)
    return _runs(connection, rows_by_request.values())


def one_run(connection: sa.Connection, number: int, project_id: str | None) -> tuple[Run, list[RunStep]]:
    """Return a run and its steps, of all servers in the order of time. Raises NotFoundError."""
    request_id = sa.select(_LOG.request_id).where(_LOG.id == number).scalar_subquery()
    here = sa.and_(_LOG.id >= number, _LOG.id < number + LOOKED_AT, _LOG.request_id == request_id)
    rows = connection.execute(_actions(project_id).where(here).order_by(_LOG.id.desc())).all()
    if not rows:
        raise NotFoundError(f"Run {number} could not be found.")
    return _runs(connection, [rows])[0], _steps(connection, rows)


def _actions(project_id: str | None) -> sa.Select[t.Any]:
    """Select the actions that playbooks began by themselves: nobody asked the API for them, and no job was at work."""
    server = instance.c
    columns = (server.name, server.display_name, server.vm_state, server.task_state, server.updated_at)
    in_job = (
        sa.select(job.c.id)
        .join(job_instance, job_instance.c.job_id == job.c.id)
        .where(job_instance.c.instance_uuid == _LOG.instance_uuid)
        .where(
            sa.or_(
                job.c.request_id == _LOG.request_id,
                sa.and_(
                    job.c.started_at < _LOG.started_at + 1,
                    sa.func.coalesce(job.c.finished_at, _LOG.started_at) >= _LOG.started_at,
                ),
            )
        )
    )
    query = (
        sa.select(
            *(_LOG[name] for name in ("id", "instance_uuid", "action", "request_id")),
            *(_LOG[name] for name in ("started_at", "finished_at", "message")),
            *columns,
        )
        .join(instance, server.uuid == _LOG.instance_uuid)
        .where(_LOG.user_id.is_(None), _LOG.action != GUESTS_OWN, ~in_job.exists())
    )
    if project_id is None:
        return query
    # not server.project_id itself: SQLite would go over all servers of the project, and not over the newest actions
    return query.where(sa.func.coalesce(server.project_id, "") == project_id)


def _runs(connection: sa.Connection, rows_of_runs: t.Collection[t.Sequence[sa.Row[t.Any]]]) -> list[Run]:
    unfinished = {
        row.instance_uuid: {
            "uuid": row.instance_uuid,
            **{name: getattr(row, name) for name in ("vm_state", "task_state", "updated_at")},
        }
        for rows in rows_of_runs
        for row in rows
        if row.finished_at is None
    }
    silent: dict[str, int | None] = {
        record["uuid"]: record["silent_for"] for record in with_silence(connection, list(unfinished.values()))
    }
    runs = []
    for rows in rows_of_runs:
        failed = [row for row in rows if row.message is not None]
        ends = [row.finished_at for row in rows]
        going = [row.instance_uuid for row in rows if row.finished_at is None]
        silences = [silent[uuid] for uuid in going]
        runs.append(
            Run(
                id=rows[-1].id,
                actions=list(dict.fromkeys(row.action for row in reversed(rows))),
                servers={row.instance_uuid: row.display_name or row.name for row in reversed(rows)},
                started_at=min(row.started_at for row in rows),
                finished_at=None if None in ends else max(ends),
                message=failed[-1].message if failed else None,
                failed=len(failed),
                silent_for=None if None in silences else max(filter(None, silences), default=None),
            )
        )
    return runs


def _steps(connection: sa.Connection, rows: t.Sequence[sa.Row[t.Any]]) -> list[RunStep]:
    uuid_by_action = {row.id: row.instance_uuid for row in rows}
    event = instance_action_event.c
    events = connection.execute(sa.select(instance_action_event).where(event.action_id.in_(uuid_by_action)))
    steps = [
        RunStep(
            each.event,
            uuid_by_action[each.action_id],
            each.host,
            each.started_at,
            None if each.finished_at is None else each.finished_at - each.started_at,
            None if each.finished_at is None else each.result == "Error",
        )
        for each in events
    ]
    # what a launch keeps of its calls says more than its one event
    calls: dict[int, list[JsonObject]] = {
        row.id: row.calls
        for row in connection.execute(
            sa.select(_LOG.id, _LOG.details["calls"].label("calls")).where(_LOG.id.in_(uuid_by_action))
        )
        if row.calls
    }
    steps += [
        RunStep(made["operation"], uuid_by_action[of], made.get("host"), made["at"], made["seconds"], "failed" in made)
        for of, several in calls.items()
        for made in several
    ]
    return sorted(steps, key=lambda step: step.began)
