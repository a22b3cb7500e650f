# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of images: Amazon's clients expect one below each image, and tag it, delete it and make volumes of it.

Here the file of an image is all that there is of most. Its snapshot is a name for it, which begins with the same digits
as the image's, is there as long as the image, and goes with it. Images that name volumes have their snapshots.
"""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    SeenImage,
    images_seen,
    was_deleted,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules import volume_mappings
from ansible_collections.novalite.cloud.plugins.module_utils._rules.volume_asks import IMAGE, SNAPSHOT, VolumeRequest

from . import ids, images, volumes
from .common import Body, Record, moment, tag_set

GIB = 1024**3


def snapshot_id(image: SeenImage) -> str:
    return ids.of("snap", image["id"])


def volumes_of(image: SeenImage) -> tuple[VolumeRequest, ...]:
    """The volumes that an image names; none of one that holds a disk, or whose mapping nothing can be launched from."""
    try:
        return volume_mappings.volumes_of(image)
    except NovaliteError:
        return ()


def of_images(connection: Connection, project: str) -> dict[str, SeenImage]:
    """Return the project's own images that hold a disk by the ids of their snapshots."""
    return {snapshot_id(row): row for row in _own(connection, project) if not volumes_of(row)}


def image_that_names(connection: Connection, project: str, snapshot: str) -> SeenImage | None:
    """Return an image of the project's own whose instances start with volumes of this snapshot (UUID)."""
    own = _own(connection, project)
    return next((row for row in own if any(volume.of == snapshot for volume in volumes_of(row))), None)


def _own(connection: Connection, project: str) -> list[SeenImage]:
    return [row for row in images_seen(connection, project) if row["owner"] == project]


def source_named(connection: Connection, project: str, number: str) -> tuple[str, str]:
    """Return what a volume of this snapshot is made of: IMAGE or SNAPSHOT, and its UUID. Raises Ec2Error."""
    if (image := of_images(connection, project).get(number)) is not None:
        return IMAGE, image["id"]
    return SNAPSHOT, ids.find("snap", number, volumes.snapshots_of_project(connection, project)).id


def of_an_image_that_is_gone(connection: Connection, number: str) -> bool:
    """Tell whether `number` is the id of the snapshot of an image that was deregistered."""
    return ids.is_id("snap", number) and was_deleted(connection, number.partition("-")[2])


def size_gb(image: SeenImage) -> int:
    """The least size of a disk that is made of the image, in GiB."""
    return max(-(-(image["virtual_size"] or 0) // GIB), image["min_disk_gb"], 1)


def snapshot(image: SeenImage, tags: Record) -> Body:
    """An image's snapshot as EC2 shows it."""
    done = image["status"] in ("active", "deactivated")
    made_of = image["properties"].get("instance_uuid")
    source = f"CreateImage({ids.of('i', made_of)})" if made_of else "RegisterImage"
    return {
        "snapshotId": snapshot_id(image),
        "volumeId": "vol-ffffffff",  # Amazon's, of snapshots that are of no volume
        "status": "completed" if done else "pending",
        "startTime": moment(image["created_at"]),
        "progress": "100%" if done else "0%",
        "ownerId": image["owner"],
        "volumeSize": size_gb(image),
        "description": f"Created by {source} for {images.image_id(image)}",
        "encrypted": False,
        "storageTier": "standard",
        "tagSet": tag_set(tags.get(snapshot_id(image), {})),
    }
