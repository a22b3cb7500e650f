# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images that are made of instances: what their records say, from the request on."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._guest import image_properties
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..db.tables import image, instance_action
from ..queries.catalog.image_views import Details, Rotation
from .image_records import delete_images, insert_image

ACTIONS = ("createImage", "shelve")  # those that make one

_SNAPSHOT, _BACKUP = "snapshot", "backup"  # Nova's values of the property image_type


def made_of(connection: sa.Connection, project_id: str, uuid: str, name: str) -> list[Details]:
    """Return the id and the properties of the project's images `name` that were made of this instance."""
    rows = connection.execute(
        sa.select(image.c.id, image.c.properties).where(
            image.c.owner == project_id,
            sa.or_(image.c.name == name, image.c.display_name == name),
            image.c.status == "active",
        )
    ).mappings()
    return [dict(row) for row in rows if row["properties"].get("instance_uuid") == uuid]


def begun(connection: sa.Connection, row: t.Any, details: Details) -> JsonObject:
    """Record the image, without data yet: whoever asked can watch it. Raises NovaliteError, QuotaError."""
    if "image_id" not in details:
        raise NovaliteError("an image needs a name, and an id: see image_views.details_of()")
    base, rotation = row.image, details.get("rotation")
    properties = {
        **image_properties.public_properties(image_properties.without_host_mount(base["properties"])),
        **{"image_type": _SNAPSHOT if rotation is None else _BACKUP, "instance_uuid": row.uuid},
        **({"base_image_ref": base["id"]} if base.get("id") else {}),
        **({"user_id": details["user_id"]} if details.get("user_id") else {}),
        **details["properties"],
        **({"backup_type": rotation["type"]} if rotation is not None else {}),
    }
    attributes = {
        **{"id": details["image_id"], "owner": row.project_id, "name": details["name"]},
        **{"visibility": "private", "protected": False, "os_hidden": False, "properties": properties, "tags": []},
        **{"disk_format": "qcow2", "container_format": "bare", "min_ram_mb": base["min_ram_mb"]},
        "cmdline": base["cmdline"],
        # as Nova: what held its disk is needed to hold it again
        "min_disk_gb": max(base["min_disk_gb"], row.flavor["root_gb"]),
    }
    insert_image(connection, attributes, inherited=base["properties"])
    boot = {field: base[field] for field in ("kernel", "ramdisk")}
    # not `queued`: that waits for whoever uploads something
    connection.execute(sa.update(image).where(image.c.id == details["image_id"]).values(status="saving", **boot))
    return {}


def ended(
    connection: sa.Connection, row: t.Any, details: Details, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has `source`, `checksum`, `size` and `virtual_size` of the file on the controller. An image that
    was deleted meanwhile stays so, and so does one that failed. One that is made has older ones deleted by its
    rotation."""
    image_id = details.get("image_id")
    if image_id is None:
        return {}
    waiting = sa.and_(image.c.id == image_id, image.c.status == "saving")
    if error is None:
        file = {field: host_result[field] for field in ("source", "checksum", "size", "virtual_size")}
        connection.execute(
            sa.update(image).where(waiting).values(**file, status="active", updated_at=clock.seconds(connection))
        )
        if details.get("rotation") is not None:
            _rotate(connection, row, details["rotation"])
    else:
        delete_images(connection, waiting)
    return {}


def _rotate(connection: sa.Connection, row: t.Any, rotation: Rotation) -> None:
    """Delete the oldest backups of the server beyond the rotation's count, as Nova does: protected images are counted,
    and stay."""
    of_type = {"image_type": _BACKUP, "backup_type": rotation["type"], "instance_uuid": row.uuid}
    rows = connection.execute(
        sa.select(image.c.id, image.c.protected)
        .where(
            image.c.owner == row.project_id, *(image.c.properties[key].as_string() == of_type[key] for key in of_type)
        )
        .order_by(image.c.created_at.desc(), image.c.id)
    ).all()
    ids = [each.id for each in rows[rotation["count"] :] if not each.protected]
    delete_images(connection, image.c.id.in_(ids))


def forget(connection: sa.Connection, uuids: t.Iterable[str]) -> None:
    """The instances are deleted: the images that were being made of them come to nothing."""
    begun_with = connection.execute(
        sa.select(instance_action.c.details).where(
            instance_action.c.instance_uuid.in_(sorted(set(uuids))), instance_action.c.action.in_(ACTIONS)
        )
    ).scalars()
    ids = [details["image_id"] for details in begun_with if "image_id" in details]
    delete_images(connection, sa.and_(image.c.id.in_(ids), image.c.status == "saving"))


def unused(connection: sa.Connection, sources: t.Iterable[str]) -> list[str]:
    """List those of the files that no image has."""
    distinct_sources = sorted(set(sources))
    used = set(connection.execute(sa.select(image.c.source).where(image.c.source.in_(distinct_sources))).scalars())
    return [source for source in distinct_sources if source not in used]
