# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rescue: a server runs from another disk for a while, with its own one beside it."""

from __future__ import annotations

import time
import typing as t

import sqlalchemy as sa

from ..._guest import image_properties
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Image
from ..._model.rows import InstanceRow
from ..db.tables import instance
from ..queries import lookups
from ..queries.instance_rows import instance_row
from ..queries.views import image_of

HASH = "password_hash"  # beside the image in the row, as long as the rescue lasts


class Rescue(t.NamedTuple):
    """What an instance is rescued with; `password_hash` is that of the password there."""

    image: Image
    password_hash: str | None


def ask(connection: sa.Connection, uuid: str, image_id: str | None, password_hash: str | None) -> JsonObject:
    """Record what the instance is to be rescued with, and return the details for begin(); None: its own image.

    Raises NotFoundError for an image that its project does not see, NovaliteError for one that cannot be used.
    """
    row = instance_row(connection, uuid)
    details: JsonObject = {} if image_id is None else {"image": image_id}
    chosen = {**_image(connection, row, details), HASH: password_hash}
    connection.execute(sa.update(instance).where(instance.c.id == row.id).values(rescue_image=chosen))
    return details


def begun(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    asked = connection.execute(sa.select(instance.c.rescue_image).where(instance.c.id == row.id)).scalar_one()
    return {} if asked is not None else {"rescue_image": {**_image(connection, row, details), HASH: None}}


def ended(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, said: JsonMapping
) -> JsonObject:
    """`said` has `untouched` where the host failed before it came to the guest."""
    if error is None or said.get("untouched"):
        return {}
    return {"vm_state": "error", "fault": {"code": 500, "message": error, "created": int(time.time())}}


def images(connection: sa.Connection, uuids: t.Iterable[str]) -> dict[str, Rescue]:
    """UUID -> what the instance is rescued with."""
    rows = connection.execute(
        sa.select(instance.c.uuid, instance.c.rescue_image).where(
            instance.c.uuid.in_(sorted(set(uuids))), instance.c.rescue_image.is_not(None)
        )
    )
    kept = {row.uuid: dict(row.rescue_image) for row in rows}
    return {uuid: Rescue(password_hash=image.pop(HASH), image=t.cast(Image, image)) for uuid, image in kept.items()}


def _image(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> Image:
    image = row.image
    if details.get("image") is not None:
        image = image_of(lookups.image_by_id(connection, details["image"], row.project_id))
    image_properties.check(image)
    return image
