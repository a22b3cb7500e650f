# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on a volume (`POST .../action`)."""

from __future__ import annotations

import dataclasses
import typing as t

from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._guest.image_properties import (
    check_new,
    checked_host_mount,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import volume_types
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import attachments
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as volume_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import Attachment, Volume
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_reservations,
    volume_uploads,
    volumes,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes.server_volumes import NO_IMAGE

from ...web import policy, validation
from ...web.bodies import Answer, Body, Record, same
from ...web.context import current
from ...web.errors import BadRequestError, as_bad_request, in_words
from ...web.ledger import reading_ledger, writing_ledger
from ...web.maps import Change
from ...web.schemas import ACTION, NAME, OPTIONAL, Schema, an_object
from ...work.calls import calling
from . import schemas, views
from .blueprint import in_cinders_words, speaks, volume, whose

# What other clouds do with a volume, and why not here
REFUSED = {
    "os-migrate_volume": "a volume stays on its host",
    "os-initialize_connection": "hosts attach volumes themselves: use Compute's os-volume_attachments",
    "os-terminate_connection": "hosts detach volumes themselves: use Compute's os-volume_attachments",
    "os-unmanage": "volumes are managed by the cloud only",
    "os-reimage": "make a new volume of the image",
}


@dataclasses.dataclass(frozen=True)
class Action:
    """An action on a value that `schema` allows; `do` returns the body of the answer, if it has one."""

    do: t.Callable[[Connection, Volume, Record], Body | None]
    schema: Schema = dataclasses.field(default_factory=dict)
    status: int = 202
    admin: bool = False  # whether only administrators may
    words: t.Callable[[], t.ContextManager[None]] = in_cinders_words


@volume.post("/<project>/volumes/<volume_id>/action", "volume:write")
def act(volume_id: str) -> Answer:
    ((name, body),) = validation.body(ACTION).items()
    with reading_ledger() as connection:
        volumes.one_volume(connection, volume_id, whose())
    if name in REFUSED:
        raise BadRequestError(f"{name}: {REFUSED[name]}")
    if name not in ACTIONS:
        raise BadRequestError(f"There is no such action: {name[:60]}")
    action = ACTIONS[name]
    body = {} if body is None else body
    validation.check(body, {"type": "object", **action.schema}, f"value of {name}")
    if action.admin:
        policy.check("volume:admin")
    with writing_ledger() as connection, action.words():
        row = volumes.one_volume(connection, volume_id, whose())
        return action.do(connection, row, body) or "", action.status


def _extend(connection: Connection, row: Volume, body: Record) -> None:
    volume_operations.extend(calling(connection), row.id, int(body["new_size"]), online=speaks(42), project_id=whose())


def _revert(connection: Connection, row: Volume, body: Record) -> None:
    if not speaks(40):
        raise NotFound()
    volume_operations.revert(calling(connection), row.id, body.get("snapshot_id"), project_id=whose())


def _reserve(connection: Connection, row: Volume, _body: Record) -> None:
    volumes.reserve(connection, row.id, project_id=whose())


def _unreserve(connection: Connection, row: Volume, _body: Record) -> None:
    volumes.unreserve(connection, row.id, project_id=whose())


def _attach(connection: Connection, row: Volume, body: Record) -> None:
    if not body.get("instance_uuid"):
        raise BadRequestError("Invalid input received: a volume is attached to a server: give instance_uuid")
    # Cinder notes any text; the guest's disk has the name of a device
    device = body.get("mountpoint") if str(body.get("mountpoint")).startswith("/dev/") else None
    attach(connection, row, body["instance_uuid"], device, body.get("mode") == "ro")


def attach(
    connection: Connection, row: Volume, server: str, device: str | None = None, readonly: bool = False
) -> Attachment:
    """Begin to give a volume to a server; returns the attachment."""
    return attachments.attach_volume(
        calling(connection), row.id, server, project_id=row.project_id, device=device, readonly=readonly
    )


def _detach(connection: Connection, row: Volume, body: Record, force: bool = False) -> None:
    attachment_id = body.get("attachment_id")
    theirs = [attachment for attachment in row.attachments if attachment_id in (None, attachment.id)]
    if theirs:
        detach(connection, row, theirs[0].instance_uuid, force)
    elif row.reservation is not None and attachment_id in (None, row.reservation.id):
        volume_reservations.release(connection, row.reservation)
    elif attachment_id is not None or row.status != "available":  # else it is so already, as in Cinder
        raise BadRequestError(f"Invalid volume: Volume {row.id} is not attached.")


def detach(connection: Connection, row: Volume, server: str, force: bool = False) -> None:
    """Begin to take a volume from a server."""
    attachments.detach_volume(calling(connection), row.id, server, project_id=row.project_id, force=force)


def _begin_detaching(connection: Connection, row: Volume, _body: Record) -> None:
    volumes.begin(connection, row, "detach", ("in-use",), "detaching")


def _roll_detaching(connection: Connection, row: Volume, _body: Record) -> None:
    volumes.begin(connection, row, "keep", ("detaching",), "in-use")


def _set_bootable(connection: Connection, row: Volume, body: Record) -> None:
    volumes.update_volume(connection, row.id, {"bootable": schemas.truth(body["bootable"])}, project_id=whose())


def _set_readonly(connection: Connection, row: Volume, body: Record) -> None:
    readonly = schemas.truth(body["readonly"])
    metadata = {**row.metadata, "readonly": str(readonly)}  # where Cinder's clients look
    volumes.update_volume(connection, row.id, {"readonly": readonly, "metadata": metadata}, project_id=whose())


def _reset_status(connection: Connection, row: Volume, body: Record) -> None:
    if "status" in body:
        volumes.reset_status(connection, row.id, body["status"])


def _force_delete(connection: Connection, row: Volume, _body: Record) -> None:
    volume_operations.delete(calling(connection), row.id, project_id=whose(), force=True)


def _force_detach(connection: Connection, row: Volume, body: Record) -> None:
    _detach(connection, row, {"attachment_id": body.get("attachment_id") or None}, force=True)


def _retype(connection: Connection, row: Volume, body: Record) -> None:
    # else of the volume it would be said that there is none
    with in_words({NotFoundError: lambda message: BadRequestError(f"Invalid volume type: {message}")}):
        of_type = volume_types.type_seen(
            connection, body["new_type"], row.project_id, policy.allowed("volume:private_types")
        )
    volumes.retype(connection, row.id, of_type, project_id=whose())


def _show_image_metadata(_connection: Connection, row: Volume, _body: Record) -> Body:
    return {"metadata": views.image_metadata(row.image or NO_IMAGE)}


def _set_image_metadata(connection: Connection, row: Volume, body: Record) -> Body:
    return {"metadata": views.image_metadata(_describe_image(connection, row, Change(body["metadata"])))}


def _unset_image_metadata(connection: Connection, row: Volume, body: Record) -> None:
    key = body["key"]
    _describe_image(connection, row, Change(removed=key, missing=f"Metadata item {key[:60]} was not found."))


def _describe_image(connection: Connection, row: Volume, change: Change) -> Record:
    """Change what a volume knows of the image that it was made of, or looks like; the image itself stays as it is."""
    known: Record = {**(row.image or NO_IMAGE)}
    before = known.get("properties") or {}
    properties = volumes.checked_metadata(change.of(before))
    # a volume that waits for its data is what servers start from that hosts inject into
    check_new(str(known.get("name")), properties, before)
    checked_host_mount(f"volume {row.id}", before, properties, policy.may(current(), "image:host_mount"))
    image = known | {"properties": properties}
    volumes.write(connection, "volume", row.id, {"image": image})
    return image


def _upload(connection: Connection, row: Volume, body: Record) -> Body:
    """Cinder's default is raw. From 3.1 on, whoever may publish images may say who sees this one."""
    visibility, protected = "private", False
    if speaks(1):
        visibility, protected = body.get("visibility", visibility), schemas.truth(body.get("protected", False))
    if visibility == "public":
        policy.check("image:publicize")
    disk_format, container = body.get("disk_format", "raw"), body.get("container_format", volume_uploads.CONTAINER)
    if container != volume_uploads.CONTAINER:
        raise BadRequestError(f"Invalid input received: an image of a volume is 'bare', not {container[:40]!r}")
    row, image_id = volume_operations.upload(
        calling(connection),
        row.id,
        name=body["image_name"],
        disk_format=disk_format,
        visibility=visibility,
        protected=protected,
        force=schemas.truth(body.get("force", False)),
        project_id=whose(),
    )
    of_type = volume_types.type_of(connection, row.type_id)
    shown: Body = {
        **same(views.new_volume(row), "id", "updated_at", "status", "size"),
        "display_description": row.description,
        "volume_type": views.volume_type(of_type),
        **{"image_id": image_id, "image_name": body["image_name"]},
        **{"container_format": container, "disk_format": disk_format},
        **({"visibility": visibility, "protected": protected} if speaks(1) else {}),
    }
    return {"os-volume_upload_image": shown}


def _has(properties: t.Mapping[str, Schema], required: t.Sequence[str] = (), **rules: int) -> Schema:
    return an_object(properties, required, True, **rules)


RETYPE: dict[str, Schema] = {"new_type": NAME, "migration_policy": {"enum": ["never", "on-demand", None]}}
ATTACH = {
    "instance_uuid": OPTIONAL,
    "mountpoint": {"type": ["string", "null"], "maxLength": 32},
    "mode": {"enum": ["rw", "ro", None]},
    "host_name": OPTIONAL,
}
DETACH = _has({"attachment_id": OPTIONAL})
UPLOAD: dict[str, Schema] = {
    "image_name": NAME,
    "force": schemas.BOOLEAN,
    "disk_format": {"type": "string", "maxLength": 255},
    "container_format": {"type": "string", "maxLength": 255},
    "visibility": {"enum": ["community", "public", "private", "shared"]},
    "protected": schemas.BOOLEAN,
}
STATUS = {"status": {"enum": list(schemas.STATES)}}
METADATA = {"metadata": {**schemas.METADATA, "type": "object"}}
ACTIONS: dict[str, Action] = {
    "os-extend": Action(_extend, _has({"new_size": schemas.SIZE}, ["new_size"])),
    "os-retype": Action(_retype, _has(RETYPE, ["new_type"])),
    "os-reserve": Action(_reserve),
    "revert": Action(_revert, _has({"snapshot_id": OPTIONAL}), words=as_bad_request),
    "os-unreserve": Action(_unreserve),
    "os-attach": Action(_attach, _has(ATTACH)),
    "os-detach": Action(_detach, DETACH),
    "os-begin_detaching": Action(_begin_detaching),
    "os-roll_detaching": Action(_roll_detaching),
    "os-set_bootable": Action(_set_bootable, _has({"bootable": schemas.BOOLEAN}, ["bootable"]), 200),
    "os-update_readonly_flag": Action(_set_readonly, _has({"readonly": schemas.BOOLEAN}, ["readonly"])),
    "os-reset_status": Action(_reset_status, _has(STATUS, minProperties=1), admin=True),
    "os-force_delete": Action(_force_delete, admin=True),
    "os-force_detach": Action(_force_detach, DETACH, admin=True),
    "os-show_image_metadata": Action(_show_image_metadata, status=200),
    "os-set_image_metadata": Action(_set_image_metadata, _has(METADATA, ["metadata"]), 200),
    "os-volume_upload_image": Action(_upload, _has(UPLOAD, ["image_name"])),
    "os-unset_image_metadata": Action(_unset_image_metadata, _has({"key": NAME}, ["key"]), 200),
}
