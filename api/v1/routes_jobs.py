# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs: asked for, looked at, followed, cancelled, tried again."""

from __future__ import annotations

import re
import urllib.parse

from flask import request
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records

from ..jobs import kinds, queue
from ..web import policy
from ..web.context import current
from ..web.errors import BadRequestError
from ..web.host_names import HostNameMask, host_name_mask
from ..web.ledger import reading_ledger, writing_ledger
from ..web.services import reads, writes
from ..web.validation import check
from . import acting, schemas, streams, views
from .operations import Operation

KEY_HEADER = "Idempotency-Key"


@Operation("GET", "/jobs/kinds", "jobs:read", "Which jobs there are, and what variables each takes", {200: "Kinds"})
def list_kinds() -> ResponseReturnValue:
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


@Operation(
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
def create_job(body: JsonObject) -> ResponseReturnValue:
    key = request.headers.get(KEY_HEADER)
    if key is not None and (len(key) > queue.MAX_KEY or not re.fullmatch(schemas.KEY["pattern"], key)):
        raise BadRequestError(f"{KEY_HEADER}: give 1 to {queue.MAX_KEY} printable ASCII characters without spaces")
    policy.check(kinds.kind_of(body["kind"]).operation)
    check(body, schemas.JOB_REQUESTS[body["kind"]])
    with writing_ledger() as connection:
        return _accepted(connection, acting.trigger(connection, body, key))


@Operation(
    "GET",
    "/jobs",
    "jobs:read",
    "Jobs of the project, newest first",
    {200: "Jobs"},
    query=schemas.JOBS_QUERY,
    ledger=reads,
)
def list_jobs(connection: Connection, query: JsonObject) -> ResponseReturnValue:
    caller = current()
    everywhere = query.get("all_projects", False)
    if everywhere:
        policy.check("jobs:read:all_projects")
    limit = query.get("limit", schemas.PAGE)
    jobs = job_records.list_jobs(
        connection,
        project_id=None if everywhere else caller.project,
        kind=query.get("kind"),
        state=query.get("state"),
        instance_uuid=query.get("instance"),
        limit=limit,
        marker=query.get("marker"),
    )
    hidden = host_name_mask(connection, caller.reach)
    shown = [_shown(job, hidden) for job in jobs]
    following = None
    if len(jobs) == limit:
        query_string = urllib.parse.urlencode({**request.args.to_dict(), "marker": jobs[-1]["id"]})
        following = f"/v1/jobs?{query_string}"
    return {"jobs": shown, "next": following}


@Operation("GET", "/jobs/{job_id}", "jobs:read", "A job", {200: "Job"}, ledger=reads)
def show_job(connection: Connection, job_id: str) -> ResponseReturnValue:
    job = job_records.get(connection, job_id, current().reach)
    return {"job": _shown(job, host_name_mask(connection, current().reach))}


@Operation(
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
    headers={streams.SEEN_HEADER: {"type": "string", "pattern": "^[0-9]{1,15}$"}},
    stream=True,
)
def list_events(job_id: str, query: JsonObject) -> ResponseReturnValue:
    caller = current()
    seen = streams.seen_before()
    after = query.get("after", 0) if seen is None else seen
    limit = query.get("limit", schemas.LARGEST_PAGE)
    with reading_ledger() as connection:
        job = job_records.get(connection, job_id, caller.reach)
        content_type = request.accept_mimetypes.best_match(["application/json", streams.CONTENT_TYPE])
        if content_type != streams.CONTENT_TYPE:
            events = job_records.events_of(
                connection, job_id, after=after, limit=limit, texts=policy.allowed("jobs:read:texts")
            )
            hidden = host_name_mask(connection, caller.reach)
            shown = [views.event(event, hidden) for event in events]
    if content_type == streams.CONTENT_TYPE:  # which holds no transaction while it lasts
        return streams.respond(job_id, streams.reader(caller, request.headers["X-Auth-Token"]), after)
    following = None
    if shown and (len(shown) == limit or job["state"] not in job_records.FINAL):
        following = f"/v1/jobs/{job['id']}/events?after={shown[-1]['seq']}&limit={limit}"
    return {"events": shown, "next": following}


@Operation(
    "POST",
    "/jobs/{job_id}/cancel",
    "jobs:change",
    "End a job",
    {202: "Job"},
    description="One that waits is cancelled at once; one that runs, as soon as its processes are gone.",
    answer_headers={"Location": "path of the job"},
    conflicts=True,
    ledger=writes,
)
def cancel_job(connection: Connection, job_id: str) -> ResponseReturnValue:
    return _accepted(connection, acting.cancel(connection, job_id))


@Operation(
    "POST",
    "/jobs/{job_id}/retry",
    "jobs:change",
    "Ask once more for what a job did not do",
    {202: "Job"},
    answer_headers={"Location": "path of the new job"},
    conflicts=True,
    ledger=writes,
)
def retry_job(connection: Connection, job_id: str) -> ResponseReturnValue:
    return _accepted(connection, acting.retry(connection, job_id))


def _shown(job: job_records.Job, hidden: HostNameMask) -> JsonObject:
    return views.job(job, hidden, policy.may(current(), "compute:servers:console_output"))


def _accepted(connection: Connection, job: job_records.Job) -> ResponseReturnValue:
    return {"job": _shown(job, host_name_mask(connection, current().reach))}, 202, {"Location": f"/v1/jobs/{job['id']}"}
