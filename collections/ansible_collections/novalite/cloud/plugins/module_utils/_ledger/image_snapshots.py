# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Images that are made of instances: what their records say, from the request on."""

from __future__ import annotations

import time
import typing as t
import uuid

import sqlalchemy as sa

from .._errors import NovaliteError
from .image_records import check_count, handle
from .images import checked_properties
from .lookups import PRIVATE
from .records import checked_names
from .tables import image

Details = dict[str, t.Any]


def details_of(name: str, properties: t.Mapping[str, t.Any] | None = None, user_id: str | None = None) -> Details:
    """What begin() takes for an image called `name`; `image_id` in it is the id that it is going to have."""
    checked_names("image", [{"name": name}])
    own = checked_properties(f"image {name!r}", properties or {})
    return {"image_id": str(uuid.uuid4()), "name": name, "properties": own, "user_id": user_id}


def there_already(connection: sa.Connection, project_id: str, uuid: str, name: str) -> bool:
    """Whether the project has an image `name` that was made of this instance."""
    found = connection.execute(
        sa.select(image.c.properties).where(
            image.c.owner == project_id,
            sa.or_(image.c.name == name, image.c.display_name == name),
            image.c.status == "active",
        )
    ).scalars()
    return any(properties.get("instance_uuid") == uuid for properties in found)


def begun(connection: sa.Connection, row: t.Any, details: Details) -> dict[str, t.Any]:
    """Record the image, so that clients can wait for it. Raises QuotaError."""
    if "image_id" not in details:
        raise NovaliteError("an image needs a name, and an id: see details_of()")
    empty = {"source": "", "checksum": "", "size": 0, "virtual_size": 0}
    record = _record(connection, row, details, empty)
    connection.execute(sa.insert(image).values(**record, status="saving", display_name=details["name"]))
    check_count(connection, row.project_id)
    return {}


def ended(
    connection: sa.Connection, row: t.Any, details: Details, error: str | None, said: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    """`said` are `source`, `checksum`, `size` and `virtual_size` of the file on the controller.

    An image that could not be made is none, as in Nova. One that was deleted meanwhile stays deleted.
    """
    mine = sa.and_(image.c.id == details["image_id"], image.c.status == "saving")
    if error is not None:
        connection.execute(sa.delete(image).where(mine))
        return {}
    values = {field: said[field] for field in ("source", "checksum", "size", "virtual_size")}
    connection.execute(sa.update(image).where(mine).values(**values, status="active", updated_at=int(time.time())))
    return {}


def _record(
    connection: sa.Connection, row: t.Any, details: Details, said: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    base, image_id = row.image, details["image_id"]
    return {
        "id": image_id,
        "owner": row.project_id,
        "name": handle(connection, row.project_id, details["name"], image_id),
        "created_at": int(time.time()),
        "disk_format": "qcow2",
        **{field: said[field] for field in ("source", "checksum", "size", "virtual_size")},
        **{field: base[field] for field in ("kernel", "ramdisk", "cmdline", "min_ram_mb")},
        # as Nova: what held its disk is needed to hold it again
        "min_disk_gb": max(base["min_disk_gb"], row.flavor["root_gb"]),
        "properties": {
            **{key: value for key, value in base["properties"].items() if not key.startswith(PRIVATE)},
            **{"image_type": "snapshot", "instance_uuid": row.uuid, "base_image_ref": base["id"]},
            **({"user_id": details["user_id"]} if details.get("user_id") else {}),
            **details["properties"],
        },
    }
