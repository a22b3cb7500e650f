# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a new volume is made of, and what follows from that: its type, its least size, its host."""

from __future__ import annotations

import math
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._rules.records import LARGEST, check_range
from ..catalog import volume_types
from ..db.tables_volumes import volume, volume_snapshot
from ..queries import lookups
from ..queries.views import image_of
from ..queries.volume_views import Volume, snapshots_by, volumes_by
from . import volume_access, volume_hosts

GIB = 1024**3

Params = t.Mapping[str, t.Any]


def source_of(connection: sa.Connection, project_id: str, params: Params) -> dict[str, t.Any]:
    """What a volume is made of: `kind`, and what follows from it."""
    given = [key for key in ("image", "snapshot_id", "source_volume_id") if params.get(key)]
    none = {"kind": None, "image": None, "bootable": False, "least": 1, "of": None, "format": None}
    if not given:
        return none
    if len(given) > 1:
        raise NovaliteError(f"a volume is made of one thing, not of {' and '.join(given)}: give one of them")
    if given[0] == "image":
        image = params["image"]
        if not isinstance(image, t.Mapping):
            image = lookups.image_by_id(connection, str(image), project_id)
        if image.get("status") not in (None, "active"):
            raise NovaliteError(
                f"Invalid image identifier or unable to access requested image: {image['id']} is {image['status']}"
            )
        least = max(1, image["min_disk_gb"], math.ceil(image["virtual_size"] / GIB))
        return {**none, "kind": "image", "image": image_of(image), "bootable": True, "least": least}
    if given[0] == "snapshot_id":
        query = sa.select(volume_snapshot).where(
            volume_snapshot.c.id == params["snapshot_id"], volume_snapshot.c.project_id == project_id
        )
        snapshot = connection.execute(query).first()
        if snapshot is None:
            raise NotFoundError(f"Snapshot {volume_types.check_shown(str(params['snapshot_id']))} could not be found.")
        if snapshot.status != "available":
            raise ConflictError(
                f"Invalid snapshot: Originating snapshot status must be one of available values, not {snapshot.status}."
            )
        of, least = volume_of(connection, snapshot.volume_id), snapshot.size_gb
    else:
        of = volume_of(connection, params["source_volume_id"], project_id)
        least = of["size_gb"]
        if of["status"] not in ("available", "in-use"):
            raise ConflictError(
                f"Invalid volume: Source volume {of['id']} status must be available or in-use, not {of['status']}."
            )
        if of["made_at"] is None:  # blank so far, and so is the new one
            return {**none, "least": least, "of": of, "format": of["format"]}
    kept = {"image": of["image"], "bootable": of["bootable"], "format": of["format"]}
    return {**none, **kept, "kind": given[0], "least": least, "of": of}


def type_of(connection: sa.Connection, project_id: str, params: Params, source: Params) -> dict[str, t.Any]:
    of = source["of"]
    asked = params.get("type")
    if of is None:
        found = volume_types.type_of(connection, asked)
        if asked is not None:
            volume_access.check(connection, asked, project_id, bool(params.get("private_types")))
    else:
        found = volume_types.type_of(connection, of["type_id"])
        if asked is not None and asked not in (found["id"], found["name"]):
            raise NovaliteError(
                f"Invalid volume type: {asked} is another one than that of the volume that it is made of, "
                f"{found['name']}: leave it out"
            )
    if found["id"] == volume_types.DEFAULT_ID:
        volume_types.ensure_default(connection)
    return found


def size_of(params: Params, source: Params) -> int:
    size = params.get("size_gb")
    if size is None:
        if source["kind"] is None and source["of"] is None:
            raise NovaliteError("Invalid input received: give the volume's size in GiB")
        return int(source["least"])
    check_range("volume size", size, 1, LARGEST)
    if size < source["least"]:
        raise NovaliteError(
            f"Invalid input received: Volume size {size}GB cannot be smaller than what it is made of needs: "
            f"{source['least']}GB."
        )
    return int(size)


def host_of(connection: sa.Connection, of_type: Params, params: Params, source: Params) -> str | None:
    """The compute host that a volume is made on now; None: any, or the one of its first instance."""
    if of_type["backend"] not in volume_types.LOCAL_BACKENDS:
        return None
    if source["of"] is not None and source["of"]["host"] is not None:
        if params.get("host") not in (None, source["of"]["host"]):
            raise ConflictError(
                f"volume {source['of']['id']} is on the compute host {source['of']['host']}: what is made of it cannot "
                f"be on {params['host']}"
            )
        return str(source["of"]["host"])
    if params.get("deferred"):
        return None
    if params.get("host") or source["kind"] is not None:
        zone, host = params.get("availability_zone"), params.get("host")
        return volume_hosts.choose(connection, of_type, zone, host, params.get("limit_to"))
    return None


def volume_of(connection: sa.Connection, volume_id: str, project_id: str | None = None) -> Volume:
    """The volume of this id, if the project (None: anybody) has it. Raises NotFoundError."""
    found = volumes_by(connection, ids=[volume_id], project_id=project_id)
    if not found:
        raise NotFoundError(f"Volume {volume_types.check_shown(volume_id)} could not be found.")
    return found[0]


def volume_named(connection: sa.Connection, owner: str, name: str) -> Volume:
    """The project's volume of this handle, or id. Raises NotFoundError, which tells what there is."""
    found = volumes_by(connection, names=[name], project_id=owner) or volumes_by(
        connection, ids=[name], project_id=owner
    )
    if not found:
        mine = sa.select(volume.c.name).where(volume.c.project_id == owner).order_by(volume.c.name)
        raise lookups.unknown("volume", name, connection.execute(mine).scalars())
    return found[0]


def snapshot_named(connection: sa.Connection, owner: str, name: str) -> dict[str, t.Any]:
    """The project's snapshot of this handle, or id. Raises NotFoundError, which tells what there is."""
    found = snapshots_by(connection, names=[name], project_id=owner) or snapshots_by(
        connection, ids=[name], project_id=owner
    )
    if not found:
        mine = sa.select(volume_snapshot.c.name).where(volume_snapshot.c.project_id == owner)
        raise lookups.unknown("snapshot", name, connection.execute(mine.order_by(volume_snapshot.c.name)).scalars())
    return found[0]
