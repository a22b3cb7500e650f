# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of volumes: whole copies beside the volume, in its format, so that neither needs the other's file."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, InvalidVolumeError, NovaliteError
from ..._json import JsonMapping
from ..catalog.volume_types import LOCAL_BACKENDS
from ..db import clock
from ..db.tables_volumes import volume, volume_snapshot
from ..queries import lookups
from ..queries.catalog import volume_type_records
from ..queries.counts import is_any
from ..queries.volumes import volume_views
from ..queries.volumes.volume_views import Snapshot, Volume, snapshots_by
from . import volume_sources, volumes

ERRORS = {"creating": "error", "deleting": "error_deleting"}


def create_snapshot(connection: sa.Connection, project_id: str, params: JsonMapping) -> Snapshot:
    """Record a new snapshot, `creating`; a job `volume_snapshot_create` is to take it.

    `params`: `volume_id`, `name` (what is shown), `handle` (what playbooks call it), `description`, `metadata`,
    `user_id`, `force` (also while an instance has the volume: as if its power had failed), `limit_to` (the compute
    hosts of which one makes a volume of which nothing was made yet; None: all). Raises NotFoundError,
    ConflictError for a volume that is not at rest, QuotaError.
    """
    lookups.lock_project(connection, project_id)
    row = volume_views.one_volume(connection, params["volume_id"], project_id, lock=True)
    allowed = ("available", "in-use") if params.get("force") else ("available",)
    if row.status not in allowed:
        raise InvalidVolumeError(
            f"Invalid volume: Volume {row.id} status must be {' or '.join(allowed)} to take a snapshot, but current "
            f"status is: {row.status}."
        )
    volume_sources.check_stays(connection, row)
    if row.host is None and row.backend in LOCAL_BACKENDS:  # nothing was made of it yet: now it is
        zone, limit_to = row.availability_zone, params.get("limit_to")
        host = volume_sources.choose_host(connection, row.type, row.options, zone, limit_to=limit_to)
        connection.execute(sa.update(volume).where(volume.c.id == row.id).values(host=host))
    new = volumes.new_record(connection, "snapshot", project_id, params)
    of = {"volume_id": row.id, "size_gb": row.size_gb, "status": "creating"}
    connection.execute(sa.insert(volume_snapshot).values(**new, **of))
    volumes.check_quota(connection, project_id, row.size_gb, made="snapshots")
    return volume_views.one_snapshot(connection, new["id"])


def finish_snapshot(connection: sa.Connection, snapshot_id: str, *, error: str | None = None) -> bool:
    """Record how it ended. The volume has data then, if it had none before."""
    done = _swap(connection, snapshot_id, "creating", "available" if error is None else "error", error)
    if done and error is None:
        of = sa.select(volume_snapshot.c.volume_id).where(volume_snapshot.c.id == snapshot_id).scalar_subquery()
        connection.execute(
            sa.update(volume)
            .where(volume.c.id == of, volume.c.made_at.is_(None))
            .values(made_at=clock.seconds(connection))
        )
    return done


def begin_delete_snapshot(
    connection: sa.Connection, snapshot_id: str, *, project_id: str | None = None, force: bool = False
) -> Snapshot:
    """Begin to delete a snapshot; what was made of it stays. Raises ConflictError while something is being made."""
    lookups.lock_rows(connection, volume_snapshot.c.id == snapshot_id, by=volume_snapshot.c.id)
    row = volume_views.one_snapshot(connection, snapshot_id, project_id)
    if is_any(connection, volume.c.snapshot_id == snapshot_id, volume.c.status == "creating"):
        raise ConflictError(f"Invalid snapshot: Snapshot {snapshot_id} is in use: a volume is being made of it.")
    allowed = {"available", "error", "error_deleting"} | ({row.status} if force else set())
    if row.status not in allowed or not _swap(connection, snapshot_id, row.status, "deleting", None):
        raise ConflictError(
            f"Invalid snapshot: Snapshot status must be available or error, but current status is: {row.status}."
        )
    return volume_views.one_snapshot(connection, snapshot_id)


def begin_delete_all(
    connection: sa.Connection, volume_id: str, *, project_id: str | None = None, force: bool = False
) -> Volume:
    """Begin to delete a volume and its snapshots: one job `volume_delete` for all of them. Raises as each would, and
    InvalidVolumeError for a volume that was transferred without its snapshots: those are another project's."""
    row = volume_views.one_volume(connection, volume_id, project_id, lock=True)
    taken = snapshots_by(connection, volumes=[row.id])
    if any(project_id not in (None, snapshot.project_id) for snapshot in taken):
        raise InvalidVolumeError(
            f"Invalid volume: Volume {row.id} has snapshots that stayed with the project that gave it away: have that "
            "project, or an administrator, delete those first."
        )
    for snapshot in sorted(taken, key=lambda snapshot: snapshot.id):  # the order in which others lock them
        if snapshot.status != "deleting":
            begin_delete_snapshot(connection, snapshot.id, force=force)
    return volumes.begin_delete(connection, volume_id, project_id=project_id, force=force, cascade=True)


def finish_delete_snapshot(connection: sa.Connection, snapshot_id: str, *, error: str | None = None) -> bool:
    """Record how it ended: without `error` the row goes."""
    return volumes.remove(connection, "snapshot", snapshot_id, error)


def begin_revert(
    connection: sa.Connection, volume_id: str, snapshot_id: str | None, *, project_id: str | None = None
) -> Volume:
    """Begin to give a volume back the data of its newest snapshot. Raises NovaliteError for another one, none, or one
    of another size, and ConflictError for a volume or a snapshot that is not at rest, in Cinder's words."""
    row = volume_views.one_volume(connection, volume_id, project_id, lock=True)
    taken = snapshots_by(connection, volumes=[row.id], project_id=project_id)
    if not taken:
        raise NovaliteError(f"Volume {row.id} doesn't have any snapshots.")
    newest = taken[-1]
    if snapshot_id != newest.id:
        raise NovaliteError(
            f"Specified snapshot {volume_type_records.check_shown(str(snapshot_id))} is None or not the latest one of "
            f"volume {row.id}."
        )
    which = f"Can't revert volume {row.id} to its latest snapshot {newest.id}."
    if newest.size_gb != row.size_gb:
        raise NovaliteError(f"{which} The volume size must be equal to the snapshot size.")
    if not volumes.swap(connection, row.id, ("available",), "reverting"):
        raise InvalidVolumeError(f"Invalid volume: {which} Volume's status must be 'available'.")
    if not _swap(connection, newest.id, "available", "restoring", None):
        raise ConflictError(f"Invalid snapshot: {which} Snapshot's status must be 'available'.")
    return volume_views.one_volume(connection, row.id)


def revert_named(connection: sa.Connection, owner: str, item: JsonMapping) -> str:
    """Begin what a playbook asks for by names, or go on with it. Returns the volume's id."""
    of = volume_sources.volume_named(connection, owner, item["volume"])
    snapshot = volume_sources.snapshot_named(connection, owner, item["snapshot"])
    if (of.status, snapshot.status, snapshot.volume_id) != ("reverting", "restoring", of.id):
        begin_revert(connection, of.id, snapshot.id)
    return of.id


def update_snapshot(
    connection: sa.Connection, snapshot_id: str, changes: JsonMapping, *, project_id: str | None = None
) -> Snapshot:
    """Change what is only shown: `name`, `description`, `metadata`; and `status`, for an administrator."""
    volume_views.one_snapshot(connection, snapshot_id, project_id)
    volumes.change(connection, "snapshot", snapshot_id, changes, ("description", "status"))
    return volume_views.one_snapshot(connection, snapshot_id)


def settle(connection: sa.Connection, snapshot_ids: t.Iterable[str], reason: str) -> list[str]:
    """Give an end to what is still under way on these snapshots, for its job is dead. Returns what it changed."""
    return [
        snapshot.id
        for snapshot in snapshots_by(connection, ids=snapshot_ids)
        if snapshot.status in ERRORS
        and _swap(connection, snapshot.id, snapshot.status, ERRORS[snapshot.status], reason)
    ]


def _swap(connection: sa.Connection, snapshot_id: str, before: str, after: str, error: str | None) -> bool:
    return volumes.swap(connection, snapshot_id, (before,), after, error, kind="snapshot")
