# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images by id, as clients of the Image API handle them: what is said about one.

The operator's files are the operation `image`'s, what clients upload is image_states.py's.
"""

from __future__ import annotations

import re
import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._guest import image_properties
from ..._guest.image_properties import PRIVATE
from ..._json import JsonMapping
from ..._rules.records import check_range, check_text
from ..db import clock
from ..db.tables import image
from ..db.tables_images import image_id_used, image_member, image_task
from ..identity import quotas
from ..queries.catalog.image_views import Member, Record, checked_properties, handle, members, sharing
from ..queries.counts import is_any, owned
from ..queries.lookups import lock_project

MOST = 128  # tags, properties and members of an image; Glance's defaults
FIELDS = (  # what a client says about an image; the rest comes with its data
    "disk_format",
    "container_format",
    "visibility",
    "min_disk_gb",
    "min_ram_mb",
    "cmdline",
    "protected",
    "os_hidden",
    "owner",
)
# what is known of an image that waits for its data
WAITING: JsonMapping = {"source": "", "checksum": "", "md5": None, "size": 0, "virtual_size": 0, "status": "queued"}


_EC2_FORM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){2}-[0-9a-f]")  # 17 digits of a UUID


def insert_image(
    connection: sa.Connection, attributes: JsonMapping, by_operator: bool = False, inherited: JsonMapping | None = None
) -> str:
    """Record an image without data, in status queued. Returns its id.

    `attributes`: owner, name (None: without), id (None: a new one), properties, tags, and FIELDS; `by_operator`: it may
    say that hosts may mount it; `inherited`: properties that a server's image brings, which are taken as they are.
    Raises NovaliteError for what cannot be stored, ForbiddenError for what is not the caller's to say, ConflictError
    for an id that is taken, QuotaError.
    """
    owner, name = attributes["owner"], attributes["name"]
    image_id, now = attributes.get("id") or str(uuid.uuid4()), clock.seconds(connection)
    check_id(connection, image_id)
    lock_project(connection, owner)
    properties, tags = _checked(image_id, attributes, inherited or {})
    image_properties.checked_host_mount(f"image {image_id}", {}, properties, by_operator)
    connection.execute(
        sa.insert(image).values(
            **{field: attributes[field] for field in FIELDS},
            id=image_id,
            name=handle(connection, owner, name, image_id),
            display_name=name or "",
            **WAITING,
            properties=properties,
            tags=tags,
            created_at=now,
            updated_at=now,
        )
    )
    check_count(connection, owner)
    return image_id


def update_image(connection: sa.Connection, before: JsonMapping, after: JsonMapping, by_operator: bool = False) -> None:
    """Write what of `after` (name, properties, tags, and FIELDS) differs from the record.

    A new name is the playbooks' name for it, too, unless another image of the owner's has it. A property that stays as
    it was is not judged: an image that was recorded with a bad one can be tagged and mended. Raises as insert_image().
    """
    stored = connection.execute(
        sa.select(image.c.name, image.c.owner, image.c.properties).where(image.c.id == before["id"]).with_for_update()
    ).one()
    properties, tags = _checked(before["id"], after, stored.properties)
    image_properties.checked_host_mount(f"image {before['id']}", stored.properties, properties, by_operator)
    kept = {key: value for key, value in stored.properties.items() if key.startswith(PRIVATE)}
    values: Record = {field: after[field] for field in FIELDS}
    if (after["name"] or "") != (before["name"] or ""):
        values["display_name"] = after["name"] or ""
    if "display_name" in values or after["owner"] != stored.owner:
        values["name"] = handle(connection, after["owner"], after["name"], before["id"])
    connection.execute(
        sa.update(image)
        .where(image.c.id == before["id"])
        .values(**values, properties={**properties, **kept}, tags=tags, updated_at=clock.seconds(connection))
    )
    if after["owner"] != stored.owner:
        check_count(connection, after["owner"])


def check_free(connection: sa.Connection, project_id: str, name: str) -> None:
    """Raise ConflictError for a name that one of the project's images has, for those who want this one and no other."""
    lock_project(connection, project_id)
    if is_any(connection, image.c.owner == project_id, image.c.name == name):
        raise ConflictError(f"AMI name {name} is already in use")


def register(connection: sa.Connection, project_id: str, name: str, description: str, of: JsonMapping) -> str:
    """Record an image of the project's own with the files of the image `of`, which it sees; returns its id.

    A file is there for as long as one image needs it. The name is one that checked_names() lets through. Raises
    ConflictError for a name that is taken, QuotaError, NovaliteError for an image without data or with a bad property.
    """
    check_free(connection, project_id, name)
    row = dict(connection.execute(sa.select(image).where(image.c.id == of["id"])).mappings().one())
    if row["status"] != "active":
        raise NovaliteError(f"image {of['name']!r} is {row['status']}: it has no data to register")
    properties = image_properties.without_host_mount(image_properties.public_properties(row["properties"]))
    image_properties.check_new(of["name"] or of["id"], properties, {})
    if description:
        properties |= checked_properties(name, {"description": description})
    now = clock.seconds(connection)
    own = {"id": str(uuid.uuid4()), "owner": project_id, "name": name, "display_name": None, "visibility": "private"}
    rest = {"protected": False, "tags": [], "properties": properties, "created_at": now, "updated_at": now}
    connection.execute(sa.insert(image).values(**{**row, **own, **rest}))
    check_count(connection, project_id)
    return str(own["id"])


def delete_images(connection: sa.Connection, which: sa.ColumnElement[bool]) -> None:
    """Delete the images for which the condition holds, and keep their ids from being used again (OSSN-0075).

    Instances carry a copy of the record: those that were launched from one are not touched.
    """
    # two who delete the same image: the second one waits here, and then finds nothing
    ids = connection.execute(sa.select(image.c.id).where(which).with_for_update()).scalars().all()
    if ids:
        connection.execute(sa.delete(image).where(image.c.id.in_(ids)))
        connection.execute(sa.insert(image_id_used), [{"id": image_id} for image_id in ids])


def protected_of(connection: sa.Connection, owner: str, names: t.Iterable[str]) -> list[str]:
    """List which of these names of the owner's images are those of protected ones."""
    which = (image.c.owner == owner, image.c.name.in_(list(names)), image.c.protected)
    return list(connection.execute(sa.select(image.c.name).where(*which).order_by(image.c.name)).scalars())


def delete_images_named(connection: sa.Connection, owner: str, names: t.Iterable[str]) -> None:
    """delete_images() for those that the owner calls so."""
    delete_images(connection, sa.and_(image.c.owner == owner, image.c.name.in_(list(names))))


def delete_image(connection: sa.Connection, image_id: str) -> None:
    """delete_images() for the one of this id, if there is one."""
    delete_images(connection, image.c.id == image_id)


def check_id(connection: sa.Connection, image_id: str) -> None:
    """Raise ConflictError for an id that an image has or had, also in EC2's form of it (its first 17 digits)."""
    start = _EC2_FORM.match(image_id)
    for column in (image.c.id, image_id_used.c.id):
        taken = column.startswith(start[0], autoescape=True) if start else column == image_id
        if is_any(connection, taken):
            raise ConflictError(f"Image ID {image_id} already exists!")


def check_count(connection: sa.Connection, owner: str) -> None:
    """Raise QuotaError if the project has more images than it may, those just written included."""
    if owner:
        quotas.check_quota(connection, owner, "images", owned(connection, owner, "images"))


def _checked(image_id: str, attributes: JsonMapping, known: JsonMapping) -> tuple[Record, list[str]]:
    what = f"image {image_id}"
    if attributes["name"]:
        check_text(f"{what}: name", attributes["name"])
    for key in ("min_disk_gb", "min_ram_mb"):
        check_range(f"{what}: {key}", attributes[key], 0)
    properties = checked_properties(image_id, attributes["properties"], known)
    tags = sorted({check_text(f"{what}: tag", tag) for tag in attributes["tags"]})
    for kind, values in (("properties", properties), ("tags", tags)):
        if len(values) > MOST:
            raise NovaliteError(f"{what}: {len(values)} {kind}, and {MOST} is the limit")
    return t.cast("Record", properties), tags


# --- Members: whom an image is shared with ----------------------------------------------------------------------------


def add_member(connection: sa.Connection, image_id: str, member: str) -> Member:
    """Raises ConflictError for one who is a member already, NovaliteError for too many."""
    there = members(connection, image_id)
    if any(sharing["member"] == member for sharing in there):
        raise ConflictError(f"Image member {member[:60]} already exists for image {image_id}")
    if len(there) >= MOST:
        raise NovaliteError(f"The limit has been exceeded on the number of allowed image members: {MOST}")
    now = clock.seconds(connection)
    row: Member = {"image_id": image_id, "member": member, "status": "pending", "created_at": now, "updated_at": now}
    connection.execute(sa.insert(image_member).values(**row))
    return row


def set_status(connection: sa.Connection, image_id: str, member: str, status: str) -> None:
    changed = sa.update(image_member).where(sharing(image_id, member))
    connection.execute(changed.values(status=status, updated_at=clock.seconds(connection)))


def remove_member(connection: sa.Connection, image_id: str, member: str) -> None:
    connection.execute(sa.delete(image_member).where(sharing(image_id, member)))


# --- Tasks: what imports were asked for, and how they ended, as Glance tells it ---------------------------------------


def begin_task(
    connection: sa.Connection, image_id: str, body: JsonMapping, *, user_id: str, project_id: str, request_id: str
) -> str:
    """Record the import that `body` asks for; return the task's id."""
    now, task = clock.seconds(connection), str(uuid.uuid4())
    connection.execute(
        sa.insert(image_task).values(
            id=task,
            image_id=image_id,
            status="processing",
            input={"image_id": image_id, "import_req": body},
            request_id=request_id,
            user_id=user_id,
            project_id=project_id,
            created_at=now,
            updated_at=now,
        )
    )
    return task


def end_task(connection: sa.Connection, task: str, failure: str) -> None:
    """Record how the import ended; an empty `failure` is success."""
    ended = {"status": "failure" if failure else "success", "message": failure, "updated_at": clock.seconds(connection)}
    connection.execute(sa.update(image_task).where(image_task.c.id == task).values(**ended))
