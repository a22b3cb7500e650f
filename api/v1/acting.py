# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asking for a job: what it is about is marked, and the job recorded, in one transaction."""

from __future__ import annotations

import dataclasses
import typing as t
import uuid

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers as operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import floating_ips
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.instance_rows import locked_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute.views import instances_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.module_utils._model.instance import Instance
from ansible_collections.novalite.cloud.plugins.module_utils._rules import server_requests

from ..jobs import kinds, queue
from ..jobs.kind import Kind
from ..web import policy
from ..web.context import current, signature
from ..web.errors import ForbiddenError, as_bad_request
from ..work.calls import calling

TERMINATE = "terminate"
# Variables of jobs that the cloud itself makes for a change of networks: who caused one may try it again
_OF_CHANGES = frozenset(["project", "network_hosts", "holders"])


def trigger(connection: Connection, job_request: JsonMapping, key: str | None = None) -> job_records.Job:
    """The job that `job_request` (schemas.JOB_REQUESTS) describes; the one of before, if `key` was used for it. Raises
    ForbiddenError, NotFoundError for instances of others and flavors that the project does not see, and ConflictError
    for instances in a state that does not allow it."""
    caller = current()
    kind = kinds.kind_of(job_request["kind"])
    instances, variables = list(job_request.get("instances", ())), dict(job_request.get("variables", {}))
    _check_choices(calling(connection), kind, variables)
    timeout = job_request.get("timeout_seconds")
    if timeout is not None and timeout > kind.timeout and not policy.allowed("jobs:choose_timeout"):
        raise ForbiddenError(
            f"job '{kind.name}': it has {kind.timeout} seconds: only administrators give it {timeout} (timeout_seconds)"
        )
    known = None if key is None else job_records.of_key(connection, caller.project, key)
    if kind.name == TERMINATE and known is not None:
        instances = job_records.instances_of(connection, [known.id])[known.id]
    elif kind.name == TERMINATE:
        instances = _to_delete(calling(connection), variables, bool(job_request.get("check_mode", False)))
    number = str(uuid.uuid4())
    job = queue.enqueue(
        connection,
        kind.name,
        job_id=number,
        instances=instances,
        variables=variables,
        project_id=caller.project,
        check_mode=bool(job_request.get("check_mode", False)),
        idempotency_key=key,
        timeout_seconds=timeout,
        **signature(),
    )
    if job["id"] == number:  # the same request may have come at the same time
        _begin(connection, kind.name, job, variables, instances)
    return job


def _check_choices(call: Call, kind: Kind, variables: JsonMapping) -> None:
    """Refuse what the caller may not choose, whether they ask for the job or try one again. Raises ForbiddenError, and
    NotFoundError for what the project does not see."""
    call.check(kind.operation)
    if {"limit", *kind.hosts} & set(variables):
        call.check("jobs:choose_hosts")
    operations.check_choices(call, variables.get("servers", ()))
    if kind.name == "floating_ips":
        items = (*variables.get("floating_ips", ()), variables)
        addresses = [item["address"] for item in items if "address" in item]
        floating_ips.check_choices(call, call.project, addresses)


def _begin(
    connection: Connection, name: str, job: job_records.Job, variables: JsonMapping, instances: t.Sequence[str]
) -> None:
    """Begin, with the instances, what the job is there to go on with."""
    call = dataclasses.replace(calling(connection), enqueue=lambda *_job: job["id"])
    named = own(connection, instances) if instances else []
    if named and name in actions.NAMES:
        details = {"type": variables["type"].upper()} if "type" in variables else None
        with as_bad_request():
            actions.begin(call, name, variables, named, details)
    _take(call, job, named)


def _take(call: Call, job: job_records.Job, instances: t.Sequence[Instance]) -> None:
    """Check the servers of a job that is not an action, or mark them, as its playbook takes them for granted. Raises
    StateError, ForbiddenError."""
    if job["kind"] == "cdrom":
        for row in locked_rows(call.connection, [server["uuid"] for server in instances]):
            operations.check_cdrom(call, row)
    if job["kind"] == TERMINATE and not job["check_mode"]:
        operations.mark_deleting(call, instances or _named(call, job["variables"].get("servers", ())))


def _to_delete(call: Call, variables: JsonMapping, check_mode: bool) -> list[str]:
    """Return the UUIDs of the project's servers that the names of a deletion stand for now: one that gets such a name
    before the job begins is another server. Raises NotFoundError if there is none, unless nothing is to be done."""
    servers = variables.get("servers", ())
    uuids = [server["uuid"] for server in _named(call, servers)]
    if servers and not uuids and not check_mode:
        raise NotFoundError(f"Instance {servers[0]['name'][:255]} could not be found.")
    return uuids


def _named(call: Call, servers: t.Sequence[JsonMapping]) -> list[Instance]:
    """The project's servers that these entries, of a name and perhaps a count, stand for; none where a name cannot be
    one, as the operation says."""
    try:
        names = server_requests.expand_names(servers)
    except NovaliteError:
        return []
    return instances_by(call.connection, names=names, project_id=call.project)


def delete(connection: Connection, uuid: str) -> job_records.Job:
    """The job that takes an instance away. Raises NotFoundError, and ConflictError for one that is locked."""
    (instance,) = own(connection, [uuid])
    call = calling(connection)
    operations.mark_deleting(call, [instance])
    return job_records.get(connection, call.enqueue("terminate", [uuid], instance["project"]["id"]))


def cancel(connection: Connection, job_id: str) -> job_records.Job:
    """End a job. Raises as queue.cancel(), and ForbiddenError."""
    _refuse_others(connection, job_id)
    return queue.cancel(connection, job_id, current().reach)


def retry(connection: Connection, job_id: str) -> job_records.Job:
    """Ask once more for what a job did not do, if the caller might ask for it now: another may have asked before, or
    they themselves with more rights. Raises as trigger() and queue.retry()."""
    _refuse_others(connection, job_id)
    caller = current()
    before = job_records.get(connection, job_id, caller.reach)
    call = dataclasses.replace(calling(connection), project_id=before["project_id"] or caller.project_id)
    if before["user_id"] != caller.user_id or not set(before["variables"]) <= _OF_CHANGES:
        _check_choices(call, kinds.kind_of(before["kind"]), before["variables"])
    with as_bad_request():
        job = queue.retry(call, job_id, project_id=caller.reach, keep_timeout=policy.allowed("jobs:choose_timeout"))
    _take(call, job, own(connection, job["instances"]))
    return job


def _refuse_others(connection: Connection, job_id: str) -> None:
    """Refuse whoever may not ask for such a job: they may not end or repeat it either. Raises ForbiddenError."""
    job = job_records.get(connection, job_id, current().reach)
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
