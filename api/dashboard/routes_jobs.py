# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of the API, and among them the runs of playbooks that nobody asked the API for: what there is, and one as it
goes on."""

from __future__ import annotations

import typing as t

from flask import redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonMapping, JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records, playbook_runs
from ansible_collections.novalite.cloud.plugins.module_utils._rules.server_status import silence

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


class Listed(t.NamedTuple):
    """A row of the list: a job, or a run of a playbook."""

    path: str
    kind: str
    state: str
    message: str | None
    created_at: float
    took: float | None  # seconds; None while it goes on
    servers: int
    by_playbook: bool = False
    check_mode: bool = False


def rows_of_jobs(connection: Connection, jobs: t.Iterable[JsonMapping]) -> list[Listed]:
    return [
        Listed(
            url_for("pages.show_job", job_id=job["id"]),
            job["kind"],
            job["state"],
            job["message"],
            job["created_at"],
            None if None in (job["started_at"], job["finished_at"]) else job["finished_at"] - job["started_at"],
            len(job["instances"]),
            check_mode=job["check_mode"],
        )
        for job in masked(connection, jobs)
    ]


def rows_of_runs(connection: Connection, runs: t.Iterable[playbook_runs.Run]) -> list[Listed]:
    hidden = host_name_mask(connection, current().reach)
    return [
        Listed(
            url_for("pages.show_run", number=run.id),
            ", ".join(run.actions),
            run.state,
            silence(run.silent_for) if run.state == "silent" else hidden.over(run.message),
            run.started_at,
            None if run.finished_at is None else run.finished_at - run.started_at,
            len(run.servers),
            by_playbook=True,
        )
        for run in runs
    ]


def recent(connection: Connection, project_id: str | None, limit: int) -> list[Listed]:
    """Return the newest jobs and runs."""
    rows = rows_of_jobs(connection, job_records.list_jobs(connection, project_id=project_id, limit=limit))
    rows += rows_of_runs(connection, playbook_runs.list_runs(connection, project_id, limit))
    return sorted(rows, key=lambda row: row.created_at, reverse=True)[:limit]


@pages.get("/jobs", "jobs:read", reads)
def list_jobs(connection: Connection) -> str:
    """List jobs and runs, the newest first. A page goes on behind the last job and the last run of the one before."""
    caller = current()
    everywhere = policy.allowed("jobs:read:all_projects") and request.args.get("all_projects") == "true"
    after_job, after_run = request.args.get("after") or None, request.args.get("after_run", "")
    if after_run and not (after_run.isascii() and after_run.isdigit() and len(after_run) <= 15):
        raise BadRequestError("after_run: give the number of a run")
    project_id = None if everywhere else caller.project
    jobs = job_records.list_jobs(connection, project_id=project_id, limit=PAGE, marker=after_job)
    runs = playbook_runs.list_runs(connection, project_id, PAGE, int(after_run) if after_run else None)
    shown = sorted(
        [
            *zip(rows_of_jobs(connection, jobs), (job["id"] for job in jobs)),
            *zip(rows_of_runs(connection, runs), (run.id for run in runs)),
        ],
        key=lambda pair: pair[0].created_at,
        reverse=True,
    )[:PAGE]
    following = None
    if len(shown) == PAGE:
        following = {
            "after": next((number for row, number in reversed(shown) if not row.by_playbook), after_job),
            "after_run": next((number for row, number in reversed(shown) if row.by_playbook), after_run or None),
        }
    return render_template(
        "pages/jobs.html",
        jobs=[row for row, _number in shown],
        following=following,
        everywhere=everywhere,
        later=after_job or after_run,
    )


@pages.get("/runs/<int:number>", "jobs:read", reads)
def show_run(connection: Connection, number: int) -> str:
    run, steps = playbook_runs.one_run(connection, number, current().reach)
    hidden = host_name_mask(connection, current().reach)
    return render_template("pages/run.html", run=run, message=hidden.over(run.message), steps=steps)


@pages.get("/jobs/<job_id>", "jobs:read", reads)
def show_job(connection: Connection, job_id: str) -> str:
    caller = current()
    job = job_records.get(connection, job_id, caller.reach)
    events = job_records.events_of(
        connection, job_id, limit=EVENTS, project_id=caller.reach, texts=policy.allowed("jobs:read:texts")
    )
    (body,) = masked(connection, [job])
    final, last = job["state"] in job_records.FINAL, events[-1]["seq"] if events else 0
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
        job_records.get(connection, job_id, caller.reach)
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
