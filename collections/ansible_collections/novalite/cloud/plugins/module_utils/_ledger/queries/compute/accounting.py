# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Running times of instances, for Nova's simple accounting. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ...._json import JsonObject
from ...db.tables import instance

Record = JsonObject


def ran_between(connection: sa.Connection, project_id: str | None, start: float, stop: float) -> list[Record]:
    """The instances of a project (None: of all) that ran at some time from `start` to `stop`, in epoch seconds, project
    by project.

    Each with `seconds`, how long of that it ran, and `until`, when it ended (None: it is still there).
    """
    c = instance.c
    columns = (c.uuid, c.project_id, c.name, c.display_name, c.vm_state, c.flavor, c.launched_at, c.terminated_at)
    query = (
        sa.select(*columns)
        .where(
            c.launched_at.is_not(None),
            c.launched_at <= stop,
            sa.or_(c.terminated_at.is_(None), c.terminated_at >= start),
        )
        .order_by(c.project_id, c.uuid)  # as Nova pages them
    )
    if project_id is not None:
        query = query.where(c.project_id == project_id)
    return [
        {
            **row,
            "until": row["terminated_at"],
            "seconds": max(0.0, min(stop, row["terminated_at"] or stop) - max(start, row["launched_at"])),
        }
        for row in connection.execute(query).mappings()
    ]
