# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sources of new volumes, and what follows: type, least size, host; and the host that works on a volume."""

from __future__ import annotations

import dataclasses
import math
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, InvalidVolumeError, NotFoundError, NovaliteError
from ..._json import JsonMapping
from ..._model.instance import Image
from ..._rules.records import LARGEST, check_range
from ..catalog import volume_types
from ..db.tables import compute_host, instance
from ..db.tables_volumes import volume, volume_snapshot
from ..placement.aggregates import DEFAULT_ZONE
from ..queries import lookups
from ..queries.catalog import volume_type_records
from ..queries.catalog.volume_type_records import Options, VolumeType
from ..queries.compute.views import image_of
from ..queries.counts import is_any
from ..queries.placement.zones import in_zone
from ..queries.volumes import server_backup_rows
from ..queries.volumes.volume_views import (
    BackupDisk,
    Snapshot,
    Volume,
    one_snapshot,
    one_volume,
    snapshots_by,
    volumes_by,
)

GIB = 1024**3
TABLES = {"volume": volume, "snapshot": volume_snapshot}  # by kind
Record = t.TypeVar("Record", Volume, Snapshot)


@dataclasses.dataclass(frozen=True)
class Source:
    """The source of a volume, and what follows from it."""

    kind: str | None = None  # image, snapshot_id, source_volume_id or backup; None: it is blank
    image: Image | None = None
    bootable: bool = False
    least: int = 1  # GiB
    of: Volume | None = None  # the volume that it, or its snapshot, is of
    format: str | None = None
    backup_disk: BackupDisk | None = None


def source_of(connection: sa.Connection, project_id: str, params: JsonMapping) -> Source:
    """Return the source of a volume. Raises NovaliteError."""
    kinds = [key for key in ("image", "snapshot_id", "source_volume_id", "backup") if params.get(key)]
    if not kinds:
        return Source()
    if len(kinds) > 1:
        raise NovaliteError(f"a volume is made of one thing, not of {' and '.join(kinds)}: give one of them")
    if kinds[0] == "image":
        image = params["image"]
        if not isinstance(image, t.Mapping):
            image = lookups.image_by_id(connection, str(image), project_id)
        if image.get("status") not in (None, "active"):
            raise NovaliteError(
                f"Invalid image identifier or unable to access requested image: {image['id']} is {image['status']}"
            )
        least = max(1, image["min_disk_gb"], math.ceil(image["virtual_size"] / GIB))
        return Source("image", image_of(image), True, least)
    if kinds[0] == "backup":
        return _source_of_backup(connection, project_id, str(params["backup"]), str(params.get("backup_disk") or ""))
    if kinds[0] == "snapshot_id":
        lookups.lock_rows(connection, volume_snapshot.c.id == str(params["snapshot_id"]), by=volume_snapshot.c.id)
        snapshot = one_snapshot(connection, str(params["snapshot_id"]), project_id)
        if snapshot.status != "available":
            raise ConflictError(
                f"Invalid snapshot: Originating snapshot status must be one of available values, not {snapshot.status}."
            )
        of, least = one_volume(connection, snapshot.volume_id), snapshot.size_gb
    else:
        of = one_volume(connection, params["source_volume_id"], project_id, lock=True)
        least = of.size_gb
        if of.status not in ("available", "in-use"):
            raise InvalidVolumeError(
                f"Invalid volume: Source volume {of.id} status must be available or in-use, not {of.status}."
            )
        check_stays(connection, of)
        if of.made_at is None:  # blank so far, and so is the new one
            return Source(least=least, of=of, format=of.format)
    return Source(kinds[0], of.image, of.bootable, least, of, of.format)


def check_stays(connection: sa.Connection, row: Volume) -> None:
    """Raise InvalidVolumeError for a volume that goes with an instance whose deletion has begun: its data may have been
    removed by now."""
    holders = [attachment.instance_uuid for attachment in row.attachments if attachment.delete_on_termination]
    if is_any(connection, instance.c.uuid.in_(holders), instance.c.deleted == 0, instance.c.task_state == "deleting"):
        raise InvalidVolumeError(
            f"Invalid volume: Volume {row.id} goes with its instance {holders[0]}, which is being deleted."
        )


def _source_of_backup(connection: sa.Connection, project_id: str, name: str, disk: str) -> Source:
    backup = server_backup_rows.backup_in(connection, project_id, name)
    if backup.status != server_backup_rows.AVAILABLE:
        raise ConflictError(f"Backup '{backup.name}' of instance {backup.instance_uuid} is {backup.status}: try later")
    for place, saved in enumerate(backup.disks):
        if disk and disk in (saved["name"], saved.get("volume")):
            of_backup: BackupDisk = {"backup": backup.id, "server": backup.instance_uuid, "disk": saved["name"]}
            least = max(1, math.ceil(saved["size"] / GIB))
            return Source("backup", bootable=place == 0, least=least, backup_disk=of_backup)
    has = ", ".join(saved["name"] for saved in backup.disks)
    raise NotFoundError(f"backup {backup.id} has no disk {disk[:64]!r}: name one of {has}, or a volume by its id")


def type_of(connection: sa.Connection, project_id: str, params: JsonMapping, source: Source) -> VolumeType:
    """The type of a new volume: what it is made of says which. Raises NotFoundError for one that the project may not
    use, NovaliteError for another one than that of what it is made of."""
    name = params.get("type")
    if source.of is not None:
        of_type = volume_type_records.type_of(connection, source.of.type_id)
        if name not in (None, of_type.id, of_type.name):
            raise NovaliteError(
                f"Invalid volume type: {name} is another one than that of the volume that it is made of, "
                f"{of_type.name}: leave it out"
            )
    elif name is not None:
        of_type = volume_types.type_usable(connection, name, project_id, bool(params.get("private_types")))
    else:
        of_type = volume_type_records.type_of(connection, None)
    if of_type.id == volume_type_records.DEFAULT_ID:
        volume_types.ensure_default(connection)
    return of_type


def size_of(params: JsonMapping, source: Source) -> int:
    """The size of a new volume in GiB. Raises NovaliteError for one that is too small."""
    size = params.get("size_gb")
    if size is None:
        if source.kind is None and source.of is None:
            raise NovaliteError("Invalid input received: give the volume's size in GiB")
        return source.least
    check_range("volume size", size, 1, LARGEST)
    if size < source.least:
        raise NovaliteError(
            f"Invalid input received: Volume size {size}GB cannot be smaller than what it is made of needs: "
            f"{source.least}GB."
        )
    return int(size)


def host_of(connection: sa.Connection, of_type: VolumeType, params: JsonMapping, source: Source) -> str | None:
    """The compute host that a volume is made on now; None: any, or the one of its first instance. Raises NovaliteError
    for a zone that there is none of, wherever the volume is made later."""
    if params.get("availability_zone"):
        _check_zone(connection, params["availability_zone"])
    if of_type.backend not in volume_types.LOCAL_BACKENDS:
        return None
    zone, host = params.get("availability_zone") or None, params.get("host")
    if source.of is not None and source.of.host is not None:
        if host not in (None, source.of.host):
            raise ConflictError(
                f"volume {source.of.id} is on the compute host {source.of.host}: what is made of it cannot be on {host}"
            )
        return source.of.host
    if params.get("deferred") or not (host or source.kind is not None):
        return None
    return choose_host(connection, of_type.name, of_type.options, zone, host, params.get("limit_to"))


def _check_zone(connection: sa.Connection, zone: str) -> None:
    # volumes are shown in the default one, be a host in it or not
    if zone != DEFAULT_ZONE and not is_any(connection, in_zone(connection, zone)):
        raise NovaliteError(
            f"Availability zone '{volume_type_records.check_shown(zone)}' is invalid: no compute host is in it."
        )


def choose_host(
    connection: sa.Connection,
    type_name: str,
    options: Options,
    zone: str | None = None,
    host: str | None = None,
    limit_to: t.Collection[str] | None = None,
) -> str:
    """The compute host for a new volume: `host`, else of `limit_to` (None: all) the one with the fewest GiB of volumes.

    Raises NotFoundError for an unknown host, ConflictError when no host that is up has this type (in that zone).
    """
    allowed = options.get("hosts")
    if host is not None:
        lookups.check_compute_hosts(connection, [host])
        if allowed is not None and host not in allowed:
            raise ConflictError(
                f"volume type {type_name} is not on the compute host {host}, only on {', '.join(allowed)}"
            )
        return host
    taken = sa.select(sa.func.coalesce(sa.func.sum(volume.c.size_gb), 0)).where(volume.c.host == compute_host.c.name)
    query = (
        sa.select(compute_host.c.name)
        .where(compute_host.c.up, compute_host.c.enabled)
        .order_by(taken.scalar_subquery(), compute_host.c.name)
    )
    for names in (allowed, limit_to):
        if names is not None:
            query = query.where(compute_host.c.name.in_(sorted(set(names))))
    if zone is not None:
        query = query.where(in_zone(connection, zone))
    chosen = connection.execute(query.limit(1)).scalar()
    if chosen is None:
        where = f" in zone {zone}" if zone is not None else ""
        where += f" among {', '.join(limit_to) or 'none'}" if limit_to is not None else ""
        raise ConflictError(f"no compute host that is up has room for volumes of type {type_name}{where}")
    return str(chosen)


def worker(connection: sa.Connection, of: Volume, limit_to: t.Collection[str] | None = None) -> str | None:
    """The compute host that works on this volume: its own, its instance's, or for shared storage any that is up (and in
    `limit_to`). None for one of which nothing is anywhere."""
    host = of.host or next((attachment.host for attachment in of.attachments if attachment.host is not None), None)
    if host is not None or of.backend in volume_types.LOCAL_BACKENDS:
        return host
    return choose_host(connection, of.type, of.options, limit_to=limit_to)


def volume_named(connection: sa.Connection, owner: str, name: str) -> Volume:
    """The project's volume of this handle, or id. Raises NotFoundError, which tells what there is."""
    return _named(connection, "volume", volumes_by, owner, name)


def snapshot_named(connection: sa.Connection, owner: str, name: str) -> Snapshot:
    """The project's snapshot of this handle, or id. Raises NotFoundError, which tells what there is."""
    return _named(connection, "snapshot", snapshots_by, owner, name)


def _named(connection: sa.Connection, kind: str, by: t.Callable[..., list[Record]], owner: str, name: str) -> Record:
    records = by(connection, names=[name], project_id=owner) or by(connection, ids=[name], project_id=owner)
    if not records:
        columns = TABLES[kind].c
        mine = sa.select(columns.name).where(columns.project_id == owner).order_by(columns.name)
        raise lookups.unknown(kind, name, connection.execute(mine).scalars())
    return records[0]
