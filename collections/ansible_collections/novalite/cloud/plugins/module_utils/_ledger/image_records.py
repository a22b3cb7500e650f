# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Images by id, as clients of the Image API handle them: what a project sees, and changes to what is said about one.

Their files are the operation `image`'s (images.py). What Glance knows of an image and its record has no column for is
kept in private properties.
"""

from __future__ import annotations

import time
import typing as t

import sqlalchemy as sa

from .._errors import ConflictError, NovaliteError
from .images import checked_properties
from .lookups import PRIVATE
from .records import check_range, check_text, checked_names
from .tables import image

Record = dict[str, t.Any]

TAGS, PROTECTED, UPDATED = f"{PRIVATE}tags", f"{PRIVATE}protected", f"{PRIVATE}updated_at"
MOST = 128  # tags and properties of an image; Glance's defaults


def images_seen(connection: sa.Connection, project_id: str, image_id: str | None = None) -> list[Record]:
    """The public images and the project's own (or the one with this id), the newest first.

    Each with its `tags`, `protected`, `updated_at`, and without what is private in its properties.
    """
    seen = image.c.owner.in_(["", project_id])
    query = sa.select(image).where(seen if image_id is None else sa.and_(seen, image.c.id == image_id))
    rows = connection.execute(query.order_by(image.c.created_at.desc(), image.c.id.desc())).mappings()
    return [_shown(dict(row)) for row in rows]


def update_image(connection: sa.Connection, before: t.Mapping[str, t.Any], after: t.Mapping[str, t.Any]) -> None:
    """Write what of `after` (name, min_disk_gb, min_ram_mb, properties, tags, protected) differs from the record.

    Raises NovaliteError for what cannot be stored, ConflictError for a name that the owner has twice then.
    """
    name, what = after["name"], f"image {before['name']!r}"
    if name != before["name"]:
        checked_names("image", [{"name": name}])
        there = sa.select(image.c.id).where(image.c.owner == before["owner"], image.c.name == name)
        if connection.execute(there).first() is not None:
            raise ConflictError(f"there is an image {name!r} already: names are unique here")
    for key in ("min_disk_gb", "min_ram_mb"):
        check_range(f"{what}: {key}", after[key], 0)
    properties = checked_properties(what, after["properties"])
    tags = sorted({check_text(f"{what}: tag", tag) for tag in after["tags"]})
    for kind, found in (("properties", properties), ("tags", tags)):
        if len(found) > MOST:
            raise NovaliteError(f"{what}: {len(found)} {kind}, and {MOST} is the limit")
    row = connection.execute(
        sa.select(image.c.properties).where(image.c.id == before["id"]).with_for_update()
    ).scalar_one()
    kept = {key: value for key, value in row.items() if key.startswith(PRIVATE)}
    kept.update({TAGS: tags, PROTECTED: bool(after["protected"]), UPDATED: int(time.time())})
    connection.execute(
        sa.update(image)
        .where(image.c.id == before["id"])
        .values(
            name=name,
            min_disk_gb=after["min_disk_gb"],
            min_ram_mb=after["min_ram_mb"],
            properties={**properties, **kept},
        )
    )


def delete_image(connection: sa.Connection, image_id: str) -> None:
    """Instances carry a copy of the record: those that were launched from it are not touched."""
    connection.execute(sa.delete(image).where(image.c.id == image_id))


def _shown(row: Record) -> Record:
    private = row["properties"]
    return {
        **row,
        "properties": {key: value for key, value in private.items() if not key.startswith(PRIVATE)},
        "tags": private.get(TAGS, []),
        "protected": private.get(PROTECTED, False),
        "updated_at": private.get(UPDATED, row["created_at"]),
    }
