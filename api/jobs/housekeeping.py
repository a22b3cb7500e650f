# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Periodic work of the workers: every so often, ledger and hypervisors are brought together again, and what is
old is thrown away: events of runs, jobs, locks, DBOS's records of workflows that ended, uploads of images
that died, and files of images that nothing needs any more."""

from __future__ import annotations

import contextlib
import logging
import os
import time

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_states
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    Engine,
    reading,
    take_turns,
    transaction,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import run_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs.job_rows import is_due

from . import durable, queue, workers
from .options import Options

log = logging.getLogger(__name__)

DAY = 24 * 3600.0
RECONCILE = "reconcile"
LOCK = 0x6E6F7672  # PostgreSQL advisory lock


def reconcile_when_due(engine: Engine, seconds: int) -> str | None:
    """Enqueue a `reconcile` of everything when the last one was asked for `seconds` ago, or never; returns its id.

    Any number of workers may ask: only one of them does it.
    """
    with reading(engine) as connection:
        if not is_due(connection, RECONCILE, seconds):
            return None
    with transaction(engine) as connection:
        take_turns(connection, LOCK)
        if not is_due(connection, RECONCILE, seconds):
            return None
        return str(queue.enqueue(connection, RECONCILE, variables={"output": "json"})["id"])


def keep_house(engine: Engine, options: Options) -> None:
    """Remove what is older than the options say. What cannot be removed now is, the next time."""
    try:
        then = time.time() - options.keep_days * DAY
        with transaction(engine) as connection:
            ages = options.keep_days * DAY, options.keep_job_days * DAY
            run_rows.forget(connection, *(clock.before(connection, age) for age in ages))
            running = run_rows.running(connection)
            workers.forget(connection, options)
        with transaction(engine) as connection:
            image_states.sweep(connection, options.home)
        _remove_old(os.path.join(options.directory, "locks"), running, options.keep_runs, then)
        durable.forget(then)
    except (NovaliteError, OSError) as error:
        log.warning("old runs could not be cleared: %s", error)


def _remove_old(directory: str, running: set[str], count: int, then: float) -> None:
    """Remove all but the `count` newest entries, and what is older than `then`; nothing of a run that is running."""
    entries = []
    for entry in os.scandir(directory):
        with contextlib.suppress(OSError):
            entries.append((entry.stat(follow_symlinks=False).st_mtime, entry.path, entry.name))
    for number, (at, path, name) in enumerate(sorted(entries, reverse=True)):
        if name in running or (number < count and at > then) or at > time.time() - 60:
            continue
        with contextlib.suppress(OSError):
            os.unlink(path)
