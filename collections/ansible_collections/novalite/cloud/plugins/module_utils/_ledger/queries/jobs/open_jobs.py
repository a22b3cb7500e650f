# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs of the API about instances: which are open, and how one ended."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import JsonMapping
from ...db.tables_jobs import job, job_instance

OPEN = ("queued", "running")


def with_open_job(connection: sa.Connection, uuids: t.Iterable[str]) -> set[str]:
    """Return the instances that a job of the API waits for, or works at: their action is not dead, however silent."""
    rows = connection.execute(
        sa.select(job_instance.c.instance_uuid)
        .join(job, job.c.id == job_instance.c.job_id)
        .where(job_instance.c.instance_uuid.in_(sorted(set(uuids))), job.c.state.in_(OPEN))
    )
    return set(rows.scalars())


def open_job(connection: sa.Connection, uuid: str, kind: str, variables: JsonMapping | None = None) -> str | None:
    """The id of a job of this kind (and with these variables) about the instance that waits or runs."""
    query = (
        sa.select(job.c.id, job.c.variables)
        .join(job_instance, job_instance.c.job_id == job.c.id)
        .where(job_instance.c.instance_uuid == uuid, job.c.kind == kind, job.c.state.in_(OPEN))
    )
    rows = connection.execute(query)
    return next((str(row.id) for row in rows if variables is None or row.variables == variables), None)


def job_outcome(connection: sa.Connection, job_id: str) -> t.Any:
    """`state`, `result` and `message` of the job. Raises NotFoundError."""
    row = connection.execute(sa.select(job.c.state, job.c.result, job.c.message).where(job.c.id == job_id)).first()
    if row is None:
        raise NotFoundError(f"job {job_id} could not be found")
    return row
