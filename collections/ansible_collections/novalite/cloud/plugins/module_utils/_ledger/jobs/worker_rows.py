# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Workers in the ledger: each one's row and sign of life."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db import clock
from ..db.tables_jobs import run, worker


def add(connection: sa.Connection, worker_id: str, *, machine: str, hostname: str, pid: int) -> None:
    """Record a worker that begins to work now."""
    values = {
        "id": worker_id,
        "machine": machine,
        "hostname": hostname,
        "pid": pid,
        "started_at": clock.now(connection),
    }
    connection.execute(sa.insert(worker).values(seen_at=clock.now(connection), **values))


def beat(connection: sa.Connection, worker_id: str) -> None:
    """Give a sign of life."""
    connection.execute(sa.update(worker).where(worker.c.id == worker_id).values(seen_at=clock.now(connection)))


def stop(connection: sa.Connection, worker_id: str) -> None:
    """Record that the worker works no more."""
    connection.execute(sa.update(worker).where(worker.c.id == worker_id).values(stopped_at=clock.now(connection)))


class Held(t.NamedTuple):
    """A run that a worker has."""

    id: str
    worker_id: str
    machine: str | None  # the worker's; None: it has no row
    stopped_at: float | None
    silent: float | None  # for how many seconds it gave no sign of life


def runs_of_others(connection: sa.Connection, me: str) -> list[Held]:
    """Return the runs that other workers have."""
    silent = (clock.now(connection) - worker.c.seen_at).label("silent")
    query = (
        sa.select(run.c.id, run.c.worker_id, worker.c.machine, worker.c.stopped_at, silent)
        .outerjoin(worker, worker.c.id == run.c.worker_id)
        .where(run.c.state == "running", run.c.worker_id != me)
    )
    return [Held(*row) for row in connection.execute(query)]


def forget(connection: sa.Connection, before: float) -> None:
    """Remove the rows of workers that were seen before this time last, and have no run."""
    busy = sa.select(run.c.worker_id).where(run.c.state == "running")
    connection.execute(sa.delete(worker).where(worker.c.seen_at < before, worker.c.id.not_in(busy)))
