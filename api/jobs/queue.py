# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The way in: jobs are enqueued, looked at, cancelled and tried again here, in the caller's own ledger transaction.

A job is a row beside the records that it is about: either both are there, or neither. Workers take it from there.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import typing as t
import uuid

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_outcomes, job_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs.waking import notify
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.projects import project_name
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records

from ..web.errors import BadRequestError
from .kind import Kind
from .kinds import kind_of

MAX_TIMEOUT = 24 * 3600  # seconds
MAX_KEY = 255
MAX_VARIABLES = 256 * 1024  # bytes of JSON


def enqueue(
    connection: Connection,
    kind: str,
    *,
    instances: t.Collection[str] = (),
    variables: JsonMapping | None = None,
    project_id: str | None = None,
    user_id: str | None = None,
    request_id: str | None = None,
    check_mode: bool = False,
    idempotency_key: str | None = None,
    timeout_seconds: int | None = None,
    retry_of: str | None = None,
    job_id: str | None = None,
) -> job_records.Job:
    """Record a job of `kind` about `instances` (UUIDs), in the transaction of what it will carry out.

    It begins once that is committed. The instances are in the state that the playbook expects (an action that was
    begun, a build that was recorded), and `request_id` is that of their instance action. The same `idempotency_key` of
    a project with the same request is the same job; a new one has the id `job_id` (None: any). Where a playbook acts
    for a project, it is `project_id`'s.

    Raises BadRequestError for variables that the kind does not take, NotFoundError for a kind that there is none of,
    ConflictError for a key that stands for another request, and QuotaError when the project has too many open jobs.
    """
    of_kind = kind_of(kind)
    variables = dict(variables or {})
    if of_kind.project and project_id is not None and not (of_kind.merge and instances):
        variables["project"] = project_name(connection, project_id)  # whatever was asked for
    uuids = list(dict.fromkeys(instances))
    _check(of_kind, uuids, variables, idempotency_key, timeout_seconds)
    request = json.dumps([kind, sorted(uuids), variables, check_mode], sort_keys=True)
    row = {
        "id": job_id or str(uuid.uuid4()),
        "kind": kind,
        "project_id": project_id,
        "user_id": user_id,
        "request_id": request_id,
        "variables": variables,
        "check_mode": check_mode,
        "state": job_records.QUEUED,
        "idempotency_key": idempotency_key,
        "request_hash": hashlib.sha256(request.encode()).hexdigest() if idempotency_key is not None else None,
        "retry_of": retry_of,
        "timeout_seconds": timeout_seconds or of_kind.timeout,
        "created_at": clock.now(connection),
    }
    return job_rows.add(connection, row, uuids)


def cancel(connection: Connection, job_id: str, project_id: str | None = None) -> job_records.Job:
    """End a job. One that waits is cancelled at once; one that runs, as soon as its processes are gone.

    Its instances are released, and builds end in ERROR. Raises NotFoundError, ConflictError for a job that has ended.
    """
    row = job_records.row_of(connection, job_id, project_id)
    if job_rows.cancel_waiting(connection, job_id):
        of_job = job_records.instances_of(connection, [job_id])[job_id]
        job_outcomes.settle(connection, row.kind, of_job, "the job was cancelled")
        job_outcomes.settle_volumes(connection, row.kind, row.variables, "the job was cancelled")
        if row.kind == job_outcomes.LAUNCH:  # it may have been in a run that was cut off
            enqueue_cleaning(connection, job_outcomes.hosts_tried(connection, of_job))
    elif not job_rows.ask_to_cancel(connection, job_id):
        state = job_records.row_of(connection, job_id).state
        raise ConflictError(f"job {job_id} has ended ({state}): there is nothing to cancel")
    notify(connection)
    return job_records.get(connection, job_id)


def retry(call: Call, job_id: str, *, project_id: str | None = None, keep_timeout: bool = True) -> job_records.Job:
    """Ask once more for what a job that failed or was cancelled did not do: a new job, for the instances that are left.

    Builds that ended in ERROR are begun again, and actions, as the caller may. Unless `keep_timeout`, it has no longer
    than its kind. Raises NotFoundError; ConflictError for a job that has not ended, or succeeded, or whose instances
    are gone, as they should be, or otherwise at work; and as actions.begin_again().
    """
    connection = call.connection
    row = job_records.row_of(connection, job_id, project_id)
    if row.state not in (job_records.FAILED, job_records.CANCELLED):
        raise ConflictError(f"job {job_id} is {row.state}: only one that failed or was cancelled can be tried again")
    of_job = job_records.instances_of(connection, [job_id])[job_id]
    longest = row.timeout_seconds if keep_timeout else min(row.timeout_seconds, kind_of(row.kind).timeout)
    if row.kind in actions.NAMES:
        begun_here = dataclasses.replace(call, enqueue=lambda *_job: "")
        left = actions.begin_again(begun_here, row.kind, of_job)
    else:
        left = job_outcomes.begin_again(connection, row.kind, of_job, call.request_id)
    if of_job and not left:
        raise ConflictError(f"job {job_id} has nothing left to do: its instances are as they should be, or gone")
    return enqueue(
        connection,
        row.kind,
        instances=left,
        variables=row.variables,
        project_id=row.project_id,
        user_id=call.user_id or row.user_id,
        request_id=call.request_id,
        check_mode=row.check_mode,
        timeout_seconds=longest,
        retry_of=job_id,
    )


def enqueue_cleaning(connection: Connection, hosts: t.Collection[str]) -> None:
    """Have what a run that was cut off left on these hosts removed."""
    limit = ",".join(sorted(hosts))
    if hosts and not any(known.get("limit") == limit for known in job_rows.waiting_variables(connection, "reconcile")):
        enqueue(connection, "reconcile", variables={"limit": limit})


# --- Inside ---------------------------------------------------------------------------------------------------------


def _check(
    kind: Kind, instances: t.Sequence[str], variables: JsonMapping, key: str | None, timeout: int | None
) -> None:
    kind.check(variables)
    if kind.instances == "required" and not instances:
        raise BadRequestError(f"job '{kind.name}' needs instances")
    if kind.instances == "none" and instances:
        raise BadRequestError(f"job '{kind.name}' takes no instances")
    if len(json.dumps(variables)) > MAX_VARIABLES:
        raise BadRequestError(f"job '{kind.name}': its variables are longer than {MAX_VARIABLES} bytes")
    if key is not None and not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise BadRequestError(f"idempotency key: give 1 to {MAX_KEY} printable ASCII characters")
    if timeout is not None and not 1 <= timeout <= MAX_TIMEOUT:
        raise BadRequestError(f"timeout {timeout}: give 1 to {MAX_TIMEOUT} seconds")
