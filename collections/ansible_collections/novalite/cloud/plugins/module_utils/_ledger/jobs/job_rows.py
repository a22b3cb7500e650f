# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs in the ledger: recorded, looked at, cancelled. A job is a row beside the records that it is about."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError
from ..._json import Json, JsonMapping, JsonObject
from ..db import clock
from ..db.tables import instance
from ..db.tables_jobs import job, job_instance
from ..identity.quotas import check_quota
from ..queries.counts import count, equal
from .claiming import OPEN
from .waking import notify

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED = "queued", "running", "succeeded", "failed", "cancelled"
FINAL = (SUCCEEDED, FAILED, CANCELLED)
STATES = (QUEUED, RUNNING, *FINAL)
# What takes away what a project has, and an operator's moves: it has a quota of its own, as large, so that nobody who
# asked for too much has to keep it.
FREEING = (
    *("terminate", "volume_delete", "volume_detach", "volume_snapshot_delete", "interface_detach"),
    *("security_groups", "floating_ips"),
    *("migrate", "live-migration", "evacuate", "confirmResize", "revertResize"),
)
PAGE = 1000
LOOKED_AT = 50  # jobs of a kind; those for single hosts, after a build that failed there, are no matter


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

_SHOWN = [field.name for field in dataclasses.fields(JobRow) if field.name != "request_hash"]


# --- Looking --------------------------------------------------------------------------------------------------------


def get(connection: sa.Connection, job_id: str, project_id: str | None = None) -> Job:
    """The job; with `project_id`, only one of that project. Raises NotFoundError."""
    return _views(connection, [row_of(connection, job_id, project_id)])[0]


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
    return _views(connection, [JobRow(**row) for row in connection.execute(query).mappings()])


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


def waiting_variables(connection: sa.Connection, kind: str) -> list[JsonObject]:
    """Return the variables of the jobs of `kind` that wait."""
    query = sa.select(job.c.variables).where(job.c.state == QUEUED, job.c.kind == kind)
    return list(connection.execute(query).scalars())


def is_waiting(connection: sa.Connection, kind: str, variables: JsonMapping, project_id: str | None) -> bool:
    """Tell whether a job like this one is there and does not begin before this transaction ends.

    A playbook that brings hosts what the ledger says when it runs needs no second job for the next change.
    """
    waiting = (job.c.state == QUEUED, job.c.check_mode.is_(False))
    like = sa.select(job.c.variables).where(job.c.kind == kind, job.c.project_id == project_id, *waiting)
    # who is about to begin it waits for us, and then finds what we write
    rows = connection.execute(like.order_by(job.c.id).with_for_update()).scalars()
    return any(row == variables for row in rows)


def is_due(connection: sa.Connection, kind: str, seconds: int) -> bool:
    """Return whether the last job of `kind` for all hosts ended, and was asked for `seconds` ago, or never."""
    query = (
        sa.select(job.c.created_at, job.c.state, job.c.variables)
        .where(job.c.kind == kind, job.c.check_mode.is_(False))
        .order_by(job.c.created_at.desc())
        .limit(LOOKED_AT)
    )
    last = next((row for row in connection.execute(query) if "limit" not in row.variables), None)
    return last is None or (last.state in FINAL and last.created_at <= clock.now(connection) - seconds)


# --- Writing --------------------------------------------------------------------------------------------------------


def add(connection: sa.Connection, row: Job, instances: t.Sequence[str]) -> Job:
    """Record a job about `instances` (UUIDs), and wake the workers when the transaction is committed.

    `row` has its columns. One that is known by the same idempotency key is returned instead. Raises ConflictError for
    a key that stands for another request, and QuotaError when the project has too many open jobs.
    """
    has_key = row["idempotency_key"] is not None
    if has_key and (known := _known(connection, row)) is not None:
        return known
    if row["project_id"] is not None:
        _check_open(connection, row["kind"], row["project_id"])
    # without a key nothing can be there before, and there is nothing to go back to
    savepoint = connection.begin_nested() if has_key else contextlib.nullcontext()
    try:
        with savepoint:
            connection.execute(sa.insert(job), [row])
    except sa.exc.IntegrityError:
        # another request with this key came first, just now
        if not has_key or (known := _known(connection, row)) is None:
            raise
        return known
    if instances:
        values = [{"job_id": row["id"], "instance_uuid": uuid} for uuid in instances]
        connection.execute(sa.insert(job_instance), values)
    notify(connection)
    return {
        **dict.fromkeys(_SHOWN),
        **{name: row[name] for name in _SHOWN if name in row},
        "cancel_requested": False,
        "instances": list(instances),
    }


def cancel_waiting(connection: sa.Connection, job_id: str) -> bool:
    """Cancel a job that waits; False when it does not."""
    values = {"state": CANCELLED, "cancel_requested": True, "message": "cancelled before it began"}
    query = sa.update(job).where(job.c.id == job_id, job.c.state == QUEUED)
    return bool(connection.execute(query.values(finished_at=clock.now(connection), **values)).rowcount)


def ask_to_cancel(connection: sa.Connection, job_id: str) -> bool:
    """Ask the worker of a job that runs to end it; False when it does not run."""
    query = sa.update(job).where(job.c.id == job_id, job.c.state == RUNNING)
    return bool(connection.execute(query.values(cancel_requested=True)).rowcount)


# --- Inside ---------------------------------------------------------------------------------------------------------


def _check_open(connection: sa.Connection, kind: str, project_id: str) -> None:
    """Raise QuotaError if one more job of `kind` is more than the project may have open."""
    freeing = kind in FREEING
    of_this_sort = job.c.kind.in_(FREEING) if freeing else job.c.kind.not_in(FREEING)
    # not job.project_id itself: SQLite would go over all that the project ever asked for, and not over the open ones
    mine = sa.func.coalesce(job.c.project_id, "") == project_id
    check_quota(connection, project_id, "jobs", count(connection, OPEN, mine, of_this_sort) + 1)


def _known(connection: sa.Connection, row: Job) -> Job | None:
    """The job that is known under a new one's key. Raises ConflictError when the key stood for another request."""
    key = row["idempotency_key"]
    known = of_key(connection, row["project_id"], key)
    if known is None:
        return None
    if known.request_hash != row["request_hash"]:
        raise ConflictError(f"the idempotency key '{key}' was used for another request: use a new one")
    return _views(connection, [known])[0]


def _views(connection: sa.Connection, rows: t.Sequence[JobRow]) -> list[Job]:
    instances = instances_of(connection, [row.id for row in rows])
    return [{**{name: getattr(row, name) for name in _SHOWN}, "instances": instances[row.id]} for row in rows]
