# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that are another name for one that is there, and those that are being made of instances."""

from __future__ import annotations

import time
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._guest import image_properties
from ..._json import JsonMapping
from ..._rules.records import checked_names
from ..db.tables import image
from ..queries.lookups import lock_project, public_properties
from .image_records import check_count, checked_properties

_DESCRIPTION = "description"


def register(connection: sa.Connection, project_id: str, of: JsonMapping, name: str, description: str) -> str:
    """Record an image of the project's own with the files of the image `of`, which it sees; returns its id.

    A file is there for as long as one image needs it. Raises ConflictError for a name that the project has, QuotaError,
    NovaliteError for a name that cannot be, and for an image without data or with a property that cannot be.
    """
    lock_project(connection, project_id)
    checked_names("image", [{"name": name}])
    there = sa.select(image.c.id).where(image.c.owner == project_id, image.c.name == name)
    if connection.execute(there).first() is not None:
        raise ConflictError(f"AMI name {name} is already in use")
    row = dict(connection.execute(sa.select(image).where(image.c.id == of["id"])).mappings().one())
    if row["status"] != "active":
        raise NovaliteError(f"image {of['name']!r} is {row['status']}: it has no data to register")
    properties = image_properties.without_host_mount(public_properties(row["properties"]))
    image_properties.check_new(of["name"] or of["id"], properties, {})
    if description:
        properties |= checked_properties(name, {_DESCRIPTION: description})
    now = int(time.time())
    own = {"id": str(uuid.uuid4()), "owner": project_id, "name": name, "display_name": None, "visibility": "private"}
    rest = {"protected": False, "tags": [], "properties": properties, "created_at": now, "updated_at": now}
    connection.execute(sa.insert(image).values(**{**row, **own, **rest}))
    check_count(connection, project_id)
    return str(own["id"])
