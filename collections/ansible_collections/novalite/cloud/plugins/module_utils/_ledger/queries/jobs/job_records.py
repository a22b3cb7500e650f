# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of the API, what their runs say, and the machines with workers. Reads only."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import Json, JsonObject
from ...db import clock
from ...db.tables import instance
from ...db.tables_jobs import job, job_event, job_instance, run, worker
from ..counts import equal
from ..placement.host_states import SERVICE_DOWN_TIME

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED = "queued", "running", "succeeded", "failed", "cancelled"
FINAL = (SUCCEEDED, FAILED, CANCELLED)
STATES = (QUEUED, RUNNING, *FINAL)
PAGE = 1000


@dataclasses.dataclass(frozen=True)
class JobRow:
    """A job as its row says it. Times are in seconds since the epoch."""

    id: str
    kind: str  # which playbook, and what variables it takes
    project_id: str | None  # None: of the cloud as a whole
    user_id: str | None
    request_id: str | None
    variables: JsonObject
    check_mode: bool
    state: str  # of STATES
    idempotency_key: str | None
    request_hash: str | None  # of what came with that key
    run_id: str | None
    retry_of: str | None
    cancel_requested: bool
    timeout_seconds: int
    message: str | None
    result: Json
    created_at: float
    started_at: float | None
    finished_at: float | None


Job = JsonObject  # what is shown of a job: its row but the hash, and its "instances" (UUIDs)
SHOWN = [field.name for field in dataclasses.fields(JobRow) if field.name != "request_hash"]


def get(connection: sa.Connection, job_id: str, project_id: str | None = None) -> Job:
    """The job; with `project_id`, only one of that project. Raises NotFoundError."""
    return shown(connection, [row_of(connection, job_id, project_id)])[0]


def list_jobs(
    connection: sa.Connection,
    *,
    project_id: str | None = None,
    kind: str | None = None,
    state: str | None = None,
    instance_uuid: str | None = None,
    limit: int = 100,
    marker: str | None = None,
) -> list[Job]:
    """Jobs, newest first, of all projects or of one; those after the job `marker`. Raises NotFoundError for it."""
    query = sa.select(job).order_by(job.c.created_at.desc(), job.c.id.desc()).limit(min(limit, PAGE))
    query = query.where(*equal({job.c.project_id: project_id, job.c.kind: kind, job.c.state: state}))
    if instance_uuid is not None:
        mine = sa.select(job_instance.c.job_id).where(job_instance.c.instance_uuid == instance_uuid)
        query = query.where(job.c.id.in_(mine))
    if marker is not None:
        last = row_of(connection, marker, project_id)
        query = query.where(sa.tuple_(job.c.created_at, job.c.id) < (last.created_at, last.id))
    return shown(connection, [JobRow(**row) for row in connection.execute(query).mappings()])


def row_of(connection: sa.Connection, job_id: str, project_id: str | None = None) -> JobRow:
    """Return the job's row; with `project_id`, only one of that project. Raises NotFoundError."""
    query = sa.select(job).where(*equal({job.c.id: job_id, job.c.project_id: project_id}))
    row = connection.execute(query).mappings().first()
    if row is None:
        raise NotFoundError(f"there is no job {job_id[:70]}")
    return JobRow(**row)


def of_key(connection: sa.Connection, project_id: str | None, key: str) -> JobRow | None:
    """Return the row of the job that the project asked for with this idempotency key, None where there is none."""
    query = sa.select(job).where(job.c.project_id.is_not_distinct_from(project_id), job.c.idempotency_key == key)
    row = connection.execute(query).mappings().first()
    return None if row is None else JobRow(**row)


def instances_of(connection: sa.Connection, job_ids: t.Collection[str]) -> dict[str, list[str]]:
    """Return the UUIDs of each job's instances, in the order in which these were made."""
    uuids: dict[str, list[str]] = {job_id: [] for job_id in job_ids}
    query = (
        sa.select(job_instance.c.job_id, job_instance.c.instance_uuid)
        .outerjoin(instance, instance.c.uuid == job_instance.c.instance_uuid)
        .where(job_instance.c.job_id.in_(list(uuids)))
        .order_by(instance.c.id, job_instance.c.instance_uuid)
    )
    for row in connection.execute(query):
        uuids[row.job_id].append(row.instance_uuid)
    return uuids


def shown(connection: sa.Connection, rows: t.Sequence[JobRow]) -> list[Job]:
    instances = instances_of(connection, [row.id for row in rows])
    return [{**{name: getattr(row, name) for name in SHOWN}, "instances": instances[row.id]} for row in rows]


EVENT_SHOWN = ("seq", "created_at", "event", "play", "task", "host", "status", "duration", "text")


def events_of(
    connection: sa.Connection,
    job_id: str,
    *,
    after: int = 0,
    limit: int = PAGE,
    project_id: str | None = None,
    texts: bool = False,
) -> list[JsonObject]:
    """List the events of the job's run so far, after the one with the number `after`, oldest first.

    A run may serve jobs of several projects. What its tasks said is then shown with `texts` (to administrators) only,
    and so is on which hosts, which is no tenant's business.
    """
    run_id = row_of(connection, job_id, project_id).run_id
    if run_id is None:
        return []
    shared = connection.execute(sa.select(run.c.project_id).where(run.c.id == run_id)).scalar() is None
    query = (
        sa.select(*(job_event.c[name] for name in EVENT_SHOWN))
        .where(job_event.c.run_id == run_id, job_event.c.seq > after)
        .order_by(job_event.c.seq)
        .limit(min(limit, PAGE))
    )
    hidden: JsonObject = {} if texts else {"host": None, "text": None} if shared else {"host": None}
    return [{**row, **hidden} for row in connection.execute(query).mappings()]


def last_seen(connection: sa.Connection) -> float | None:
    """Return when any worker that was not stopped gave its last sign of life, None where there is none."""
    return connection.execute(sa.select(sa.func.max(worker.c.seen_at)).where(worker.c.stopped_at.is_(None))).scalar()


class Machine(t.NamedTuple):
    """A machine of the control plane, by its workers."""

    name: str
    seen_at: float  # the last sign of life of any of them
    up: bool


def machines(connection: sa.Connection) -> list[Machine]:
    """Return the machines on which workers were started that nobody stopped."""
    seen_at = sa.func.max(worker.c.seen_at)
    query = (
        sa.select(worker.c.hostname, seen_at, clock.now(connection) - seen_at < SERVICE_DOWN_TIME)
        .where(worker.c.stopped_at.is_(None))
        .group_by(worker.c.hostname)
        .order_by(worker.c.hostname)
    )
    return [Machine(name, seen, bool(up)) for name, seen, up in connection.execute(query)]
