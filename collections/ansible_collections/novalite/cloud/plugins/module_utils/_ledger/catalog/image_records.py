# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images by id, as clients of the Image API handle them: what a project sees, and what is said about one.

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
from ..._json import JsonMapping, JsonObject
from ..._rules import volume_mappings
from ..._rules.listed_nouns import shown_image
from ..._rules.records import NAME_LENGTH, check_range, check_text, scalar_text
from ..db import clock
from ..db.tables import image
from ..db.tables_images import image_id_used, image_member, image_task
from ..identity import quotas
from ..queries.counts import equal, is_any, owned
from ..queries.lookups import image_visible, lock_project

Record = JsonObject

MOST = 128  # tags, properties and members of an image; Glance's defaults
MOST_TASKS = 1000  # that are told at once
MEMBER_STATES = ("pending", "accepted", "rejected")
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


class ImageValues(t.TypedDict):
    """Attributes of an image that clients say. `name`: None: it has none."""

    owner: str
    name: str | None
    visibility: str
    protected: bool
    os_hidden: bool
    disk_format: str
    container_format: str
    min_disk_gb: int
    min_ram_mb: int
    cmdline: str
    properties: dict[str, str]
    tags: list[str]


class NewImage(ImageValues):
    """An image that is to be recorded; without an `id` it gets a new one."""

    id: str | None


class SeenImage(ImageValues):
    """An image as a project sees it: `handle` is the playbooks' name for it, `member_status` the project's, where the
    image is shared with it."""

    id: str
    handle: str
    member_status: str | None
    status: str
    fault: str | None
    source: str
    checksum: str
    md5: str | None
    size: int
    virtual_size: int
    kernel: JsonObject | None
    ramdisk: JsonObject | None
    created_at: int
    updated_at: int


class Member(t.TypedDict):
    """A project that an image is shared with; `status` is one of MEMBER_STATES."""

    image_id: str
    member: str
    status: str
    created_at: int
    updated_at: int


_EC2_FORM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){2}-[0-9a-f]")  # 17 digits of a UUID


def images_seen(
    connection: sa.Connection, project_id: str, image_id: str | None = None, everything: bool = False
) -> list[SeenImage]:
    """The images that the project may use (with `everything`: all), or the one with this id; the newest first. They are
    without private properties."""
    query = LOAD["images_of_all" if everything else "images_of_project"].where(*equal({image.c.id: image_id}))
    rows = connection.execute(query, {"project_id": project_id}).mappings()
    return [t.cast("SeenImage", shown_image({**row})) for row in rows]


_MEMBER = sa.and_(image_member.c.image_id == image.c.id, image_member.c.member == sa.bindparam("project_id"))
_IMAGES = (
    sa.select(image, image_member.c.status.label("member_status"))
    .select_from(image.outerjoin(image_member, _MEMBER))
    .order_by(image.c.created_at.desc(), image.c.id.desc())
)
# What listed_nouns reads; here and elsewhere. The command `novalite` has them as texts, too: operations/looks.py
LOAD: dict[str, sa.Select[t.Any]] = {
    "images_of_all": _IMAGES,
    "images_of_project": _IMAGES.where(image_visible(sa.bindparam("project_id"))),
}


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


def was_deleted(connection: sa.Connection, digits: str) -> bool:
    """Tell whether the id of an image that is gone begins with these digits, 8 at least."""
    start = "-".join(filter(None, (digits[:8], digits[8:12], digits[12:16], digits[16:])))
    return is_any(connection, image_id_used.c.id.startswith(start, autoescape=True))


def handle(connection: sa.Connection, owner: str, name: str | None, image_id: str) -> str:
    """The playbooks' name for an image that its owner calls `name`: that itself, where no other image has it."""
    plain = (name or "").strip() or f"image-{image_id[:8]}"
    taken = is_any(connection, image.c.owner == owner, image.c.name == plain, image.c.id != image_id)
    return f"{plain[: NAME_LENGTH - 37]}-{image_id}" if taken else plain


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


def checked_properties(name: str, properties: JsonMapping, known: JsonMapping | None = None) -> dict[str, str]:
    """The properties of the image `name` as the strings that Glance has. Raises NovaliteError for those that cannot be.

    Of those that novalite reads itself, values that are not `known` are judged as at a launch; all others are free.
    """
    what, checked = f"image {name!r}", {}
    for key, value in properties.items():
        check_text(f"{what}: property", key)
        if key.startswith(PRIVATE):
            raise NovaliteError(f"{what}: property {key!r}: names that begin with {PRIVATE} are novalite's own")
        long = {"length": volume_mappings.MAX_LENGTH} if key == volume_mappings.PROPERTY else {}
        checked[key] = scalar_text(f"{what}: property {key}", value, **long)
    image_properties.check_new(name, checked, known or {})
    return checked


# --- Members: whom an image is shared with ----------------------------------------------------------------------------


def members(connection: sa.Connection, image_id: str, member: str | None = None) -> list[Member]:
    """List all members of an image, the oldest first, or only the one with this id."""
    mine = image_member.c.image_id == image_id if member is None else _sharing(image_id, member)
    order = (image_member.c.created_at, image_member.c.member)
    rows = connection.execute(sa.select(image_member).where(mine).order_by(*order)).mappings()
    return [t.cast("Member", dict(row)) for row in rows]


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
    changed = sa.update(image_member).where(_sharing(image_id, member))
    connection.execute(changed.values(status=status, updated_at=clock.seconds(connection)))


def remove_member(connection: sa.Connection, image_id: str, member: str) -> None:
    connection.execute(sa.delete(image_member).where(_sharing(image_id, member)))


def _sharing(image_id: str, member: str) -> sa.ColumnElement[bool]:
    return sa.and_(image_member.c.image_id == image_id, image_member.c.member == member)


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


def image_tasks(connection: sa.Connection, image_id: str | None = None, task: str | None = None) -> list[Record]:
    """Return the tasks, the newest first: of one image, the one with this id, or all."""
    query = sa.select(image_task).order_by(image_task.c.created_at.desc(), image_task.c.id).limit(MOST_TASKS)
    query = query.where(*equal({image_task.c.image_id: image_id, image_task.c.id: task}))
    return [dict(row) for row in connection.execute(query).mappings()]
