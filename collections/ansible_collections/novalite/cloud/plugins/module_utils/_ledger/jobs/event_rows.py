# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Events of runs in the ledger."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..db.tables_jobs import job_event, run
from . import job_rows

SHOWN = ("seq", "created_at", "event", "play", "task", "host", "status", "duration", "text")


def write(connection: sa.Connection, rows: t.Sequence[JsonMapping]) -> None:
    """Record events."""
    if rows:
        connection.execute(sa.insert(job_event), list(rows))


def of_job(
    connection: sa.Connection,
    job_id: str,
    *,
    after: int = 0,
    limit: int = job_rows.PAGE,
    project_id: str | None = None,
    texts: bool = False,
) -> list[JsonObject]:
    """What happened in the job's run so far, after the event with the number `after`, oldest first.

    A run may serve jobs of several projects. What its tasks said is then shown with `texts` (to administrators) only,
    and so is on which hosts, which is no tenant's business.
    """
    run_id = job_rows.row_of(connection, job_id, project_id).run_id
    if run_id is None:
        return []
    shared = connection.execute(sa.select(run.c.project_id).where(run.c.id == run_id)).scalar() is None
    query = (
        sa.select(*(job_event.c[name] for name in SHOWN))
        .where(job_event.c.run_id == run_id, job_event.c.seq > after)
        .order_by(job_event.c.seq)
        .limit(min(limit, job_rows.PAGE))
    )
    hidden: JsonObject = {} if texts else {"host": None, "text": None} if shared else {"host": None}
    return [{**row, **hidden} for row in connection.execute(query).mappings()]
