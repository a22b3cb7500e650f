# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs in the ledger, from the claim until they are forgotten: who has them, which jobs are theirs, what happened in
them, how they ended."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._json import Json, JsonMapping
from ..db.tables_jobs import job, job_event, run, run_job
from ..queries.counts import equal
from ..queries.jobs.job_records import FINAL, RUNNING, JobRow

FORGOTTEN_AT_ONCE = 1000  # jobs: others wait to write


@dataclasses.dataclass(frozen=True)
class Run:
    """Run of one playbook over the instances of one or several jobs. Times are in seconds since the epoch."""

    id: str
    kind: str
    project_id: str | None  # None: jobs of several projects, or of none
    state: str  # running or ended
    worker_id: str
    attempts: int  # how often its playbook was begun
    created_at: float
    finished_at: float | None
    outcome: str | None  # successful, failed, timeout, cancelled or lost


def row_of(connection: sa.Connection, run_id: str) -> Run | None:
    """Return the run, None where there is none."""
    row = connection.execute(sa.select(run).where(run.c.id == run_id)).mappings().first()
    return None if row is None else Run(**row)


def jobs_of(connection: sa.Connection, run_id: str) -> list[JobRow]:
    """Return the rows of the run's jobs that have not ended, the oldest first."""
    query = sa.select(job).where(job.c.run_id == run_id, job.c.state == RUNNING)
    return [JobRow(**row) for row in connection.execute(query.order_by(job.c.created_at, job.c.id)).mappings()]


def running(connection: sa.Connection, worker_id: str | None = None) -> set[str]:
    """Return the ids of the runs that have not ended: all of them, or those of one worker."""
    query = sa.select(run.c.id).where(run.c.state == "running", *equal({run.c.worker_id: worker_id}))
    return set(connection.execute(query).scalars())


def to_cancel(connection: sa.Connection, run_ids: t.Collection[str]) -> list[str]:
    """Return those of these runs of which a job is to be cancelled."""
    of_these = sa.and_(job.c.run_id.in_(list(run_ids)), job.c.state == RUNNING)
    query = sa.select(job.c.run_id).where(of_these, job.c.cancel_requested).distinct()
    return list(connection.execute(query).scalars())


def count_attempt(connection: sa.Connection, run_id: str, worker_id: str) -> None:
    """Record that the run, which has not ended, is begun by this worker, once more."""
    query = sa.update(run).where(run.c.id == run_id, run.c.state == "running")
    connection.execute(query.values(worker_id=worker_id, attempts=run.c.attempts + 1))


def forgive_attempt(connection: sa.Connection, run_id: str) -> None:
    """An attempt that ended because its worker was told to stop is no sign of anything wrong with the run."""
    connection.execute(sa.update(run).where(run.c.id == run_id, run.c.attempts > 0).values(attempts=run.c.attempts - 1))


def take_over(connection: sa.Connection, run_id: str, of: str, me: str) -> bool:
    """Take a run that its worker left; False when another worker was first."""
    query = sa.update(run).where(run.c.id == run_id, run.c.worker_id == of, run.c.state == "running")
    return bool(connection.execute(query.values(worker_id=me)).rowcount)


def end(connection: sa.Connection, run_id: str, outcome: str, now: float) -> bool:
    """Record that the run ended; False when that was done before."""
    query = sa.update(run).where(run.c.id == run_id, run.c.state == "running")
    return bool(connection.execute(query.values(state="ended", outcome=outcome, finished_at=now)).rowcount)


def end_job(connection: sa.Connection, job_id: str, state: str, message: str | None, result: Json, now: float) -> None:
    """Record how a job ended that was in a run."""
    _write(connection, job_id, state=state, message=message, result=result, finished_at=now)


def queue_again(connection: sa.Connection, job_id: str) -> None:
    """Have a job that was in a run wait for another one."""
    _write(connection, job_id, state="queued", message=None, started_at=None)


def _write(connection: sa.Connection, job_id: str, **values: Json) -> None:
    connection.execute(sa.update(job).where(job.c.id == job_id, job.c.state == RUNNING).values(**values))


def write_events(connection: sa.Connection, rows: t.Sequence[JsonMapping]) -> None:
    """Record events of runs."""
    if rows:
        connection.execute(sa.insert(job_event), list(rows))


def forget(connection: sa.Connection, runs_before: float, jobs_before: float) -> None:
    """Remove the events of runs and the results of jobs that ended before `runs_before`, which may each have half a MiB
    of what a guest wrote; jobs that ended before `jobs_before`, and runs that no job is left of."""
    old_runs = sa.select(run.c.id).where(run.c.state == "ended", run.c.finished_at < runs_before)
    connection.execute(sa.delete(job_event).where(job_event.c.run_id.in_(old_runs)))
    with_result = sa.select(job.c.id).where(job.c.finished_at < runs_before, job.c.result.is_not(None))
    some = with_result.limit(FORGOTTEN_AT_ONCE)
    connection.execute(sa.update(job).where(job.c.id.in_(some)).values(result=sa.null()))
    old_jobs = sa.select(job.c.id).where(job.c.state.in_(FINAL), job.c.finished_at < jobs_before)
    connection.execute(sa.delete(job).where(job.c.id.in_(old_jobs.limit(FORGOTTEN_AT_ONCE))))
    of_a_job = sa.select(run_job.c.job_id).where(run_job.c.run_id == run.c.id).exists()
    connection.execute(sa.delete(run).where(run.c.state == "ended", run.c.finished_at < jobs_before, ~of_a_job))
