# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs: what there is, and one as it goes on."""

from __future__ import annotations

import typing as t

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping, JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_rows, run_rows

from ..v1 import acting, streams
from ..web import policy
from ..web.context import current
from ..web.errors import BadRequestError
from ..web.host_names import host_name_mask
from ..web.ledger import reading_ledger
from ..web.services import reads, writes
from . import session
from .session import pages

PAGE = 50
EVENTS = 1000  # shown at once


def masked(connection: Connection, jobs: t.Iterable[JsonMapping]) -> list[JsonObject]:
    """Jobs or actions, with messages that name hosts to administrators alone."""
    hidden = host_name_mask(connection, current().reach)
    return [{**event, "message": hidden.over(event["message"])} for event in jobs]


@pages.get("/jobs", "jobs:read", reads)
def list_jobs(connection: Connection) -> str:
    caller = current()
    everywhere = policy.allowed("jobs:read:all_projects") and request.args.get("all_projects") == "true"
    marker = request.args.get("after") or None
    jobs = job_rows.list_jobs(connection, project_id=None if everywhere else caller.project, limit=PAGE, marker=marker)
    jobs = masked(connection, jobs)
    following = jobs[-1]["id"] if len(jobs) == PAGE else None
    return render_template(
        "pages/jobs.html", jobs=jobs, following=following, everywhere=everywhere, later=marker is not None
    )


@pages.get("/jobs/<job_id>", "jobs:read", reads)
def show_job(connection: Connection, job_id: str) -> str:
    caller = current()
    job = job_rows.get(connection, job_id, caller.reach)
    events = run_rows.events_of(
        connection, job_id, limit=EVENTS, project_id=caller.reach, texts=policy.allowed("jobs:read:texts")
    )
    (body,) = masked(connection, [job])
    final, last = job["state"] in job_rows.FINAL, events[-1]["seq"] if events else 0
    shown = worth_a_row(_without_past(events, final), final)
    return render_template("pages/job.html", job=body, events=shown, last=last, final=final)


def worth_a_row(events: t.Sequence[JsonMapping], final: bool) -> list[JsonMapping]:
    """Return `events` without the headings of plays below which nothing stands; what comes may yet, unless `final`."""
    following = [*(event["event"] for event in events[1:]), "play" if final else ""]
    return [event for event, after in zip(events, following) if event["event"] != "play" or after != "play"]


@pages.get("/jobs/<job_id>/stream", "jobs:read")
def stream_job(job_id: str) -> ResponseReturnValue:
    caller = current()
    after = request.args.get("after", "0")
    if not after.isascii() or not after.isdigit() or len(after) > 15:
        raise BadRequestError("after: give the number of an event")
    seen = streams.seen_before()
    with reading_ledger() as connection:
        job_rows.get(connection, job_id, caller.reach)
    return streams.respond(job_id, streams.reader(caller, session.token()), int(after) if seen is None else seen)


@pages.post("/jobs/<job_id>/<action>", "jobs:change", writes)
def act_on_job(connection: Connection, job_id: str, action: str) -> ResponseReturnValue:
    act = {"cancel": acting.cancel, "retry": acting.retry}.get(action)
    if act is None:
        raise BadRequestError("A job can be cancelled, or tried again.")
    job = act(connection, job_id)
    return redirect(url_for("pages.show_job", job_id=job["id"]), 303)


def _without_past(events: t.Sequence[JsonMapping], final: bool) -> list[JsonMapping]:
    """`events` without those that are of interest only until something came of them: that a task or a step began, and
    how far it was."""
    newest = {(event["host"], event["task"]): event["seq"] for event in events if event["event"] == "step"}
    last = events[-1]["seq"] if events else 0

    def is_past(event: JsonMapping) -> bool:
        if event["event"] == "step" and event["status"] == "running":
            return final or event["seq"] != newest[event["host"], event["task"]]
        return event["event"] == "task" and (final or event["seq"] != last)

    return [event for event in events if not is_past(event)]
