# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking for a job: what it is about is marked, and the job recorded, in one transaction."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import (
    api_created,
    reimage,
    server_actions,
    server_choices,
    server_requests,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import floating_ips
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.placement import hints
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance

from ..jobs import kinds, queue
from ..web import policy
from ..web.context import current, request_id, signature
from ..web.errors import ForbiddenError, as_bad_request
from ..work.servers import asker


def trigger(connection: Connection, job_request: JsonMapping, key: str | None = None) -> job_rows.Job:
    """The job that `job_request` (schemas.JOB_REQUESTS) describes; the one of before, if `key` was used for it. Raises
    ForbiddenError, NotFoundError for instances of others and flavors that the project does not see, and ConflictError
    for instances in a state that does not allow it."""
    caller = current()
    kind = kinds.kind_of(job_request["kind"])
    policy.check(kind.operation)
    instances, variables = list(job_request.get("instances", ())), dict(job_request.get("variables", {}))
    if {"limit", *kind.hosts} & set(variables):
        policy.check("jobs:choose_hosts")
    check_servers(connection, variables.get("servers", ()))
    if kind.name == "floating_ips":
        _check_addresses(connection, variables)
    timeout = job_request.get("timeout_seconds")
    if timeout is not None and timeout > kind.timeout and not policy.allowed("jobs:choose_timeout"):
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
        check_mode=bool(job_request.get("check_mode", False)),
        idempotency_key=key,
        timeout_seconds=timeout,
        **signature(),
    )
    if known is None and instances:
        instance_rows = own(connection, instances)
        if kind.name in reimage.ACTIONS:
            with as_bad_request():
                reimage.begin(connection, {"action": kind.name, "request": variables}, instance_rows, **asker())
        elif kind.name in server_actions.NAMES:
            details = {"type": variables["type"].upper()} if "type" in variables else None
            server_actions.begin(connection, kind.name, instances, details=details, **asker())
    if known is None and kind.name == "terminate" and not job["check_mode"]:
        named = _named(connection, variables.get("servers", ()))
        _mark_as_going(connection, [*named, *(own(connection, instances) if instances else ())])
    return job


def check_servers(connection: Connection, servers: t.Sequence[JsonMapping]) -> None:
    """Raise for what these servers, as module `server` takes them, name and the caller may not: ForbiddenError
    and NotFoundError."""
    caller = current()
    for server in servers:
        policy.check_zone(server.get("availability_zone"))
        try:
            requested = hints.checked(str(server["name"]), server)
        except NovaliteError:
            continue  # the operation says what they cannot be, as of all else
        policy.check_hints(str(server["name"]), requested)
    server_choices.check(connection, caller.project, servers, policy.allowed("compute:servers:create:private"))


def _named(connection: Connection, servers: t.Sequence[JsonMapping]) -> list[Instance]:
    """The project's servers that these entries, of a name and perhaps a count, stand for; none where a name cannot be
    one, as the operation says."""
    try:
        names = server_requests.expand_names(servers)
    except NovaliteError:
        return []
    return instances_by(connection, names=names, project_id=current().project)


def _check_addresses(connection: Connection, variables: JsonMapping) -> None:
    """Raise ForbiddenError for floating IPs that the caller may not choose."""
    for item in (*variables.get("floating_ips", ()), variables):
        try:
            chosen = "address" in item and floating_ips.is_chosen(connection, current().project, item["address"])
        except NovaliteError:
            continue  # no address: the operation says so
        if chosen:
            policy.check("network:floating_ips:choose")


def delete(connection: Connection, uuid: str) -> job_rows.Job:
    """The job that takes an instance away. Raises NotFoundError, and ConflictError for one that is locked."""
    (instance,) = own(connection, [uuid])
    _mark_as_going(connection, [instance])
    return queue.enqueue(connection, "terminate", instances=[uuid], project_id=instance["project"]["id"], **signature())


def _mark_as_going(connection: Connection, instances: t.Sequence[Instance]) -> None:
    """Mark instances as being deleted. Raises ConflictError for one that is locked, unless an administrator asks."""
    caller = current()
    api_created.mark(
        connection,
        instances,
        request_id(),
        user_id=caller.user_id,
        project_id=caller.project_id,
        by_admin=policy.overrides_lock(),
    )


def cancel(connection: Connection, job_id: str) -> job_rows.Job:
    """End a job. Raises as queue.cancel(), and ForbiddenError."""
    _refuse_others(connection, job_id)
    return queue.cancel(connection, job_id, current().reach)


def retry(connection: Connection, job_id: str) -> job_rows.Job:
    """Ask once more for what a job did not do. Raises as queue.retry(), and ForbiddenError."""
    _refuse_others(connection, job_id)
    caller = current()
    return queue.retry(
        connection, job_id, project_id=caller.reach, keep_timeout=policy.allowed("jobs:choose_timeout"), **signature()
    )


def _refuse_others(connection: Connection, job_id: str) -> None:
    """Refuse whoever may not ask for such a job: they may not end or repeat it either. Raises ForbiddenError."""
    job = job_rows.get(connection, job_id, current().reach)
    if job["kind"] in kinds.KINDS:
        policy.check(kinds.KINDS[job["kind"]].operation)
    elif not policy.allowed("jobs:unknown_kinds"):
        raise ForbiddenError(f"Policy doesn't allow jobs of the kind {job['kind']}.")


def own(connection: Connection, uuids: t.Sequence[str]) -> list[Instance]:
    """Return these instances, if all are the caller's project's; administrators have all. Raises NotFoundError."""
    instances = instances_by(connection, uuids=uuids, project_id=current().reach)
    missing = set(uuids) - {instance["uuid"] for instance in instances}
    if missing:
        raise NotFoundError(f"Instance {min(missing)[:255]} could not be found.")
    return instances
