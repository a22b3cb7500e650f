# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs: asked for, looked at, followed, cancelled, tried again."""

from __future__ import annotations

import re
import typing as t
import urllib.parse

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ..jobs import kinds, queue
from ..web import policy
from ..web.context import current, request_id
from ..web.errors import BadRequestError, ForbiddenError
from ..web.host_names import Veil, veil
from ..web.ledger import reading_ledger, writing_ledger
from ..web.validation import check
from . import acting, schemas, streams, views
from .operations import operation

KEY_HEADER, SEEN_HEADER = "Idempotency-Key", "Last-Event-ID"


@operation("GET", "/jobs/kinds", "jobs:read", "Which jobs there are, and what variables each takes", {200: "Kinds"})
def list_kinds() -> t.Any:
    return {
        "kinds": [
            {
                "kind": kind.name,
                "description": kind.description,
                "role": policy.POLICY[kind.operation],
                "instances": "required" if kind.instances == "required" else "none",
                "variables": kind.schema,
            }
            for kind in kinds.KINDS.values()
        ]
    }


@operation(
    "POST",
    "/jobs",
    "jobs:create",
    "Ask for a job",
    {202: "Job"},
    description=(
        "It is recorded and carried out soon. With the header Idempotency-Key, the same request sent again is answered "
        "with the same job, and another request with the same key is refused."
    ),
    body=schemas.JOB_REQUEST,
    documented_body=schemas.reference("JobRequest"),
    headers={KEY_HEADER: schemas.KEY},
    answer_headers={"Location": "path of the job"},
    conflicts=True,
)
def create_job(body: dict[str, t.Any]) -> t.Any:
    key = request.headers.get(KEY_HEADER)
    if key is not None and (len(key) > queue.MAX_KEY or not re.fullmatch(schemas.KEY["pattern"], key)):
        raise BadRequestError(f"{KEY_HEADER}: give 1 to {queue.MAX_KEY} printable ASCII characters without spaces")
    policy.check(kinds.kind_of(body["kind"]).operation)
    check(body, schemas.JOB_REQUESTS[body["kind"]])
    with writing_ledger() as connection:
        return _accepted(connection, acting.trigger(connection, current(), body, request_id(), key))


@operation("GET", "/jobs", "jobs:read", "Jobs of the project, newest first", {200: "Jobs"}, query=schemas.JOBS_QUERY)
def list_jobs(query: dict[str, t.Any]) -> t.Any:
    caller = current()
    everywhere = query.get("all_projects", False)
    if everywhere:
        policy.check("jobs:read:all_projects")
    limit = query.get("limit", schemas.PAGE)
    with reading_ledger() as connection:
        jobs = queue.list_jobs(
            connection,
            project_id=None if everywhere else caller.project,
            kind=query.get("kind"),
            state=query.get("state"),
            instance_uuid=query.get("instance"),
            limit=limit,
            marker=query.get("marker"),
        )
        hidden = veil(connection, caller.reach)
        shown = [_shown(job, hidden) for job in jobs]
    following = None
    if len(jobs) == limit:
        asked = {name: value for name, value in request.args.items() if name != "marker"}
        following = "/v1/jobs?" + urllib.parse.urlencode({**asked, "marker": jobs[-1]["id"]})
    return {"jobs": shown, "next": following}


@operation("GET", "/jobs/{job_id}", "jobs:read", "A job", {200: "Job"})
def show_job(job_id: str) -> t.Any:
    with reading_ledger() as connection:
        job = queue.get(connection, job_id, current().reach)
        return {"job": _shown(job, veil(connection, current().reach))}


@operation(
    "GET",
    "/jobs/{job_id}/events",
    "jobs:read",
    "What happened in a job so far, or as it happens",
    {200: "Events"},
    description=(
        "With `Accept: text/event-stream`, a stream of server-sent events: `event` (as in the JSON), `job` when its "
        "state changes, and `end`, with which it closes. It may also close earlier, and is resumed with Last-Event-ID. "
        "What tasks said (`text`) is shown to administrators."
    ),
    query=schemas.EVENTS_QUERY,
    headers={SEEN_HEADER: {"type": "string", "pattern": "^[0-9]{1,15}$"}},
    stream=True,
)
def list_events(job_id: str, query: dict[str, t.Any]) -> t.Any:
    caller = current()
    seen = seen_before()
    after = query.get("after", 0) if seen is None else seen
    limit = query.get("limit", schemas.LARGEST_PAGE)
    with reading_ledger() as connection:
        job = queue.get(connection, job_id, caller.reach)
        wanted = request.accept_mimetypes.best_match(["application/json", streams.CONTENT_TYPE])
        if wanted == streams.CONTENT_TYPE:
            shown = []
        else:
            events = queue.events(connection, job_id, after=after, limit=limit, texts=caller.is_admin)
            hidden = veil(connection, caller.reach)
            shown = [views.event(event, hidden) for event in events]
    if wanted == streams.CONTENT_TYPE:
        return streams.respond(job_id, streams.reader(caller, request.headers["X-Auth-Token"]), after)
    following = None
    if shown and (len(shown) == limit or job["state"] not in queue.FINAL):
        following = f"/v1/jobs/{job['id']}/events?after={shown[-1]['seq']}&limit={limit}"
    return {"events": shown, "next": following}


@operation(
    "POST",
    "/jobs/{job_id}/cancel",
    "jobs:change",
    "End a job",
    {202: "Job"},
    description="One that waits is cancelled at once; one that runs, as soon as its processes are gone.",
    answer_headers={"Location": "path of the job"},
    conflicts=True,
)
def cancel_job(job_id: str) -> t.Any:
    with writing_ledger() as connection:
        may_touch(queue.get(connection, job_id, current().reach))
        return _accepted(connection, queue.cancel(connection, job_id, current().reach))


@operation(
    "POST",
    "/jobs/{job_id}/retry",
    "jobs:change",
    "Ask once more for what a job did not do",
    {202: "Job"},
    answer_headers={"Location": "path of the new job"},
    conflicts=True,
)
def retry_job(job_id: str) -> t.Any:
    caller = current()
    with writing_ledger() as connection:
        may_touch(queue.get(connection, job_id, caller.reach))
        job = queue.retry(
            connection,
            job_id,
            project_id=caller.reach,
            user_id=caller.user_id,
            request_id=request_id(),
            keep_timeout=caller.is_admin,
        )
        return _accepted(connection, job)


def seen_before() -> int | None:
    """The last event that a client which comes back has seen. Raises BadRequestError."""
    seen = request.headers.get(SEEN_HEADER)
    if seen is None:
        return None
    if not re.fullmatch("[0-9]{1,15}", seen):
        raise BadRequestError(f"{SEEN_HEADER}: give the number of an event")
    return int(seen)


def may_touch(job: t.Mapping[str, t.Any]) -> None:
    """Who may not ask for a kind of job may not end or repeat one. Raises ForbiddenError."""
    if job["kind"] in kinds.KINDS:
        policy.check(kinds.KINDS[job["kind"]].operation)
    elif not current().is_admin:
        raise ForbiddenError(f"Policy doesn't allow jobs of the kind {job['kind']}.")


def _shown(job: t.Mapping[str, t.Any], hidden: Veil) -> dict[str, t.Any]:
    return views.job(job, hidden, policy.may(current(), "compute:servers:console_output"))


def _accepted(connection: Connection, job: t.Mapping[str, t.Any]) -> t.Any:
    return {"job": _shown(job, veil(connection, current().reach))}, 202, {"Location": f"/v1/jobs/{job['id']}"}
