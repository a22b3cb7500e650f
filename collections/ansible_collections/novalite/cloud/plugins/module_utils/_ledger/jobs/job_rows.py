# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs in the ledger: recorded, looked at, cancelled. A job is a row beside the records that it is about."""

from __future__ import annotations

import contextlib
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..db.tables_jobs import job, job_instance
from ..identity.quotas import check_quota
from ..queries.counts import count
from ..queries.jobs.job_records import CANCELLED, FINAL, QUEUED, RUNNING, SHOWN, Job, of_key, shown
from .claiming import OPEN
from .waking import notify

# What takes away what a project has, and an operator's moves: it has a quota of its own, as large, so that nobody who
# asked for too much has to keep it.
FREEING = (
    *("terminate", "volume_delete", "volume_detach", "volume_snapshot_delete", "interface_detach"),
    *("security_groups", "floating_ips"),
    *("migrate", "live-migration", "evacuate", "confirmResize", "revertResize"),
)
LOOKED_AT = 50  # jobs of a kind; those for single hosts, after a build that failed there, are no matter


# --- Looking --------------------------------------------------------------------------------------------------------


def waiting_variables(connection: sa.Connection, kind: str) -> list[JsonObject]:
    """Return the variables of the jobs of `kind` that wait."""
    query = sa.select(job.c.variables).where(job.c.state == QUEUED, job.c.kind == kind)
    return list(connection.execute(query).scalars())


def is_waiting(connection: sa.Connection, kind: str, variables: JsonMapping, project_id: str | None) -> bool:
    """Tell whether a job like this one is there and does not begin before this transaction ends.

    A playbook that brings hosts what the ledger says when it runs needs no second job for the next change.
    """
    waiting = (job.c.state == QUEUED, job.c.check_mode.is_(False))
    like = sa.select(job.c.variables).where(job.c.kind == kind, job.c.project_id == project_id, *waiting)
    # who is about to begin it waits for us, and then finds what we write
    rows = connection.execute(like.order_by(job.c.id).with_for_update()).scalars()
    return any(row == variables for row in rows)


def is_due(connection: sa.Connection, kind: str, seconds: int) -> bool:
    """Return whether the last job of `kind` for all hosts ended, and was asked for `seconds` ago, or never."""
    query = (
        sa.select(job.c.created_at, job.c.state, job.c.variables)
        .where(job.c.kind == kind, job.c.check_mode.is_(False))
        .order_by(job.c.created_at.desc())
        .limit(LOOKED_AT)
    )
    last = next((row for row in connection.execute(query) if "limit" not in row.variables), None)
    return last is None or (last.state in FINAL and last.created_at <= clock.now(connection) - seconds)


# --- Writing --------------------------------------------------------------------------------------------------------


def add(connection: sa.Connection, row: Job, instances: t.Sequence[str]) -> Job:
    """Record a job about `instances` (UUIDs), and wake the workers when the transaction is committed.

    `row` has its columns. One that is known by the same idempotency key is returned instead. Raises ConflictError for
    a key that stands for another request, and QuotaError when the project has too many open jobs.
    """
    has_key = row["idempotency_key"] is not None
    if has_key and (known := _known(connection, row)) is not None:
        return known
    if row["project_id"] is not None:
        _check_open(connection, row["kind"], row["project_id"])
    # without a key nothing can be there before, and there is nothing to go back to
    savepoint = connection.begin_nested() if has_key else contextlib.nullcontext()
    try:
        with savepoint:
            connection.execute(sa.insert(job), [row])
    except sa.exc.IntegrityError:
        # another request with this key came first, just now
        if not has_key or (known := _known(connection, row)) is None:
            raise
        return known
    if instances:
        values = [{"job_id": row["id"], "instance_uuid": uuid} for uuid in instances]
        connection.execute(sa.insert(job_instance), values)
    notify(connection)
    return {
        **dict.fromkeys(SHOWN),
        **{name: row[name] for name in SHOWN if name in row},
        "cancel_requested": False,
        "instances": list(instances),
    }


def cancel_waiting(connection: sa.Connection, job_id: str, message: str = "cancelled before it began") -> bool:
    """Cancel a job that waits; False when it does not."""
    values = {"state": CANCELLED, "cancel_requested": True, "message": message}
    query = sa.update(job).where(job.c.id == job_id, job.c.state == QUEUED)
    return bool(connection.execute(query.values(finished_at=clock.now(connection), **values)).rowcount)


def ask_to_cancel(connection: sa.Connection, job_id: str) -> bool:
    """Ask the worker of a job that runs to end it; False when it does not run."""
    query = sa.update(job).where(job.c.id == job_id, job.c.state == RUNNING)
    return bool(connection.execute(query.values(cancel_requested=True)).rowcount)


# --- Inside ---------------------------------------------------------------------------------------------------------


def _check_open(connection: sa.Connection, kind: str, project_id: str) -> None:
    """Raise QuotaError if one more job of `kind` is more than the project may have open."""
    freeing = kind in FREEING
    of_this_sort = job.c.kind.in_(FREEING) if freeing else job.c.kind.not_in(FREEING)
    # not job.project_id itself: SQLite would go over all that the project ever asked for, and not over the open ones
    mine = sa.func.coalesce(job.c.project_id, "") == project_id
    check_quota(connection, project_id, "jobs", count(connection, OPEN, mine, of_this_sort) + 1)


def _known(connection: sa.Connection, row: Job) -> Job | None:
    """The job that is known under a new one's key. Raises ConflictError when the key stood for another request."""
    key = row["idempotency_key"]
    known = of_key(connection, row["project_id"], key)
    if known is None:
        return None
    if known.request_hash != row["request_hash"]:
        raise ConflictError(f"the idempotency key '{key}' was used for another request: use a new one")
    return shown(connection, [known])[0]
