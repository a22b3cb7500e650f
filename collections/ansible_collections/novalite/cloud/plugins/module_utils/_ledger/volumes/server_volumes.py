# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that servers are made with: asked for, given, made with the guest, and theirs once it runs."""

from __future__ import annotations

import typing as t
from dataclasses import replace

import sqlalchemy as sa

from ..._errors import InvalidVolumeError, NovaliteError
from ..._json import JsonObject
from ..._model.hardware import SECURE_BOOT
from ..._model.instance import Image
from ..._plan.host_plan import ServersPlan
from ..._rules.listed_nouns import RESERVED
from ..._rules.volume_asks import IMAGE, SNAPSHOT, VOLUME, VolumeRequest
from ..._rules.volume_mappings import NO_IMAGE
from ..catalog.volume_types import LOCAL_BACKENDS, type_usable
from ..db import clock
from ..db.tables_volumes import volume, volume_attachment
from ..queries.catalog.volume_type_records import types_by
from ..queries.compute.views import image_of
from ..queries.volumes import volume_views
from ..queries.volumes.volume_views import attachments_by, volumes_by
from . import volume_attachments, volume_plans, volume_sources, volumes

# Statuses of volumes that a build gives to its guest: also what reconcile.yml called an error while the build went on
_BEFORE = ("creating", "attaching", RESERVED, "error", "error_attaching")


def resolved(
    connection: sa.Connection, project_id: str, requests: t.Iterable[VolumeRequest], private_types: bool
) -> tuple[VolumeRequest, ...]:
    """The same with ids in place of names. Raises NotFoundError, also for a volume type that the project may not use
    (`private_types`: any may be named)."""
    named = {VOLUME: volume_sources.volume_named, SNAPSHOT: volume_sources.snapshot_named}
    resolved_requests = []
    for request in requests:
        if request.type is not None:
            type_usable(connection, request.type, project_id, private_types)
        if request.source in named:
            request = replace(request, of=named[request.source](connection, project_id, request.of or "").id)
        resolved_requests.append(request)
    return tuple(resolved_requests)


def image_for(connection: sa.Connection, project_id: str, root: VolumeRequest, described: Image | None = None) -> Image:
    """Return the image of an instance that starts from this volume: the kernel may be beside the disk.

    What `described` says of hardware holds for a blank volume, from which a guest may start or not: the user's wish.
    As in Nova, a volume beside an image need not be bootable. Raises NotFoundError, and NovaliteError for a volume that
    nothing can start from.
    """
    if root.source == SNAPSHOT:
        snapshot = volume_sources.snapshot_named(connection, project_id, root.of or "")
        record = volume_views.one_volume(connection, snapshot.volume_id)
    elif root.source == VOLUME:
        record = volume_views.one_volume(connection, root.of or "", project_id)
    else:
        properties = {} if described is None else described["properties"]
        hardware = {key: value for key, value in properties.items() if key.startswith(("hw_", SECURE_BOOT))}
        return {**NO_IMAGE, "properties": hardware}
    if not record.bootable and (described is None or root.source == SNAPSHOT):
        raise NovaliteError(f"Block Device {record.id} is not bootable.")
    return image_of(record.image) if record.image else NO_IMAGE


def give(
    connection: sa.Connection,
    project_id: str,
    instance_uuid: str,
    requests: t.Sequence[VolumeRequest],
    *,
    image: Image | None = None,
    zone: str | None = None,
    host: str | None = None,
    user_id: str | None = None,
) -> None:
    """Record the volumes of a server that was just recorded, and that they are its own.

    `image` is the server's, `host` the compute host that it was asked for on. Raises ConflictError for volumes that
    cannot be on one host, and what create_volume() and attach_new() raise.
    """
    places: dict[str, str] = {}
    # the root disk first: it has its name in any case
    for request in sorted(requests, key=lambda each: not each.boot):
        if request.source == VOLUME:
            row = volume_views.one_volume(connection, request.of or "", project_id)
        else:
            params: JsonObject = {"size_gb": request.size_gb, "type": request.type, "availability_zone": zone}
            params |= {"user_id": user_id, "deferred": True, "private_types": True}  # resolved() has looked
            if request.source == IMAGE:
                params["image"] = request.of or dict(image or {})
            elif request.source == SNAPSHOT:
                params["snapshot_id"] = request.of
            row = volumes.create_volume(connection, project_id, params)
        if row.host is not None:
            places[row.host] = row.id
        volume_attachments.attach_new(
            connection,
            instance_uuid,
            row,
            device=request.device,
            boot_index=0 if request.boot else None,
            tag=request.tag,
            delete_on_termination=request.delete_on_termination,
        )
    if host is not None and places:
        places.setdefault(host, "the host that was asked for")
    if len(places) > 1:
        places_text = ", ".join(f"{volume_id} on {name}" for name, volume_id in sorted(places.items()))
        raise InvalidVolumeError(
            f"Block Device Mapping is Invalid: no compute host has all that the server needs: {places_text}"
        )


def to_build(connection: sa.Connection, plan: ServersPlan) -> ServersPlan:
    """Return a host's plan with what has to be made for its instances' volumes."""
    unmade = [record for record in volumes_by(connection, instances=plan.uuids) if record.made_at is None]
    images = {image["checksum"]: image for image in plan.images}
    for image in (image for record in unmade for image in volume_plans.images_for(record)):
        known = images.setdefault(image["checksum"], image)
        if known.get("max_virtual_size"):
            largest = max(known["max_virtual_size"], image["max_virtual_size"])
            images[image["checksum"]] = {**known, "max_virtual_size": largest}
    return replace(
        plan,
        images=list(images.values()),
        volumes=[volume_plans.to_be_made(connection, record) for record in unmade],
        # when the build fails: nobody else can have used them
        volumes_gone=[volume_plans.data_of(record) for record in unmade],
    )


def to_remove(connection: sa.Connection, plan: ServersPlan) -> ServersPlan:
    """Return a host's plan with the volumes that go with its instances."""
    gone = volume_attachments.leaving_with(connection, plan.uuids)
    return replace(plan, volumes_gone=[volume_plans.data_of(record) for record in gone])


def running(connection: sa.Connection, uuids: t.Iterable[str]) -> None:
    """The guests of these run, with all of their volumes."""
    table, now = volume_attachment, clock.seconds(connection)
    local = [of_type.id for of_type in types_by(connection) if of_type.backend in LOCAL_BACKENDS]
    unbound = sa.and_(volume.c.host.is_(None), volume.c.type_id.in_(local))
    for row in attachments_by(connection, instances=uuids):
        if row.attached_at is None:
            connection.execute(sa.update(table).where(table.c.id == row.id).values(attached_at=now))
            volumes.swap(connection, row.volume_id, _BEFORE, "in-use", made=True)
            connection.execute(sa.update(volume).where(volume.c.id == row.volume_id, unbound).values(host=row.host))
