# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that wait, or run, in a ledger that was restored from an older copy, and that were perhaps carried out since."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..compute import server_actions
from ..db.tables_jobs import job, job_instance
from ..queries.jobs.job_records import instances_of
from ..queries.jobs.open_jobs import OPEN
from . import job_outcomes, job_rows

REASON = (
    "the ledger was restored from an older copy, and this was perhaps carried out since: look at what it was about, "
    "and ask again if it is still to be done"
)
# What no host tells of a volume that no server has: to bring its data back once more would lose what came since
_OF_VOLUMES = ("volume_restore", "volume_revert")


def end_overtaken(connection: sa.Connection, uuids: t.Collection[str]) -> list[str]:
    """Cancel the jobs that act on the instances `uuids`, of which their hosts know more than the ledger did, and those
    that bring back former data of volumes; return a line for each. A rebuild that was carried out after the copy was
    made would be carried out again, on disks with new data.

    Launches and deletions stay: they find what is there, by its id, and leave it, or have nothing left to remove.
    """
    about = sa.select(job_instance.c.job_id).where(job_instance.c.instance_uuid.in_(sorted(uuids)))
    acting = sa.and_(job.c.kind.in_(sorted(server_actions.NAMES)), job.c.id.in_(about))
    query = sa.select(job.c.id, job.c.kind, job.c.variables).where(
        job.c.state.in_(OPEN), job.c.check_mode.is_(sa.false()), sa.or_(acting, job.c.kind.in_(_OF_VOLUMES))
    )
    rows = connection.execute(query.order_by(job.c.created_at, job.c.id)).all()
    held = instances_of(connection, [row.id for row in rows])
    for row in rows:
        if not job_rows.cancel_waiting(connection, row.id, REASON):
            job_rows.ask_to_cancel(connection, row.id)
        if row.kind in _OF_VOLUMES:
            job_outcomes.settle_volumes(connection, row.kind, row.variables, REASON)
            continue
        server_actions.abandon(connection, [uuid for uuid in held[row.id] if uuid in uuids], REASON)
        job_outcomes.settle(connection, row.kind, [uuid for uuid in held[row.id] if uuid not in uuids], REASON)
    return [f"whether job {row.id} ({row.kind}) was carried out since the copy: it is cancelled" for row in rows]
