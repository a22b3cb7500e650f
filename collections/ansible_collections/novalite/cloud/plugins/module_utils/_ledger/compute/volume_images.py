# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images of servers that start from a volume: snapshots of all their volumes, and a record without data that names
them, as in Nova. The snapshots are taken by a job after that."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._guest import image_properties
from ..._json import JsonMapping
from ..._model.instance import Image
from ..._rules import volume_mappings
from ..._rules.volume_asks import VolumeRequest
from ..._rules.volume_mappings import NO_IMAGE
from ..catalog.image_records import check_free, insert_image
from ..db import clock
from ..db.tables import image
from ..instances import actions
from ..queries.catalog import image_views
from ..queries.compute import state_rules
from ..queries.compute.instance_rows import instance_row
from ..queries.compute.views import image_of
from ..queries.volumes.volume_views import attachments_by, snapshots_by, volumes_by
from ..volumes import volume_snapshots
from ..volumes import volumes as volume_states

ACTION = "createImage"


def create(
    connection: sa.Connection,
    instance_uuid: str,
    details: image_views.Details,
    *,
    request_id: str,
    user_id: str | None = None,
    by_admin: bool = False,
) -> list[str]:
    """Record the image that `details` (image_views.details_of) say, and return the ids of its snapshots, which a
    job volume_snapshot_create is to take. Raises ConflictError for an instance or a volume that is not at rest,
    QuotaError."""
    row = instance_row(connection, instance_uuid)
    state_rules.check(connection, state_rules.RULES[ACTION], [row], by_admin=by_admin)
    attached = [each for each in attachments_by(connection, instances=[row.uuid]) if each.attached_at is not None]
    volumes = {volume.id: volume for volume in volumes_by(connection, ids=[each.volume_id for each in attached])}
    mappings, snapshots = [], []
    for each in sorted(attached, key=lambda each: (each.boot_index is None, each.device)):
        snapshot_request = {"volume_id": each.volume_id, "name": f"snapshot for {details['name']}"[:255], "force": True}
        snapshot = volume_snapshots.create_snapshot(
            connection, row.project_id, {**snapshot_request, "user_id": user_id}
        )
        snapshots.append(snapshot.id)
        mappings.append(
            {
                "snapshot_id": snapshot.id,
                "volume_size": snapshot.size_gb,
                "volume_type": volumes[each.volume_id].type_id,
                "boot_index": each.boot_index,
                "device_name": each.device,
                "delete_on_termination": each.delete_on_termination,
                "tag": each.tag,
            }
        )
    of_image = {**volume_mappings.written(mappings), "instance_uuid": row.uuid, **details["properties"]}
    _record(connection, row.project_id, details["image_id"], details["name"], row.image, of_image)
    now = clock.seconds(connection)
    actions.start(connection, ACTION, {row.uuid: details}, request_id, now, user_id=user_id, project_id=row.project_id)
    actions.finish(connection, ACTION, [(row.uuid, row.host, None)], now=now)
    return snapshots


def register(
    connection: sa.Connection, project_id: str, name: str, description: str, volumes: t.Sequence[VolumeRequest]
) -> str:
    """Record an image of snapshots that are there; its servers get a volume of each and start from one. Return its id.

    `volumes` name snapshots by their ids. Whoever makes an image of a volume says that it can be started from. Raises
    ConflictError for a name that is taken, QuotaError.
    """
    check_free(connection, project_id, name)
    known = {
        snapshot.id: snapshot for snapshot in snapshots_by(connection, ids=[volume.of or "" for volume in volumes])
    }
    base, mappings = NO_IMAGE, []
    for volume in volumes:
        snapshot = known[volume.of or ""]
        if volume.boot:
            of = volume_states.update_volume(connection, snapshot.volume_id, {"bootable": True}, project_id=project_id)
            base = image_of(of.image) if of.image else NO_IMAGE
        mappings.append(
            {
                "snapshot_id": snapshot.id,
                "volume_size": volume.size_gb,
                "boot_index": 0 if volume.boot else None,
                "device_name": volume_mappings.ROOT_DEVICE if volume.boot else volume.device,
                "delete_on_termination": volume.delete_on_termination,
            }
        )
    image_id = str(uuid.uuid4())
    own = {"description": description} if description else {}
    _record(connection, project_id, image_id, name, base, {**volume_mappings.written(mappings), **own})
    return image_id


def _record(
    connection: sa.Connection, project_id: str, image_id: str, name: str, base: Image, properties: JsonMapping
) -> None:
    """Record the image, which has the properties of the image `base` of its root volume, too."""
    attributes = {
        **{"id": image_id, "owner": project_id, "name": name},
        **{"visibility": "private", "protected": False, "os_hidden": False, "tags": []},
        **{"disk_format": "qcow2", "container_format": "bare", "min_ram_mb": base["min_ram_mb"], "min_disk_gb": 0},
        "cmdline": base["cmdline"],
        "properties": {
            **image_properties.public_properties(image_properties.without_host_mount(base["properties"])),
            **({"base_image_ref": base["id"]} if base["id"] else {}),
            **properties,
        },
    }
    insert_image(connection, attributes, inherited=base["properties"])
    # there is nothing to upload
    ready = {"status": "active", "size": 0, "kernel": base["kernel"], "ramdisk": base["ramdisk"]}
    connection.execute(sa.update(image).where(image.c.id == image_id).values(**ready))
