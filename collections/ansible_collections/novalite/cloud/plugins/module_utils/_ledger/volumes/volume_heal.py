# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes and snapshots that nobody goes on with, and volumes whose data is gone from their host."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._rules.build_states import BUILDS
from ..db.tables import instance
from ..db.tables_jobs import job
from ..db.tables_volumes import volume, volume_attachment, volume_type
from ..queries.compute.instance_rows import being_built
from ..queries.counts import is_any
from ..queries.jobs.open_jobs import with_open_job
from ..queries.volumes import volume_backup_records
from ..queries.volumes.volume_views import attachments_by
from . import volume_attachments, volume_backups, volume_snapshots, volume_uploads, volumes
from .volume_sources import TABLES

_MOVING = ("attaching", "detaching")
_BACKED_UP = (volume_backups.BACKING_UP, volume_backups.RESTORING_VOLUME)

Change = tuple[str, str, str, dict[str, str], dict[str, str]]  # kind, name, reason, before, after


def end_abandoned(connection: sa.Connection, since: float, now: int) -> list[Change]:
    """Give an end to what was begun on volumes and snapshots, was silent `since` then, and has no job."""
    waited_for = _in_jobs(connection)
    silent = [
        (table, row)
        for table in TABLES.values()
        for row in connection.execute(_silent(table, since))
        if row.id not in waited_for
    ]
    of_servers = _of_busy_servers(connection, [row.id for table, row in silent if table is volume])
    changes: list[Change] = []
    for table, row in silent:
        if row.id in of_servers:
            continue
        reason = f"it is {row.status}, and nobody goes on: no sign of life for {now - row.updated_at} s"
        if table is not volume:
            changed = volume_snapshots.settle(connection, [row.id], reason)
        elif row.status == volume_uploads.UPLOADING:
            changed = volume_uploads.settle(connection, [row.id], reason)
        elif row.status in _BACKED_UP:
            changed = volume_backups.settle_volume(connection, row.id, reason)
        elif row.status not in _MOVING:
            changed = volumes.settle(connection, [row.id], reason)
        # without an attachment a client has reserved it, and may take its time
        elif is_any(connection, volume_attachment.c.volume_id == row.id):
            changed = volume_attachments.settle(connection, [row.id], reason)
        else:
            changed = []
        if changed:
            after = connection.execute(sa.select(table.c.status).where(table.c.id == row.id)).scalar_one()
            changes.append((table.name, f"{row.name} ({row.id})", reason, {"status": row.status}, {"status": after}))
    return changes


def fail_lost(
    connection: sa.Connection, host: str, files: t.Collection[str], since: int, doubt: t.Callable[[str], str | None]
) -> list[tuple[str, str, str | None]]:
    """Make volumes of this host errors whose files are not among `files` (ids), unless there is `doubt` about one (id).
    Returns name, status before, and the doubt."""
    rows = connection.execute(
        sa.select(volume.c.id, volume.c.name, volume.c.status)
        .join(volume_type, volume_type.c.id == volume.c.type_id)
        .where(
            volume_type.c.backend == "file",
            volume.c.host == host,
            volume.c.made_at.is_not(None),
            volume.c.status.in_(["available", "in-use", "reserved", "error_extending", "error_attaching"]),
            volume.c.updated_at < since,
            volume.c.id.not_in(sorted(files)),
        )
        .order_by(volume.c.id)
    ).all()
    reason = f"its data is gone from {host}"
    return [
        (row.name, row.status, why)
        for row in rows
        for why in (doubt(row.id),)
        if why is not None or volumes.swap(connection, row.id, (row.status,), "error", reason)
    ]


def _silent(table: sa.Table, then: float) -> sa.Select[tuple[str, str, str, int]]:
    statuses = [*volumes.ERRORS, *((*_MOVING, *_BACKED_UP, volume_uploads.UPLOADING) if table is volume else ())]
    columns = (table.c.id, table.c.name, table.c.status, table.c.updated_at)
    return sa.select(*columns).where(table.c.status.in_(statuses), table.c.updated_at <= then).order_by(table.c.id)


def _of_busy_servers(connection: sa.Connection, volume_ids: t.Iterable[str]) -> set[str]:
    """Return the volumes whose server is being built, or at work otherwise: they show no sign of life of their own, and
    come to an end with that. A build that is dead was ended before."""
    holders = {row.volume_id: row.instance_uuid for row in attachments_by(connection, volumes=volume_ids)}
    c = instance.c
    at_work = sa.or_(c.task_state.is_not(None), *map(being_built, BUILDS))
    busy = sa.select(c.uuid).where(c.uuid.in_(sorted(set(holders.values()))), c.deleted == 0, at_work)
    uuids = {*connection.execute(busy).scalars(), *with_open_job(connection, holders.values())}
    return {volume_id for volume_id, uuid in holders.items() if uuid in uuids}


def _in_jobs(connection: sa.Connection) -> set[str]:
    """Volumes and snapshots that a job of the API waits for, or works at."""
    ids: set[str] = set()
    rows = connection.execute(
        sa.select(job.c.variables).where(job.c.kind.like("volume_%"), job.c.state.in_(["queued", "running"]))
    )
    for variables in rows.scalars():
        for name in ("volumes", "snapshots"):
            ids.update(variables.get(name) or ())
        of_backups = volume_backup_records.backups_by(connection, ids=variables.get("backups") or ())
        ids.update(number for row in of_backups for number in (row.volume_id, row.restore_volume_id) if number)
        attached = attachments_by(connection, ids=variables.get("attachments") or ())
        ids.update(attachment.volume_id for attachment in attached)
    return ids
