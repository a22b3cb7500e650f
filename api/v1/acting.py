# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking for a job: what it is about is marked, and the job recorded, in one transaction."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import (
    api_created,
    reimage,
    server_actions,
    server_choices,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.server_listing import is_locked
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance

from ..jobs import kinds, queue
from ..web import policy
from ..web.context import Caller
from ..web.errors import ForbiddenError, as_bad_request


def trigger(
    connection: Connection, caller: Caller, asked: JsonMapping, request_id: str, key: str | None = None
) -> queue.Job:
    """The job that `asked` (schemas.JOB_REQUESTS) describes; the one of before, if `key` was used for it.

    Raises ForbiddenError, NotFoundError for instances of others and flavors that the project does not see, and
    ConflictError for instances in a state that does not allow it.
    """
    kind = kinds.kind_of(asked["kind"])
    policy.check(kind.operation)
    instances, variables = list(asked.get("instances", ())), dict(asked.get("variables", {}))
    check_mode = bool(asked.get("check_mode", False))
    if {"limit", *kind.hosts} & set(variables):
        policy.check("jobs:choose_hosts")
    server_choices.check(connection, caller.project, variables.get("servers", ()), caller.is_admin)
    timeout = asked.get("timeout_seconds")
    if timeout is not None and timeout > kind.timeout and not caller.is_admin:
        raise ForbiddenError(
            f"job '{kind.name}': it has {kind.timeout} seconds: only administrators give it {timeout} (timeout_seconds)"
        )
    known = None if key is None else job_rows.of_key(connection, caller.project, key)
    job = queue.enqueue(
        connection,
        kind.name,
        instances=instances,
        variables=variables,
        project_id=caller.project,
        user_id=caller.user_id,
        request_id=request_id,
        check_mode=check_mode,
        idempotency_key=key,
        timeout_seconds=timeout,
    )
    if known is None and instances:
        found = own(connection, caller, instances)
        if kind.name in reimage.ACTIONS:
            asked_for = {"action": kind.name, "request": variables}
            who = {"user_id": caller.user_id, "ignore_lock": caller.is_admin}
            with as_bad_request():
                reimage.begin(connection, asked_for, found, request_id, **who)
        elif kind.name in server_actions.NAMES:
            details = {"type": variables["type"].upper()} if "type" in variables else None
            server_actions.begin(
                connection,
                kind.name,
                instances,
                request_id=request_id,
                user_id=caller.user_id,
                details=details,
                ignore_lock=caller.is_admin,
            )
    return job


def delete(connection: Connection, caller: Caller, uuid: str, request_id: str) -> queue.Job:
    """The job that takes an instance away. Raises NotFoundError, and ConflictError for one that is locked."""
    (instance,) = own(connection, caller, [uuid])
    if is_locked(connection, uuid) and not caller.is_admin:
        raise ConflictError(f"Instance {uuid} is locked")
    api_created.mark(connection, [instance], request_id)
    return queue.enqueue(
        connection,
        "terminate",
        instances=[uuid],
        project_id=instance["project"]["id"],
        user_id=caller.user_id,
        request_id=request_id,
    )


def cancel(connection: Connection, caller: Caller, job_id: str, _request_id: str) -> queue.Job:
    """End a job. Raises as queue.cancel(), and ForbiddenError."""
    _refuse_others(queue.get(connection, job_id, caller.reach), caller)
    return queue.cancel(connection, job_id, caller.reach)


def retry(connection: Connection, caller: Caller, job_id: str, request_id: str) -> queue.Job:
    """Ask once more for what a job did not do. Raises as queue.retry(), and ForbiddenError."""
    _refuse_others(queue.get(connection, job_id, caller.reach), caller)
    return queue.retry(
        connection,
        job_id,
        project_id=caller.reach,
        user_id=caller.user_id,
        request_id=request_id,
        keep_timeout=caller.is_admin,
    )


def _refuse_others(job: queue.Job, caller: Caller) -> None:
    """Refuse whoever may not ask for such a job: they may not end or repeat it either. Raises ForbiddenError."""
    if job["kind"] in kinds.KINDS:
        policy.check(kinds.KINDS[job["kind"]].operation)
    elif not caller.is_admin:
        raise ForbiddenError(f"Policy doesn't allow jobs of the kind {job['kind']}.")


def own(connection: Connection, caller: Caller, uuids: t.Sequence[str]) -> list[Instance]:
    """These instances, if all of them are the caller's project's; administrators have all. Raises NotFoundError."""
    found = instances_by(connection, uuids=uuids, project_id=caller.reach)
    missing = set(uuids) - {instance["uuid"] for instance in found}
    if missing:
        raise NotFoundError(f"Instance {min(missing)[:255]} could not be found.")
    return found
