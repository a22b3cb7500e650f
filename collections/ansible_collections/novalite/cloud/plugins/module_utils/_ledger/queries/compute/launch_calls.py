# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The calls of a launch with their times, which its action keeps: a bounded number of them."""

from __future__ import annotations

import contextlib
import math
import time
import typing as t

import sqlalchemy as sa

from ...._graph.launch_steps import HOSTS, REQUEST, TAKEN, TRIP
from ...._json import JsonMapping, JsonObject
from ...db.tables import instance, instance_action
from ...db.tables_jobs import job, job_instance

KEPT = 100  # calls of an instance; three attempts, with all that a host can be asked for, are 60
LONGEST = 86400.0  # seconds; what a host says of itself is believed so far

Call = JsonObject  # operation, at (seconds since the epoch), seconds; of a host's: host, and failed where it did


def call(operation: str, at: float, seconds: float, host: str | None = None, failed: bool = False) -> Call:
    made: Call = {"operation": operation, "at": round(at, 3), "seconds": round(seconds, 3)}
    if host is not None:
        made["host"] = host
    if failed:
        made["failed"] = True
    return made


@contextlib.contextmanager
def timed(calls: list[Call], operation: str) -> t.Iterator[None]:
    """Add to `calls` how long the block took."""
    at, began = time.time(), time.monotonic()
    yield
    calls.append(call(operation, at, time.monotonic() - began))


def of_trip(host: str | None, trip: JsonMapping) -> list[Call]:
    """The calls of a trip to a host, and its steps, which are one after another at its end.

    `trip` is what module host_steps returns of it. What is no module of a launch, or no number, is left out.
    """
    at, seconds = _number(trip.get("at")), _number(trip.get("seconds"))
    if not host or at is None or seconds is None:
        return []
    steps = []
    for step in (trip.get("steps") or ())[:KEPT]:
        took = _number(step.get("seconds"))
        if step.get("module") in HOSTS and took is not None:
            steps.append((str(step["module"]), min(took, LONGEST), bool(step.get("failed"))))
    calls = [call(TRIP, at, seconds, host, any(failed for _module, _took, failed in steps))]
    moment = at + max(0.0, seconds - sum(took for _module, took, _failed in steps))
    for module, took, failed in steps:
        calls.append(call(module, moment, took, host, failed))
        moment += took
    return calls


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
        return None
    return float(value)


def of_instance(connection: sa.Connection, uuid: str) -> JsonObject | None:
    """The last launch of an instance as the call diagram draws it, its calls in the order of time; None where it was
    never launched (an adopted one)."""
    row = connection.execute(
        sa.select(instance_action, instance.c.name, instance.c.host)
        .join(instance, instance.c.uuid == instance_action.c.instance_uuid)
        .where(instance_action.c.instance_uuid == uuid, instance_action.c.action == "create")
        .order_by(instance_action.c.id.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    asked_at = _number(row.details.get("asked_at")) or float(row.started_at)
    calls = [call(REQUEST, asked_at, 0.0), *row.details.get("calls", ())]
    queued = connection.execute(
        sa.select(job.c.created_at, job.c.started_at)
        .join(job_instance, job_instance.c.job_id == job.c.id)
        .where(job_instance.c.instance_uuid == uuid, job.c.kind == "launch", job.c.started_at.is_not(None))
        .order_by(job.c.created_at.desc())
        .limit(1)
    ).first()
    if queued is not None and queued.started_at >= row.started_at:
        calls.append(call(TAKEN, queued.created_at, queued.started_at - queued.created_at))
    return {
        "uuid": uuid,
        "name": row.name,
        "host": row.host,
        "request_id": row.request_id,
        "finished_at": row.finished_at,
        "message": row.message,
        "calls": sorted(calls, key=lambda made: made["at"]),
    }
