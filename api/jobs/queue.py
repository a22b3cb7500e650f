# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way in: jobs are enqueued, looked at, cancelled and tried again here, in the caller's own ledger transaction.

A job is a row beside the records that it is about: either both are there, or neither. Workers take it from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables import instance, project
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job, job_instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.quotas import check_quota
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import actions

from ..errors import BadRequestError
from . import events as job_events
from . import settling, wake
from .claiming import OPEN
from .kinds import Kind, kind_of

QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED = "queued", "running", "succeeded", "failed", "cancelled"
FINAL = (SUCCEEDED, FAILED, CANCELLED)
STATES = (QUEUED, RUNNING, *FINAL)
MAX_TIMEOUT = 24 * 3600  # seconds
# What takes away what a project has, and an operator's moves: it has a quota of its own, as large, so that nobody who
# asked for too much has to keep it.
FREEING = frozenset(
    [
        *("terminate", "volume_delete", "volume_detach", "volume_snapshot_delete", "interface_detach"),
        *("security_groups", "floating_ips"),
        *("migrate", "live-migration", "evacuate", "confirmResize", "revertResize"),
    ]
)
MAX_KEY = 255
MAX_VARIABLES = 256 * 1024  # bytes of JSON
PAGE = 1000

Job = dict[str, t.Any]


def enqueue(
    connection: sa.Connection,
    kind: str,
    *,
    instances: t.Collection[str] = (),
    variables: t.Mapping[str, t.Any] | None = None,
    project_id: str | None = None,
    user_id: str | None = None,
    request_id: str | None = None,
    check_mode: bool = False,
    idempotency_key: str | None = None,
    timeout_seconds: int | None = None,
    retry_of: str | None = None,
) -> Job:
    """Record a job of `kind` about `instances` (UUIDs), in the transaction of what it will carry out.

    It begins once that is committed. The instances are in the state that the playbook expects (an action that was
    begun, a build that was recorded), and `request_id` is that of their instance action. The same `idempotency_key` of
    a project with the same request is the same job. Where a playbook acts for a project, it is `project_id`'s.

    Raises BadRequestError for variables that the kind does not take, NotFoundError for a kind that there is none of,
    ConflictError for a key that stands for another request, and QuotaError when the project has too many open jobs.
    """
    one = kind_of(kind)
    given = dict(variables or {})
    if one.project and project_id is not None and not (one.merge and instances):
        name = connection.execute(sa.select(project.c.name).where(project.c.id == project_id)).scalar_one()
        given["project"] = name  # whatever was asked for
    wanted = list(dict.fromkeys(instances))
    _check(one, wanted, given, idempotency_key, timeout_seconds)
    asked = json.dumps([kind, sorted(wanted), given, check_mode], sort_keys=True)
    row = {
        "id": str(uuid.uuid4()),
        "kind": kind,
        "project_id": project_id,
        "user_id": user_id,
        "request_id": request_id,
        "variables": given,
        "check_mode": check_mode,
        "state": QUEUED,
        "idempotency_key": idempotency_key,
        "request_hash": hashlib.sha256(asked.encode()).hexdigest() if idempotency_key is not None else None,
        "retry_of": retry_of,
        "timeout_seconds": timeout_seconds or one.timeout,
        "created_at": time.time(),
    }
    if idempotency_key is not None and (known := _of_key(connection, row)) is not None:
        return known
    if project_id is not None:
        _check_open(connection, kind, project_id)
    # without a key nothing can be there before, and there is nothing to go back to
    savepoint = contextlib.nullcontext() if idempotency_key is None else connection.begin_nested()
    try:
        with savepoint:
            connection.execute(sa.insert(job), [row])
    except sa.exc.IntegrityError:
        # another request with this key came first, just now
        if idempotency_key is None or (known := _of_key(connection, row)) is None:
            raise
        return known
    if wanted:
        connection.execute(
            sa.insert(job_instance), [{"job_id": row["id"], "instance_uuid": uuid_} for uuid_ in wanted]
        )
    wake.ring(connection)
    return {
        **dict.fromkeys(_FIELDS),
        **{name: row[name] for name in _FIELDS if name in row},
        "cancel_requested": False,
        "instances": wanted,
    }


def is_waiting(
    connection: sa.Connection, kind: str, variables: t.Mapping[str, t.Any], project_id: str | None
) -> bool:
    """Whether a job like this one is there and does not begin before this transaction ends.

    A playbook that brings hosts what the ledger says when it runs needs no second job for the next change.
    """
    like = sa.and_(
        job.c.kind == kind, job.c.project_id == project_id, job.c.state == QUEUED, job.c.check_mode.is_(False)
    )
    # who is about to begin it waits for us, and then finds what we write
    rows = connection.execute(sa.select(job.c.variables).where(like).order_by(job.c.id).with_for_update()).scalars()
    return any(row == variables for row in rows)


def get(connection: sa.Connection, job_id: str, project_id: str | None = None) -> Job:
    """The job; with `project_id`, only one of that project. Raises NotFoundError."""
    return _views(connection, [_row(connection, job_id, project_id)])[0]


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
    for column, value in ((job.c.project_id, project_id), (job.c.kind, kind), (job.c.state, state)):
        if value is not None:
            query = query.where(column == value)
    if instance_uuid is not None:
        query = query.where(
            job.c.id.in_(sa.select(job_instance.c.job_id).where(job_instance.c.instance_uuid == instance_uuid))
        )
    if marker is not None:
        last = _row(connection, marker, project_id)
        query = query.where(sa.tuple_(job.c.created_at, job.c.id) < (last.created_at, last.id))
    return _views(connection, connection.execute(query).all())


def cancel(connection: sa.Connection, job_id: str, project_id: str | None = None) -> Job:
    """End a job. One that waits is cancelled at once; one that runs, as soon as its processes are gone.

    Its instances are released: what was being built ends in ERROR. Raises NotFoundError, and ConflictError for a job
    that has ended.
    """
    row = _row(connection, job_id, project_id)
    now = time.time()
    waiting = connection.execute(
        sa.update(job)
        .where(job.c.id == job_id, job.c.state == QUEUED)
        .values(state=CANCELLED, cancel_requested=True, finished_at=now, message="cancelled before it began")
    ).rowcount
    if waiting:
        of_job = _instances(connection, [job_id]).get(job_id, [])
        settling.settle(connection, row.kind, of_job, "the job was cancelled")
        settling.settle_volumes(connection, row.kind, row.variables, "the job was cancelled")
        if row.kind == settling.LAUNCH:  # it may have been in a run that was cut off
            enqueue_cleaning(connection, settling.hosts_tried(connection, of_job))
    elif not connection.execute(
        sa.update(job).where(job.c.id == job_id, job.c.state == RUNNING).values(cancel_requested=True)
    ).rowcount:
        raise ConflictError(f"job {job_id} has ended ({_row(connection, job_id).state}): there is nothing to cancel")
    wake.ring(connection)
    return get(connection, job_id)


def retry(
    connection: sa.Connection,
    job_id: str,
    *,
    project_id: str | None = None,
    user_id: str | None = None,
    request_id: str | None = None,
    keep_timeout: bool = True,
) -> Job:
    """Ask once more for what a job that failed or was cancelled did not do: a new job, for the instances that are left.

    Builds that ended in ERROR are begun again. Unless `keep_timeout`, it has no longer than its kind. Raises
    NotFoundError; ConflictError for a job that has not ended, or succeeded, or whose instances are gone, as they should
    be, or otherwise at work.
    """
    row = _row(connection, job_id, project_id)
    if row.state not in (FAILED, CANCELLED):
        raise ConflictError(f"job {job_id} is {row.state}: only one that failed or was cancelled can be tried again")
    of_job = _instances(connection, [job_id]).get(job_id, [])
    request_id = request_id or actions.new_request_id()
    longest = row.timeout_seconds if keep_timeout else min(row.timeout_seconds, kind_of(row.kind).timeout)
    left = settling.begin_again(connection, row.kind, of_job, request_id)
    if of_job and not left:
        raise ConflictError(f"job {job_id} has nothing left to do: its instances are as they should be, or gone")
    return enqueue(
        connection,
        row.kind,
        instances=left,
        variables=row.variables,
        project_id=row.project_id,
        user_id=user_id or row.user_id,
        request_id=request_id,
        check_mode=row.check_mode,
        timeout_seconds=longest,
        retry_of=job_id,
    )


def events(
    connection: sa.Connection,
    job_id: str,
    *,
    after: int = 0,
    limit: int = PAGE,
    project_id: str | None = None,
    texts: bool = False,
) -> list[dict[str, t.Any]]:
    """What happened in the job's run so far, after the event with the number `after`, oldest first.

    A run may serve jobs of several projects. What its tasks said is then shown with `texts` (to administrators) only.
    """
    row = _row(connection, job_id, project_id)
    if row.run_id is None:
        return []
    return job_events.read(connection, row.run_id, after, min(limit, PAGE), texts)


def enqueue_cleaning(connection: sa.Connection, hosts: t.Collection[str]) -> None:
    """Have what a run that was cut off left on these hosts removed."""
    limit = ",".join(sorted(hosts))
    same = sa.select(job.c.variables).where(job.c.state == QUEUED, job.c.kind == "reconcile")
    if hosts and not any(one.get("limit") == limit for one in connection.execute(same).scalars()):
        enqueue(connection, "reconcile", variables={"limit": limit})


# --- Inside ---------------------------------------------------------------------------------------------------------


def _check(
    one: Kind,
    instances: t.Sequence[str],
    variables: t.Mapping[str, t.Any],
    idempotency_key: str | None,
    timeout_seconds: int | None,
) -> None:
    one.check(variables)
    if one.instances == "required" and not instances:
        raise BadRequestError(f"job '{one.name}' needs instances")
    if one.instances == "none" and instances:
        raise BadRequestError(f"job '{one.name}' takes no instances")
    if len(json.dumps(variables)) > MAX_VARIABLES:
        raise BadRequestError(f"job '{one.name}': its variables are longer than {MAX_VARIABLES} bytes")
    if idempotency_key is not None and not (
        1 <= len(idempotency_key) <= MAX_KEY and idempotency_key.isascii() and idempotency_key.isprintable()
    ):
        raise BadRequestError(f"idempotency key: give 1 to {MAX_KEY} printable ASCII characters")
    if timeout_seconds is not None and not 1 <= timeout_seconds <= MAX_TIMEOUT:
        raise BadRequestError(f"timeout {timeout_seconds}: give 1 to {MAX_TIMEOUT} seconds")


def _check_open(connection: sa.Connection, kind: str, project_id: str) -> None:
    """Raise QuotaError if one more job of `kind` is more than the project may have open."""
    freeing = kind in FREEING
    of_this_sort = job.c.kind.in_(FREEING) if freeing else job.c.kind.not_in(FREEING)
    # not job.project_id itself: SQLite would go over all that the project ever asked for, and not over the open ones
    mine = sa.func.coalesce(job.c.project_id, "") == project_id
    query = sa.select(sa.func.count()).select_from(job).where(OPEN, mine, of_this_sort)
    check_quota(connection, project_id, "jobs", connection.execute(query).scalar_one() + 1)


def _row(connection: sa.Connection, job_id: str, project_id: str | None = None) -> t.Any:
    query = sa.select(job).where(job.c.id == job_id)
    if project_id is not None:
        query = query.where(job.c.project_id == project_id)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError(f"there is no job {job_id[:70]}")
    return row


def _of_key(connection: sa.Connection, row: Job) -> Job | None:
    """The job that is known under a new one's key. Raises ConflictError when the key stood for another request."""
    key = row["idempotency_key"]
    known = connection.execute(
        sa.select(job).where(job.c.project_id.is_not_distinct_from(row["project_id"]), job.c.idempotency_key == key)
    ).first()
    if known is None:
        return None
    if known.request_hash != row["request_hash"]:
        raise ConflictError(f"the idempotency key '{key}' was used for another request: use a new one")
    return _views(connection, [known])[0]


def _instances(connection: sa.Connection, job_ids: t.Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    query = (
        sa.select(job_instance.c.job_id, job_instance.c.instance_uuid)
        .outerjoin(instance, instance.c.uuid == job_instance.c.instance_uuid)
        .where(job_instance.c.job_id.in_(list(job_ids)))
        .order_by(instance.c.id)
    )
    for row in connection.execute(query):
        found.setdefault(row.job_id, []).append(row.instance_uuid)
    return found


_FIELDS = (
    "id", "kind", "state", "project_id", "user_id", "request_id", "variables", "check_mode", "cancel_requested",
    "timeout_seconds", "idempotency_key", "retry_of", "message", "result", "run_id", "created_at",
    "started_at", "finished_at",
)  # fmt: skip


def _views(connection: sa.Connection, rows: t.Sequence[t.Any]) -> list[Job]:
    instances = _instances(connection, [row.id for row in rows])
    return [
        {**{name: getattr(row, name) for name in _FIELDS}, "instances": instances.get(row.id, [])} for row in rows
    ]
