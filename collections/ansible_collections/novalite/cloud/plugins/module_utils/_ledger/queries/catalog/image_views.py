# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images as a project sees them, with their members and tasks, and whether their files are whole. Reads only."""

from __future__ import annotations

import hashlib
import os
import typing as t
import uuid

import sqlalchemy as sa

from ...._errors import NovaliteError
from ...._guest import image_properties
from ...._guest.image_properties import PRIVATE
from ...._json import JsonMapping, JsonObject
from ...._rules import volume_mappings
from ...._rules.listed_nouns import shown_image
from ...._rules.records import NAME_LENGTH, check_text, checked_names, scalar_text
from ...db.tables import image
from ...db.tables_images import image_id_used, image_member, image_task
from ..counts import equal, is_any
from ..lookups import image_visible

Record = JsonObject
MOST_TASKS = 1000  # that are told at once
MEMBER_STATES = ("pending", "accepted", "rejected")


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


def was_deleted(connection: sa.Connection, digits: str) -> bool:
    """Tell whether the id of an image that is gone begins with these digits, 8 at least."""
    start = "-".join(filter(None, (digits[:8], digits[8:12], digits[12:16], digits[16:])))
    return is_any(connection, image_id_used.c.id.startswith(start, autoescape=True))


def handle(connection: sa.Connection, owner: str, name: str | None, image_id: str) -> str:
    """The playbooks' name for an image that its owner calls `name`: that itself, where no other image has it."""
    plain = (name or "").strip() or f"image-{image_id[:8]}"
    taken = is_any(connection, image.c.owner == owner, image.c.name == plain, image.c.id != image_id)
    return f"{plain[: NAME_LENGTH - 37]}-{image_id}" if taken else plain


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


def members(connection: sa.Connection, image_id: str, member: str | None = None) -> list[Member]:
    """List all members of an image, the oldest first, or only the one with this id."""
    mine = image_member.c.image_id == image_id if member is None else sharing(image_id, member)
    order = (image_member.c.created_at, image_member.c.member)
    rows = connection.execute(sa.select(image_member).where(mine).order_by(*order)).mappings()
    return [t.cast("Member", dict(row)) for row in rows]


def sharing(image_id: str, member: str) -> sa.ColumnElement[bool]:
    return sa.and_(image_member.c.image_id == image_id, image_member.c.member == member)


def image_tasks(connection: sa.Connection, image_id: str | None = None, task: str | None = None) -> list[Record]:
    """Return the tasks, the newest first: of one image, the one with this id, or all."""
    query = sa.select(image_task).order_by(image_task.c.created_at.desc(), image_task.c.id).limit(MOST_TASKS)
    query = query.where(*equal({image_task.c.image_id: image_id, image_task.c.id: task}))
    return [dict(row) for row in connection.execute(query).mappings()]


Details = JsonObject


class Rotation(t.TypedDict):
    """Nova's rotation of the images that are a server's backups: of one `type`, the newest `count` are kept."""

    type: str
    count: int


def details_of(
    name: str, properties: JsonMapping | None = None, user_id: str | None = None, rotation: Rotation | None = None
) -> Details:
    """Return what server_actions.begin() takes for an image called `name`; `image_id` in it is the id that it is going
    to have."""
    checked_names("image", [{"name": name}])
    own = checked_properties(name, properties or {})
    image_properties.checked_host_mount(f"image {name!r}", {}, own, by_operator=False)  # it is what a guest wrote
    details: Details = {"image_id": str(uuid.uuid4()), "name": name, "properties": own, "user_id": user_id}
    return details if rotation is None else {**details, "rotation": rotation}


KNOWN_STATES = 1000  # files whose checksums a process remembers
_READ: dict[tuple[t.Any, ...], str] = {}


def is_intact(path: str, checksum: str) -> bool:
    """Tell whether the file has the `checksum` (sha256:...); it is read once for each state. Raises OSError."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        state = (path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = _READ.get(state)  # and no second look: another thread may have forgotten it by then
        if known is None:
            known = "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
            if len(_READ) >= KNOWN_STATES:
                _READ.clear()
            _READ[state] = known
    return known == checksum
