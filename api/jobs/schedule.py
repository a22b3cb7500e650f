# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that nobody asks for: every so often, ledger and hypervisors are brought together again."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import (
    Engine,
    reading,
    take_turns,
    transaction,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs.job_rows import is_due

from . import queue

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
