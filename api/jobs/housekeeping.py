# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is thrown away after a while: outputs and events of old runs, old jobs, locks, DBOS's records of workflows that
ended, uploads of images that died, and files of images that nothing needs any more."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_states
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job, job_event, run, run_job

from . import durable, queue, workers
from .options import Options

log = logging.getLogger(__name__)

DAY = 24 * 3600.0
FORGOTTEN_AT_ONCE = 1000  # jobs


def keep_house(engine: sa.Engine, options: Options) -> None:
    """Remove what is older than the options say. What cannot be removed now is, the next time."""
    try:
        then = time.time() - options.keep_days * DAY
        with transaction(engine) as connection:
            old = sa.select(run.c.id).where(run.c.state == "ended", run.c.finished_at < then)
            connection.execute(sa.delete(job_event).where(job_event.c.run_id.in_(old)))
            _forget_results(connection, then)
            _forget_jobs(connection, time.time() - options.keep_job_days * DAY)
            running = set(connection.execute(sa.select(run.c.id).where(run.c.state == "running")).scalars())
            workers.forget(connection, options)
        with transaction(engine) as connection:
            image_states.sweep(connection, options.home)
        for kind in ("runs", "locks"):
            _remove_old(os.path.join(options.directory, kind), running, options.keep_runs, then)
        durable.forget(then)
    except (NovaliteError, OSError) as error:
        log.warning("old runs could not be cleared: %s", error)


def _forget_results(connection: sa.Connection, then: float) -> None:
    """Empty the results of jobs that ended before `then`: each may have half a MiB of what a guest wrote."""
    old = sa.select(job.c.id).where(job.c.finished_at < then, job.c.result.is_not(None)).limit(FORGOTTEN_AT_ONCE)
    connection.execute(sa.update(job).where(job.c.id.in_(old)).values(result=sa.null()))


def _forget_jobs(connection: sa.Connection, then: float) -> None:
    """Delete jobs that ended before `then`, and runs that no job is left of. Some at a time: others wait to write."""
    old = sa.select(job.c.id).where(job.c.state.in_(queue.FINAL), job.c.finished_at < then).limit(FORGOTTEN_AT_ONCE)
    connection.execute(sa.delete(job).where(job.c.id.in_(old)))
    of_a_job = sa.select(run_job.c.job_id).where(run_job.c.run_id == run.c.id).exists()
    connection.execute(sa.delete(run).where(run.c.state == "ended", run.c.finished_at < then, ~of_a_job))


def _remove_old(directory: str, running: set[str], count: int, then: float) -> None:
    """Remove all but the `count` newest entries, and what is older than `then`; nothing of a run that is running."""
    found = []
    for entry in os.scandir(directory):
        with contextlib.suppress(OSError):
            found.append((entry.stat(follow_symlinks=False).st_mtime, entry.path, entry.name))
    for number, (at, path, name) in enumerate(sorted(found, reverse=True)):
        if name in running or (number < count and at > then) or at > time.time() - 60:
            continue
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)
