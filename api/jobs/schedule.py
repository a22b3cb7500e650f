# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that nobody asks for: every so often, ledger and hypervisors are brought together again."""

from __future__ import annotations

import time

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading, transaction
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job

from . import queue

RECONCILE = "reconcile"
_LOCK = 0x6E6F7672  # any number that is this lock's alone in the database
_LOOKED_AT = 50  # jobs of the kind; those for single hosts, after a build that failed there, are no matter


def reconcile_when_due(engine: sa.Engine, seconds: int) -> str | None:
    """Enqueue a `reconcile` of everything when the last one was asked for `seconds` ago, or never; returns its id.

    Any number of workers may ask: only one of them does it.
    """
    with reading(engine) as connection:
        if not _is_due(connection, seconds):
            return None
    with transaction(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        if not _is_due(connection, seconds):
            return None
        return str(queue.enqueue(connection, RECONCILE, variables={"output": "json"})["id"])


def _is_due(connection: sa.Connection, seconds: int) -> bool:
    query = (
        sa.select(job.c.created_at, job.c.state, job.c.variables)
        .where(job.c.kind == RECONCILE, job.c.check_mode.is_(False))
        .order_by(job.c.created_at.desc())
        .limit(_LOOKED_AT)
    )
    last = next((row for row in connection.execute(query) if "limit" not in row.variables), None)
    return last is None or (last.state in queue.FINAL and last.created_at <= time.time() - seconds)
