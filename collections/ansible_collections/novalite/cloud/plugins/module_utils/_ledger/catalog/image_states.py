# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An image's data: when they may come in, whose upload counts, and what becomes of them.

Each change of status is a compare-and-swap. An upload has a name of its own (`transfer`): one that lost its image, for
it was silent for too long or the image was deleted, can write nothing any more.
"""

from __future__ import annotations

import os
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError
from ..._guest.image_properties import MOST_DRIVES, without_host_mount
from ..._host.files import is_uuid
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..db.tables import image, instance
from ..db.tables_images import image_id_used, image_task
from ..db.tables_volumes import volume
from ..identity import quotas
from ..queries.counts import image_bytes, is_any
from ..queries.identity import quota_records
from ..queries.lookups import lock_project
from . import image_store
from .image_records import WAITING

Record = JsonObject

MIB = image_store.MIB
SILENT = 600.0  # seconds after which an upload that reports nothing is over
FORGOTTEN = 3600.0  # after which a file that belongs to nothing goes
RECEIVING = ("saving", "uploading", "importing")


def begin(connection: sa.Connection, image_id: str, before: str, after: str) -> str:
    """Change an image's status for an upload, or an import. Returns the name of that. Raises ConflictError."""
    transfer = str(uuid.uuid4())
    values = {"status": after, "transfer": transfer, "fault": None, "updated_at": clock.seconds(connection)}
    if not _swap(connection, image_id, sa.and_(image.c.status == before, image.c.transfer.is_(None)), values):
        status = connection.execute(sa.select(image.c.status).where(image.c.id == image_id)).scalar()
        if status is None:
            raise NotFoundError(f"No image found with ID {image_id}")
        raise ConflictError(f"Image status transition from {status} to {after} is not allowed")
    return transfer


def progress(connection: sa.Connection, image_id: str, transfer: str, size: int) -> None:
    """Note that `size` bytes have come. Raises NotFoundError for an upload that does not count any more, QuotaError."""
    _write(connection, image_id, transfer, {"size": size})
    check_size(connection, image_id)


def finish(
    connection: sa.Connection, image_id: str, transfer: str, values: JsonMapping, by_operator: bool = False
) -> None:
    """Write what the data are (status, source, checksum, md5, size, virtual_size). Raises as progress().

    Unless they came `by_operator`, hosts may not mount them, whatever was said before they were there.
    """
    properties = connection.execute(
        sa.select(image.c.properties).where(image.c.id == image_id).with_for_update()
    ).scalar()
    if properties and not by_operator:
        values = {**values, "properties": without_host_mount(properties)}
    _write(connection, image_id, transfer, {**values, "transfer": None})
    check_size(connection, image_id)


def give_up(connection: sa.Connection, image_id: str, transfer: str, fault: str | None) -> None:
    """Have the image wait for data again. Nothing happens if the upload does not count any more."""
    values = {**WAITING, "transfer": None, "fault": fault, "updated_at": clock.seconds(connection)}
    _swap(connection, image_id, image.c.transfer == transfer, values)


def set_active(connection: sa.Connection, image_id: str, active: bool) -> bool:
    """Deactivate or reactivate an image; whether it is so now."""
    after = "active" if active else "deactivated"
    states = image.c.status.in_(["active", "deactivated"])
    return _swap(connection, image_id, states, {"status": after, "updated_at": clock.seconds(connection)})


def room(connection: sa.Connection, owner: str) -> int | None:
    """Return the bytes of images that the project may still add; None: any number."""
    limit = quota_records.quota_limits(connection, owner)["image_size_total"] if owner else quota_records.UNLIMITED
    if limit == quota_records.UNLIMITED:
        return None
    return max(0, limit * MIB - image_bytes(connection, owner))


def check_size(connection: sa.Connection, image_id: str) -> None:
    """Raise QuotaError if the image's owner has more data than it may, what was just written included."""
    owner = connection.execute(sa.select(image.c.owner).where(image.c.id == image_id)).scalar()
    if owner:
        lock_project(connection, owner)
        quotas.check_quota(connection, owner, "image_size_total", -(-image_bytes(connection, owner) // MIB), "MiB")


def is_needed(connection: sa.Connection, source: str) -> bool:
    """Tell whether an image has its data in this file, an existing instance was made from it, or a volume is being made
    from it. Another host may have to fetch it for them: after a failure, a move, an evacuation."""
    boot_files = [image.c[kind]["source"].as_string() == source for kind in ("kernel", "ramdisk")]
    if is_any(connection, sa.or_(image.c.source == source, *boot_files)):
        return True
    images = (instance.c.image, instance.c.rescue_image, instance.c.disk_image)
    inside = (instance.c.cdroms[drive] for drive in range(MOST_DRIVES))
    columns = [*images, *inside, *(column[kind] for column in images for kind in ("kernel", "ramdisk"))]
    named = sa.or_(*(column["source"].as_string() == source for column in columns))
    if is_any(connection, instance.c.deleted == 0, named):
        return True
    waiting = volume.c.status.in_(["creating", "downloading"])
    return is_any(connection, waiting, volume.c.image["source"].as_string() == source)


def remove_file(connection: sa.Connection, home: str | None, image_id: str) -> None:
    """Remove what a deleted image left in the store, unless it is still needed: then sweep() does, later. To be called
    once the deletion is certain: a file does not come back with the record."""
    path = image_store.file_of(home, image_id)
    image_store.remove(image_store.staged_of(home, image_id))
    if os.path.exists(path) and not is_needed(connection, path):
        image_store.remove(path)


def sweep(connection: sa.Connection, home: str | None) -> None:
    """End uploads that died with their process, and remove files that belong to nothing any more. A file of an image
    that the ledger never had stays: it came after the copy that the ledger was restored from (unknown_files())."""
    now = clock.now(connection)
    silent = sa.and_(image.c.transfer.is_not(None), image.c.updated_at < clock.before(connection, SILENT))
    dead = list(connection.execute(sa.select(image.c.id).where(silent)).scalars())
    if dead:
        values = {**WAITING, "transfer": None, "fault": "the upload ended before its end"}
        connection.execute(sa.update(image).where(image.c.id.in_(dead), silent).values(**values))
        open_tasks = sa.and_(image_task.c.image_id.in_(dead), image_task.c.status == "processing")
        connection.execute(
            sa.update(image_task).where(open_tasks).values(status="failure", message=values["fault"], updated_at=now)
        )
    for name, written in image_store.entries(home):
        if written > now - FORGOTTEN:
            continue
        path = os.path.join(image_store.directory(home), name)
        if name.endswith(image_store.PART):
            image_store.remove(path)
            continue
        image_id = _image_of(name)
        status = connection.execute(sa.select(image.c.status).where(image.c.id == image_id)).scalar()
        if status is None and _is_unknown(connection, image_id):
            continue
        # others than those of clients are among them, such as what the controller has fetched for its hosts
        useless = status not in RECEIVING if name.startswith(".") else status is None
        if useless and not is_needed(connection, path):
            image_store.remove(path)


def unknown_files(connection: sa.Connection, home: str | None) -> list[str]:
    """List the files in the store that are of no image which the ledger has or had, and that nothing is made of."""
    names = [name for name, _written in image_store.entries(home) if not name.endswith(image_store.PART)]
    paths = {os.path.join(image_store.directory(home), name): _image_of(name) for name in sorted(names)}
    return [
        path
        for path, image_id in paths.items()
        if not is_any(connection, image.c.id == image_id)
        and _is_unknown(connection, image_id)
        and not is_needed(connection, path)
    ]


def _is_unknown(connection: sa.Connection, image_id: str) -> bool:
    """Tell whether this is the id of an image that was never in the ledger, and not the name of another file."""
    return is_uuid(image_id) and not is_any(connection, image_id_used.c.id == image_id)


def _image_of(name: str) -> str:
    """The id of the image that a file in the store is of."""
    return name.removeprefix(".").removesuffix(image_store.STAGED)


def _write(connection: sa.Connection, image_id: str, transfer: str, values: JsonMapping) -> None:
    mine = image.c.transfer == transfer
    if not _swap(connection, image_id, mine, {**values, "updated_at": clock.seconds(connection)}):
        raise NotFoundError(f"Image {image_id} could not be found after upload. It may have been deleted meanwhile.")


def _swap(connection: sa.Connection, image_id: str, expected: sa.ColumnElement[bool], values: JsonMapping) -> bool:
    return bool(connection.execute(sa.update(image).where(image.c.id == image_id, expected).values(**values)).rowcount)
