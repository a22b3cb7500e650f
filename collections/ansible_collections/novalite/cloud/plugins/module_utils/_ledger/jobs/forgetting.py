# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is forgotten of jobs and runs after a while."""

from __future__ import annotations

import sqlalchemy as sa

from ..db.tables_jobs import job, job_event, run, run_job
from .job_rows import FINAL

FORGOTTEN_AT_ONCE = 1000  # jobs: others wait to write


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
