# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Workers in the ledger: each one's row and sign of life."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db import clock
from ..db.tables_jobs import run, worker

SERVICE_DOWN_TIME = 60.0  # seconds, as in Nova


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


def last_seen(connection: sa.Connection) -> float | None:
    """Return when any worker that was not stopped gave its last sign of life, None where there is none."""
    return connection.execute(sa.select(sa.func.max(worker.c.seen_at)).where(worker.c.stopped_at.is_(None))).scalar()


class Machine(t.NamedTuple):
    """A machine of the control plane, by its workers."""

    name: str
    seen_at: float  # the last sign of life of any of them
    up: bool


def machines(connection: sa.Connection) -> list[Machine]:
    """Return the machines on which workers were started that nobody stopped."""
    seen_at = sa.func.max(worker.c.seen_at)
    query = (
        sa.select(worker.c.hostname, seen_at, clock.now(connection) - seen_at < SERVICE_DOWN_TIME)
        .where(worker.c.stopped_at.is_(None))
        .group_by(worker.c.hostname)
        .order_by(worker.c.hostname)
    )
    return [Machine(name, seen, bool(up)) for name, seen, up in connection.execute(query)]


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
