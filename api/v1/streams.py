# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A job's events as they happen: server-sent events (HTML standard, section 9.2).

A stream holds a thread of the server while it lasts, so a process has few of them at once and none for long. Whoever
gets none asks for the events as JSON; whoever is cut off resumes with Last-Event-ID, as browsers do by themselves.
"""

from __future__ import annotations

import dataclasses
import json
import re
import threading
import time
import typing as t

from flask import Flask, Response, current_app, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._json import Json
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Engine, reading
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records

from ..settings import Settings
from ..web import policy
from ..web.context import Caller, find_caller
from ..web.errors import BadRequestError, TooManyRequestsError
from ..web.host_names import host_name_mask
from ..web.ledger import Ledger
from . import views

CONTENT_TYPE = "text/event-stream"
SEEN_HEADER = "Last-Event-ID"
LONGEST = 300.0  # seconds; then the client comes back
HEARTBEAT = 15.0  # seconds; proxies cut silent connections after 30 or 60
PAUSE = 0.5  # seconds between two looks at the ledger
RETRY = 3000  # milliseconds after which a browser comes back
BATCH = 500  # events at once
EXTENSION = "job_streams"


def register(app: Flask, settings: Settings) -> None:
    # half of a process's threads are kept for everything else
    app.extensions[EXTENSION] = threading.BoundedSemaphore(max(1, settings.threads // 2))


@dataclasses.dataclass(frozen=True)
class Reader:
    """A stream's reader, who sees events of a project's jobs (None: of all), with tasks' messages (`texts`) and guests'
    console output (`console`) or without, while `token` is valid."""

    project_id: str | None
    texts: bool
    console: bool
    token: str


def reader(caller: Caller, token: str) -> Reader:
    """The caller, as a reader of streams."""
    project_id = caller.reach
    return Reader(
        project_id, policy.may(caller, "jobs:read:texts"), policy.may(caller, "compute:servers:console_output"), token
    )


def seen_before() -> int | None:
    """The last event that a client which comes back has seen. Raises BadRequestError."""
    seen = request.headers.get(SEEN_HEADER)
    if seen is None:
        return None
    if not re.fullmatch("[0-9]{1,15}", seen):
        raise BadRequestError(f"{SEEN_HEADER}: give the number of an event")
    return int(seen)


def respond(job_id: str, who: Reader, after: int) -> Response:
    """The stream of a job that exists. Raises TooManyRequestsError when this process has enough of them."""
    places: threading.BoundedSemaphore = current_app.extensions[EXTENSION]
    if not places.acquire(blocking=False):
        raise TooManyRequestsError("too many event streams: try again, or ask for the events as JSON", 5)
    ledger: Ledger = current_app.extensions["ledger"]
    stream = Stream(places, _events(ledger.engine, job_id, who, after))
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}  # nginx would keep it until it ends
    return Response(stream, content_type=f"{CONTENT_TYPE}; charset=utf-8", headers=headers)


class Stream:
    """The events, and a place that is given back once: also of a stream that nobody began to read."""

    def __init__(self, places: threading.BoundedSemaphore, events: t.Generator[str, None, None]) -> None:
        self._places: threading.BoundedSemaphore | None = places
        self._events = events

    def __iter__(self) -> t.Iterator[bytes]:
        return (event.encode() for event in self._events)

    def close(self) -> None:
        self._events.close()
        places, self._places = self._places, None
        if places is not None:
            places.release()


def message(event: str, data: Json, number: int | None = None) -> str:
    # JSON holds no line break, so that one line carries it
    named = f"id: {number}\n" if number is not None else ""
    return f"{named}event: {event}\ndata: {json.dumps(data)}\n\n"


def _events(engine: Engine, job_id: str, who: Reader, after: int) -> t.Generator[str, None, None]:
    started = heard = checked = time.monotonic()
    state: Json = None
    yield f"retry: {RETRY}\n\n"
    while time.monotonic() - started < LONGEST:
        try:
            with reading(engine) as connection:
                if time.monotonic() - checked > HEARTBEAT:
                    checked = time.monotonic()
                    if find_caller(connection, who.token) is None:
                        return  # revoked, or expired
                # the job before its events: those of its end are then there when it says so
                job = job_records.get(connection, job_id, who.project_id)
                events = job_records.events_of(
                    connection, job_id, after=after, limit=BATCH, project_id=who.project_id, texts=who.texts
                )
                hidden = host_name_mask(connection, who.project_id)
        except NovaliteError:
            return  # the job was removed, or the ledger is out of order: the client asks again, and is told
        for event in events:
            after = event["seq"]
            yield message("event", views.event(event, hidden), after)
        seen = (job["state"], job["cancel_requested"], job["message"])
        if seen != state:
            state = seen
            yield message("job", views.job(job, hidden, who.console))
        if events:
            heard = time.monotonic()
        if len(events) == BATCH:
            continue
        if job["state"] in job_records.FINAL:
            yield message("end", views.job(job, hidden, who.console))
            return
        if time.monotonic() - heard > HEARTBEAT:
            heard = time.monotonic()
            yield ": \n\n"
        time.sleep(PAUSE)
