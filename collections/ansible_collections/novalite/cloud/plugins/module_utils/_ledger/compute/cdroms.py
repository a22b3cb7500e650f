# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""CD drives of instances: what is in them when they are made, and what is put in or taken out while they are there."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._guest.image_properties import MOST_DRIVES, cdrom_images
from ..._model.instance import Image, is_iso
from ..._model.rows import InstanceRow
from ..queries import lookups
from ..queries.compute.views import image_of

Inside = list[t.Optional[Image]]  # of each drive; None: nothing

_WITHOUT_POWER = ("stopped",)


def at_start(connection: sa.Connection, project_id: str, image: Image) -> Inside | None:
    """Return what is in the drives of a new instance of the image: itself, if it is a CD, and those that its property
    names. None where it has no drive. Raises NovaliteError for an image that is no CD, NotFoundError."""
    others = cdrom_images(image)
    if not others and not is_iso(image):
        return None
    inside: Inside = [image] if is_iso(image) else []
    return inside + [cdrom_named(connection, project_id, name) if name else None for name in others]


def cdrom_named(connection: sa.Connection, project_id: str, name: str) -> Image:
    """The ISO image of this name, or id, that the project sees. Raises NovaliteError, NotFoundError."""
    try:
        image = image_of(lookups.image_by_name(connection, name, project_id))
    except NotFoundError as unknown:
        try:
            image = image_of(lookups.image_by_id(connection, name, project_id))
        except NotFoundError:
            raise unknown from None
    if not is_iso(image):
        raise NovaliteError(f"image '{name}' is {image['disk_format']} and no CD: name one with the disk_format iso")
    return image


def changed(row: InstanceRow, drive: int, cdrom: Image | None) -> Inside:
    """Return what is in the instance's drives with `cdrom` in this one, or with nothing in it. A drive that it lacks
    comes with a CD, while it is off. Raises ConflictError for one that runs, NovaliteError for another drive."""
    inside = list(row.cdroms or [])
    if not 0 <= drive < MOST_DRIVES:
        raise NovaliteError(f"'{row.name}' has no CD drive {drive}: a server has up to {MOST_DRIVES}, from 0")
    if drive >= len(inside):
        if cdrom is None:
            return inside
        if drive > len(inside):
            raise NovaliteError(f"'{row.name}' has no CD drive {drive}: its next one is {len(inside)}")
        if row.vm_state not in _WITHOUT_POWER:
            raise ConflictError(
                f"'{row.name}' has no CD drive {drive}, and can be given one while it is off: stop it, insert the CD, "
                "and start it"
            )
        return [*inside, cdrom]
    there = inside[drive]
    if cdrom is None or there is None or there["checksum"] != cdrom["checksum"]:
        inside[drive] = cdrom
    return inside


def check_root(name: str, root_gb: int, image: Image) -> None:
    """Raise NovaliteError for an instance of a CD whose flavor has no root disk to install on."""
    if is_iso(image) and not root_gb:
        raise NovaliteError(
            f"'{name}': image '{image['name']}' is a CD, and the flavor's root disk has no size of its own to install "
            "on: choose a flavor with a root disk"
        )
