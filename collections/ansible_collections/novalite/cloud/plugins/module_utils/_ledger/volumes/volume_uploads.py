# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that are made of volumes: the volume is `uploading`, the image `saving`, until a host has copied the data."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._guest import image_properties
from ..._guest.image_properties import PRIVATE
from ..._json import JsonMapping, JsonObject
from ..._rules.records import checked_names
from ..._rules.volume_asks import CONTAINER
from ..catalog import image_states
from ..catalog.image_records import delete_images, insert_image
from ..catalog.volume_types import LOCAL_BACKENDS
from ..db import clock
from ..db.tables import image
from ..queries.volumes import volume_views
from ..queries.volumes.volume_views import Volume, volumes_by
from . import volume_attachments, volume_sources, volumes

UPLOADING = "uploading"
FORMATS = ("raw", "qcow2")
_OF = f"{PRIVATE}volume"  # property of an image: the volume that it is made of
_FILE = ("source", "checksum", "size", "virtual_size")


def begin_upload(
    connection: sa.Connection,
    volume_id: str,
    *,
    name: str,
    disk_format: str = "raw",
    visibility: str = "private",
    protected: bool = False,
    force: bool = False,
    project_id: str | None = None,
    limit_to: t.Collection[str] | None = None,
) -> tuple[Volume, str]:
    """Begin to make an image of a volume, which a job `volume_upload` is to do. Returns the volume, and the image's id.

    `force`: also while an instance has the volume, as if its power had failed. `limit_to` are the compute hosts that
    make a volume of which nothing was made yet (None: all). Raises NotFoundError, ConflictError for a volume that is
    not at rest, QuotaError, NovaliteError for a format that no image can have.
    """
    row = volume_views.one_volume(connection, volume_id, project_id)
    checked_names("image", [{"name": name}], spaces=True)
    if disk_format not in FORMATS:
        raise NovaliteError(
            f"Invalid input received: Invalid volume: an image of volume {row.id} has the disk_format "
            f"{' or '.join(FORMATS)}, not {disk_format[:40]!r}"
        )
    volumes.begin(connection, row, "upload", ("available", "in-use") if force else ("available",), UPLOADING)
    if row.host is None and row.backend in LOCAL_BACKENDS:  # nothing was made of it yet: now it is
        zone = row.availability_zone
        host = volume_sources.choose_host(connection, row.type, row.options, zone, limit_to=limit_to)
        volumes.write(connection, "volume", row.id, {"host": host})
    of: JsonObject = dict(row.image or {})
    properties = image_properties.without_host_mount(of.get("properties") or {})
    image_record = {
        **{"id": str(uuid.uuid4()), "owner": row.project_id, "name": name, "tags": []},
        **{"visibility": visibility, "protected": protected, "os_hidden": False},
        **{"disk_format": disk_format, "container_format": CONTAINER, "cmdline": of.get("cmdline", "")},
        **{"min_disk_gb": row.size_gb, "min_ram_mb": of.get("min_ram_mb", 0), "properties": properties},
    }
    image_id = insert_image(connection, image_record, inherited=properties)
    ready = {"status": "saving", "kernel": of.get("kernel"), "ramdisk": of.get("ramdisk")}
    # not to be seen: who made it is of no use to anybody
    marked = {"properties": {**properties, _OF: row.id}}
    connection.execute(sa.update(image).where(image.c.id == image_id).values(**ready, **marked))
    return volume_views.one_volume(connection, row.id), image_id


def finish_upload(
    connection: sa.Connection, volume_id: str, *, error: str | None = None, file_record: JsonMapping | None = None
) -> bool:
    """Record how it ended: `file_record` has source, checksum, size and virtual_size of the file on the controller;
    with neither that nor an `error` no host had anything to do. The volume is what it was before; an image that was
    deleted meanwhile stays so, and one that failed goes."""
    rows = volumes_by(connection, ids=[volume_id])
    waiting = image_of_upload(volume_id)
    image_id = connection.execute(sa.select(image.c.id).where(waiting)).scalar()
    if error is None and file_record is not None and image_id is not None:
        values = {field: file_record[field] for field in _FILE}
        connection.execute(
            sa.update(image).where(waiting).values(**values, status="active", updated_at=clock.seconds(connection))
        )
        image_states.check_size(connection, image_id)
    else:
        delete_images(connection, waiting)
    if not rows or rows[0].status != UPLOADING:
        return image_id is not None
    rest = "in-use" if rows[0].is_attached else "available"
    changed = volumes.swap(
        connection, volume_id, (UPLOADING,), rest, error, made=error is None and file_record is not None
    )
    if error is None and file_record is None:
        volume_attachments.unbind(connection, [volume_id])
    return changed


def image_of_upload(volume_id: str) -> sa.ColumnElement[bool]:
    """The condition that an image is being made of this volume."""
    return sa.and_(image.c.status == "saving", image.c.properties[_OF].as_string() == volume_id)


def work_of(connection: sa.Connection, row: Volume) -> JsonObject | None:
    """Return what step disk_snapshot is given beside the volume's data; None if the image was deleted meanwhile."""
    query = sa.select(image.c.id, image.c.disk_format).where(image_of_upload(row.id))
    image_row = connection.execute(query).first()
    if image_row is None:
        return None
    return {"uuid": row.id, "image_id": image_row.id, "disk_format": image_row.disk_format}


def settle(connection: sa.Connection, volume_ids: t.Iterable[str], reason: str) -> list[str]:
    """Give an end to uploads whose job is dead. Returns the volumes that this changed."""
    return [volume_id for volume_id in sorted(set(volume_ids)) if finish_upload(connection, volume_id, error=reason)]


def upload_named(connection: sa.Connection, owner: str, item: JsonMapping) -> str | None:
    """Begin what a playbook asks for by names; None where the project has the image. Returns the volume's id."""
    of = volume_sources.volume_named(connection, owner, item["volume"])
    if of.status == UPLOADING:
        return of.id
    name = str(item.get("image_name") or "")
    mine = sa.select(image.c.id).where(
        image.c.owner == owner, sa.or_(image.c.name == name, image.c.display_name == name)
    )
    if connection.execute(mine.limit(1)).first() is not None:
        return None
    disk_format = item.get("disk_format") or "qcow2"
    begin_upload(connection, of.id, name=name, project_id=owner, disk_format=disk_format, force=True)
    return of.id
