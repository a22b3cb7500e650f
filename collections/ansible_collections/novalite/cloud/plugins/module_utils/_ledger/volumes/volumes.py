# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of volumes, the statuses they need, and the statuses they lead to: Cinder's table of states.

As with an instance's actions, what begins is a compare-and-swap of the status, and what ends is one back. A blank
volume needs no host until it is attached for the first time: it is made where its first instance is, so that nobody
has to guess, and is available at once. What is made of an image, a snapshot or another volume is made by a job.
"""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, InvalidVolumeError, NovaliteError, VolumeQuotaError
from ..._json import JsonMapping, JsonObject
from ..._model.yaml_types import complaint
from ..._rules.records import check_range, check_text
from ..catalog import volume_types
from ..db import clock
from ..db.tables_volumes import volume, volume_reservation, volume_snapshot
from ..instances import actions
from ..queries import lookups
from ..queries.catalog import volume_type_records
from ..queries.catalog.volume_type_records import VolumeType
from ..queries.counts import is_any
from ..queries.identity import quota_records
from ..queries.volumes import volume_views
from ..queries.volumes.volume_views import BEFORE_DATA, Volume, snapshots_by, used, volumes_by
from . import volume_sources
from .volume_sources import TABLES

# what a status that belongs to something under way becomes when that died
ERRORS = {"creating": "error", "downloading": "error", "deleting": "error_deleting", "extending": "error_extending"}
ERRORS |= {"reverting": "error"}  # half of its data may be the snapshot's
MAX_METADATA = 128
EXTEND = "extend_volume"  # Nova's name of the action
# Volumes of which copies are being made
COPIED = sa.select(volume.c.source_volume_id).where(
    volume.c.source_volume_id.is_not(None), volume.c.status == "creating"
)


def create_volume(connection: sa.Connection, project_id: str, params: JsonMapping) -> Volume:
    """Record a new volume. `creating` means that a job `volume_create` has to make it; else it is available.

    `params`: `size_gb` (GiB; may be left out where it is made of something), `name` (what is shown, any text, or
    none), `handle` (what playbooks call it, unique in the project; made of the name without), `type` (name or id),
    one of `image` (an image record, or its id), `snapshot_id`, `source_volume_id` and `backup` (a server's, by name or
    id, with its `backup_disk`, by its place or its volume's id), `availability_zone`, `host` (a compute host that has
    to have it), `limit_to` (those of which it may be chosen; None: all), `description`, `metadata`, `user_id`,
    `bootable`, `readonly`, and `deferred`: an instance that is about to be built makes it (boot from volume);
    `private_types`: a type that is not the project's may be named, as administrators may.

    Raises NotFoundError for what it names and the project does not have, QuotaError, and NovaliteError for a size that
    is too small or a combination that makes no sense.
    """
    lookups.lock_project(connection, project_id)
    source = volume_sources.source_of(connection, project_id, params)
    of_type = volume_sources.type_of(connection, project_id, params, source)
    size = volume_sources.size_of(params, source)
    host = volume_sources.host_of(connection, of_type, params, source)
    waits = source.kind is not None or host is not None or bool(params.get("deferred"))
    row = {
        **new_record(connection, "volume", project_id, params),
        "size_gb": size,
        "type_id": of_type.id,
        "format": source.format or volume_types.format_of(of_type),
        "host": host,
        "availability_zone": params.get("availability_zone") or None,
        "status": "creating" if waits else "available",
        "bootable": bool(params.get("bootable")) or source.bootable,
        "readonly": bool(params.get("readonly")),
        "multiattach": False,
        "image": source.image,
        "source_volume_id": params.get("source_volume_id"),
        "snapshot_id": params.get("snapshot_id"),
        "backup_disk": source.backup_disk,
    }
    connection.execute(sa.insert(volume).values(**row))
    check_quota(connection, project_id, size)
    return volume_views.one_volume(connection, row["id"])


def finish_create(connection: sa.Connection, volume_id: str, *, error: str | None = None) -> bool:
    """Record how its making ended; whether this changed anything."""
    after = "available" if error is None else "error"
    return swap(connection, volume_id, ("creating", "downloading"), after, error, made=error is None)


def made(connection: sa.Connection, volume_id: str) -> None:
    """Record that a volume's host has data for it, empty as that may be."""
    unmade = sa.and_(volume.c.id == volume_id, volume.c.made_at.is_(None))
    connection.execute(sa.update(volume).where(unmade).values(made_at=clock.seconds(connection)))


def is_nowhere(connection: sa.Connection, row: Volume) -> bool:
    """Tell whether no host has anything of a volume. In shared storage, one with a snapshot is made for that, or was
    about to be, as is a copy of something, and no host's name says so."""
    begun = row.is_unmade_copy and row.backend not in volume_types.LOCAL_BACKENDS
    unmade = row.made_at is None and row.host is None and not begun
    return unmade and not is_any(connection, volume_snapshot.c.volume_id == row.id)


def begin_delete(
    connection: sa.Connection,
    volume_id: str,
    *,
    project_id: str | None = None,
    force: bool = False,
    cascade: bool = False,
) -> Volume:
    """Begin to delete a volume. With `force` (an administrator) one that hangs somewhere as well, if nothing has it.

    `cascade`: its snapshots are on their way out, and go before it (volume_snapshots.begin_delete_all()).
    Raises ConflictError while an instance has it, it has snapshots, or is being made or changed.
    """
    row = volume_views.one_volume(connection, volume_id, project_id, lock=True)
    if row.is_attached:
        holder = f"instance {row.attachments[0].instance_uuid}" if row.attachments else "client that reserved it"
        raise InvalidVolumeError(f"Invalid volume: Volume {volume_id} is attached to the {holder}: detach it first.")
    if not cascade and is_any(connection, volume_snapshot.c.volume_id == volume_id):
        raise InvalidVolumeError(f"Invalid volume: Volume {volume_id} has dependent snapshots: delete those first.")
    copying = COPIED.with_only_columns(volume.c.id).where(volume.c.source_volume_id == volume_id)
    copy = connection.execute(copying.limit(1)).scalar()
    if copy is not None:
        raise InvalidVolumeError(f"Invalid volume: Volume {volume_id} is being copied to {copy}: wait for that.")
    allowed = ("available", "error", "error_deleting", "error_extending", "error_restoring", "error_managing")
    begin(connection, row, "delete", tuple({*allowed, row.status}) if force else allowed, "deleting")
    return volume_views.one_volume(connection, volume_id)


def finish_delete(connection: sa.Connection, volume_id: str, *, error: str | None = None) -> bool:
    """Record how its deletion ended: without `error` the row goes."""
    if error is None and is_any(connection, volume_snapshot.c.volume_id == volume_id):
        error = "some of its snapshots could not be deleted"
    return remove(connection, "volume", volume_id, error)


def begin_extend(
    connection: sa.Connection,
    volume_id: str,
    size_gb: int,
    *,
    project_id: str | None = None,
    online: bool = True,
    request_id: str | None = None,
    user_id: str | None = None,
) -> Volume:
    """Begin to give a volume `size_gb` GiB; `new_size_gb` says so until it has them, as does its instance's action log.

    `online`: also while an instance has it, as Cinder's API does from 3.42 on. Raises ConflictError, QuotaError,
    and NovaliteError for a size that is no larger.
    """
    lookups.lock_project(connection, volume_views.one_volume(connection, volume_id, project_id).project_id)
    row = volume_views.one_volume(connection, volume_id, project_id, lock=True)
    check_range("volume size", size_gb, 1)
    if size_gb <= row.size_gb:
        raise NovaliteError(
            f"Invalid input received: New size for extend must be greater than current size. (current: "
            f"{row.size_gb}, extended: {size_gb})."
        )
    begin(connection, row, "extend", ("available", "in-use") if online else ("available",), "extending")
    values: JsonObject = {"new_size_gb": size_gb}
    if not row.attachments and is_nowhere(connection, row):
        values = {"size_gb": size_gb, "status": row.status}
    write(connection, "volume", volume_id, values)
    details = {holder.instance_uuid: {"volume_id": volume_id} for holder in row.attachments}
    actions.start(connection, EXTEND, details, request_id, user_id=user_id, project_id=row.project_id)
    check_quota(connection, row.project_id, size_gb, made=None)
    return volume_views.one_volume(connection, volume_id)


def finish_extend(connection: sa.Connection, volume_id: str, *, error: str | None = None) -> bool:
    """Record how it ended: in-use again where an instance has it."""
    volumes = volumes_by(connection, ids=[volume_id])
    if not volumes or volumes[0].status != "extending":
        return False
    row = volumes[0]
    rest = "in-use" if row.is_attached else "available"
    if not swap(connection, volume_id, ("extending",), rest if error is None else "error_extending", error):
        return False
    size = row.size_gb if error is not None else row.new_size_gb or row.size_gb
    write(connection, "volume", volume_id, {"size_gb": size, "new_size_gb": None})
    _tell_instances(connection, row, error)
    return True


def finish_revert(connection: sa.Connection, volume_id: str, *, error: str | None = None) -> bool:
    """Record how its way back to a snapshot ended."""
    done = swap(connection, volume_id, ("reverting",), "available" if error is None else "error", error)
    if done:
        _release_snapshot(connection, volume_id)
    return done


def _release_snapshot(connection: sa.Connection, volume_id: str) -> None:
    for restoring in snapshots_by(connection, volumes=[volume_id]):
        swap(connection, restoring.id, ("restoring",), "available", kind="snapshot")


def _tell_instances(connection: sa.Connection, row: Volume, error: str | None) -> None:
    """End the action of those that have a volume which was being extended."""
    actions.finish(connection, EXTEND, [(holder.instance_uuid, holder.host, error) for holder in row.attachments])


def update_volume(
    connection: sa.Connection, volume_id: str, changes: JsonMapping, *, project_id: str | None = None
) -> Volume:
    """Change what is only shown or meant: `name` (shown), `description`, `metadata`, `bootable`, `readonly`."""
    row = volume_views.one_volume(connection, volume_id, project_id)
    if changes.get("readonly") not in (None, row.readonly) and row.attachments:
        raise InvalidVolumeError(f"Invalid volume: Volume {volume_id} is in use: detach it first.")
    change(connection, "volume", volume_id, changes, ("description", "bootable", "readonly"))
    return volume_views.one_volume(connection, volume_id)


def retype(connection: sa.Connection, volume_id: str, of_type: VolumeType, *, project_id: str | None = None) -> Volume:
    """Let a volume be of another type that stores it where it is, or of any while it is nowhere yet.

    Raises ConflictError where its data would have to move, and for a volume that is of the type, or not at rest.
    """
    row = volume_views.one_volume(connection, volume_id, project_id, lock=True)
    if row.type_id == of_type.id:
        raise InvalidVolumeError(f"Invalid volume: Volume {volume_id} is of the type {of_type.name} already.")
    nowhere = is_nowhere(connection, row)
    if not nowhere and (row.backend, row.options) != (of_type.backend, of_type.options):
        raise InvalidVolumeError(
            f"Invalid volume: the data of volume {volume_id} would have to move: make a new volume of the type "
            f"{of_type.name}."
        )
    if row.status not in ("available", "in-use"):
        raise InvalidVolumeError(
            f"Invalid volume: Volume {volume_id} status must be available or in-use to retype it, but current status "
            f"is: {row.status}."
        )
    if of_type.id == volume_type_records.DEFAULT_ID:
        volume_types.ensure_default(connection)
    own_format = {"format": volume_types.format_of(of_type)} if nowhere else {}
    write(connection, "volume", volume_id, {"type_id": of_type.id, **own_format})
    return volume_views.one_volume(connection, volume_id)


def reset_status(connection: sa.Connection, volume_id: str, status: str) -> Volume:
    """Set the status that an administrator gives (os-reset_status); nothing is done to the volume itself. An available
    one is kept for no client. Raises ConflictError for a copy that was never made, and so has no data to be used."""
    row = volume_views.one_volume(connection, volume_id)
    if row.is_unmade_copy and status not in BEFORE_DATA:
        raise InvalidVolumeError(
            f"Invalid volume: Volume {volume_id} has no data of what it was to be made of, so it cannot be {status}: "
            "delete it, and make another one."
        )
    write(connection, "volume", volume_id, {"status": status, "new_size_gb": None})
    if status == "available":
        connection.execute(sa.delete(volume_reservation).where(volume_reservation.c.volume_id == volume_id))
    return volume_views.one_volume(connection, volume_id)


def settle(connection: sa.Connection, volume_ids: t.Iterable[str], reason: str) -> list[str]:
    """Give an end to what is still under way on these volumes, for its job is dead. Returns those that this changed."""
    changed = []
    for record in volumes_by(connection, ids=volume_ids):
        after = ERRORS.get(record.status)
        if after is not None and swap(connection, record.id, (record.status,), after, reason):
            write(connection, "volume", record.id, {"new_size_gb": None})
            if record.status == "extending":
                _tell_instances(connection, record, reason)
            elif record.status == "reverting":
                _release_snapshot(connection, record.id)
            changed.append(record.id)
    return changed


# --- Shared with attachments and snapshots --------------------------------------------------------------------------


def begin(connection: sa.Connection, row: Volume, what: str, allowed: t.Collection[str], status: str) -> None:
    """Swap the status of the volume from one of `allowed` to `status`. Raises ConflictError in Cinder's words."""
    if row.status not in allowed or not swap(connection, row.id, (row.status,), status):
        raise InvalidVolumeError(
            f"Invalid volume: Volume {row.id} status must be {' or '.join(sorted(allowed))} to {what} it, but "
            f"current status is: {row.status}."
        )


def swap(
    connection: sa.Connection,
    own_id: str,
    before: t.Collection[str],
    after: str,
    error: str | None = None,
    made: bool = False,
    kind: str = "volume",
) -> bool:
    """Have the status of a volume or snapshot (`kind`) become `after`, if it is one of `before` still."""
    table = TABLES[kind]
    now = clock.seconds(connection)
    fault = None if error is None else {"code": 500, "message": actions.one_line(error), "created": now}
    data = {"made_at": sa.func.coalesce(volume.c.made_at, now)} if made else {}
    mine = sa.and_(table.c.id == own_id, table.c.status.in_(sorted(before)))
    changed = sa.update(table).where(mine).values(status=after, updated_at=now, fault=fault, **data)
    return bool(connection.execute(changed).rowcount)


def write(connection: sa.Connection, kind: str, own_id: str, values: JsonMapping) -> None:
    """Change the row of a volume or snapshot; nothing is done to its data."""
    table = TABLES[kind]
    connection.execute(
        sa.update(table).where(table.c.id == own_id).values(**values, updated_at=clock.seconds(connection))
    )


def change(connection: sa.Connection, kind: str, own_id: str, changes: JsonMapping, columns: t.Collection[str]) -> None:
    """Write those of `changes` that say what a volume or snapshot is called: `name`, `metadata`, and its `columns`."""
    values = {key: changes[key] for key in columns if key in changes}
    if "name" in changes:
        values["display_name"] = check_text(f"{kind} name", changes["name"] or "")
    if "metadata" in changes:
        values["metadata"] = checked_metadata(changes["metadata"])
    if values:
        write(connection, kind, own_id, values)


def remove(connection: sa.Connection, kind: str, own_id: str, error: str | None) -> bool:
    """Record how a deletion ended: without `error` the row goes. Returns whether this changed anything."""
    if error is not None:
        return swap(connection, own_id, ("deleting",), "error_deleting", error, kind=kind)
    table = TABLES[kind]
    mine = sa.and_(table.c.id == own_id, table.c.status == "deleting")
    return bool(connection.execute(sa.delete(table).where(mine)).rowcount)


def new_record(connection: sa.Connection, kind: str, project_id: str, params: JsonMapping) -> JsonObject:
    """The columns that a new volume has in common with a new snapshot. Its handle, what playbooks call it, is what
    `params` say, else its name if that is free, else one with its id. Raises ConflictError for a handle that is taken.
    """
    own_id, now, name = str(uuid.uuid4()), clock.seconds(connection), params.get("name") or None
    if name is not None:
        check_text(f"{kind} name", name)
    handle = params.get("handle") or name or f"{kind}-{own_id[:8]}"
    free = free_handle(connection, kind, project_id, handle, own_id)
    if params.get("handle") and free != handle:
        raise ConflictError(f"the project has a {kind} {handle!r} already: give it another name")
    return {
        "id": own_id,
        "project_id": project_id,
        "user_id": params.get("user_id"),
        "name": free,
        "display_name": name,
        "description": params.get("description"),
        "metadata": checked_metadata(params.get("metadata") or {}),
        "created_at": now,
        "updated_at": now,
    }


def free_handle(connection: sa.Connection, kind: str, project_id: str, handle: str, own_id: str) -> str:
    """Return `handle` if no volume (or snapshot: `kind`) of the project is called so, else one made of it."""
    columns = TABLES[kind].c
    taken = is_any(connection, columns.project_id == project_id, columns.name == handle)
    return f"{handle[:200]}-{own_id}" if taken else handle


def check_quota(connection: sa.Connection, project_id: str, size_gb: int, made: str | None = "volumes") -> None:
    """Raise QuotaError if the project has more than it may, what was just written included, in Cinder's words. It
    `made` one of "volumes" or "snapshots", or only let a volume grow (None)."""
    limits, taken = quota_records.quota_limits(connection, project_id), used(connection, project_id)
    largest = limits["per_volume_gigabytes"]
    if made != "snapshots" and 0 <= largest < size_gb:
        raise VolumeQuotaError(f"Requested volume size {size_gb}G is larger than maximum allowed limit {largest}G.")
    if made is not None and 0 <= limits[made] < taken[made]:
        raise VolumeQuotaError(
            f"{made[:-1].capitalize()}LimitExceeded: Maximum number of {made} allowed ({limits[made]}) exceeded for "
            f"quota '{made}'."
        )
    if 0 <= limits["gigabytes"] < taken["gigabytes"]:
        raise VolumeQuotaError(
            f"VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested "
            f"{size_gb}G, quota is {limits['gigabytes']}G and {taken['gigabytes'] - size_gb}G has been consumed."
        )


def checked_metadata(metadata: JsonMapping) -> dict[str, str]:
    """Keys and values as texts. Raises NovaliteError for what cannot be stored."""
    if len(metadata) > MAX_METADATA:
        raise NovaliteError(f"{len(metadata)} metadata items, and {MAX_METADATA} is the limit")
    for key, value in metadata.items():
        if not isinstance(value, str):
            raise NovaliteError(complaint(f"metadata {key!r}", value))
        if not check_text("metadata key", key) or len(value) > 255:
            raise NovaliteError(f"metadata {key!r}: give a key and a value of at most 255 characters")
    return dict(metadata)
