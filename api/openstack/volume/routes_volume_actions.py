# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on a volume (`POST .../action`)."""

from __future__ import annotations

import dataclasses
import typing as t

from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import attachments
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import volumes as volume_operations
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import volume_holders
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.volume_type_records import type_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Volume,
    one_volume,
)
from ansible_collections.novalite.cloud.plugins.module_utils._rules import volume_asks
from ansible_collections.novalite.cloud.plugins.module_utils._rules.volume_mappings import NO_IMAGE

from ...web import validation
from ...web.bodies import Answer, Body, Record, same
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

    do: t.Callable[[Call, Volume, Record], Body | None]
    schema: Schema = dataclasses.field(default_factory=dict)
    status: int = 202
    words: t.Callable[[], t.ContextManager[None]] = in_cinders_words


@volume.post("/<project>/volumes/<volume_id>/action", "volume:write")
def act(volume_id: str) -> Answer:
    ((name, body),) = validation.body(ACTION).items()
    with reading_ledger() as connection:
        one_volume(connection, volume_id, whose())
    if name in REFUSED:
        raise BadRequestError(f"{name}: {REFUSED[name]}")
    if name not in ACTIONS:
        raise BadRequestError(f"There is no such action: {name[:60]}")
    action = ACTIONS[name]
    body = {} if body is None else body
    validation.check(body, {"type": "object", **action.schema}, f"value of {name}")
    with writing_ledger() as connection, action.words():
        row = one_volume(connection, volume_id, whose())
        return action.do(calling(connection), row, body) or "", action.status


def _extend(call: Call, row: Volume, body: Record) -> None:
    volume_operations.extend(call, row.id, int(body["new_size"]), online=speaks(42), project_id=whose())


def _revert(call: Call, row: Volume, body: Record) -> None:
    if not speaks(40):
        raise NotFound()
    volume_operations.revert(call, row.id, body.get("snapshot_id"), project_id=whose())


def _attach(call: Call, row: Volume, body: Record) -> None:
    if not body.get("instance_uuid"):
        raise BadRequestError("Invalid input received: a volume is attached to a server: give instance_uuid")
    # Cinder notes any text; the guest's disk has the name of a device
    device = body.get("mountpoint") if str(body.get("mountpoint")).startswith("/dev/") else None
    readonly, project_id = body.get("mode") == "ro", row.project_id
    attachments.attach_volume(
        call, row.id, body["instance_uuid"], project_id=project_id, device=device, readonly=readonly
    )


def _detach(call: Call, row: Volume, body: Record) -> None:
    volume_holders.release_any(call, row, body.get("attachment_id"))


def _force_detach(call: Call, row: Volume, body: Record) -> None:
    volume_holders.release_any(call, row, body.get("attachment_id") or None, force=True)


def _set_bootable(call: Call, row: Volume, body: Record) -> None:
    volume_operations.set_bootable(call, row, schemas.truth(body["bootable"]))


def _set_readonly(call: Call, row: Volume, body: Record) -> None:
    volume_operations.set_readonly(call, row, schemas.truth(body["readonly"]))


def _reset_status(call: Call, row: Volume, body: Record) -> None:
    volume_operations.reset_status(call, row, body.get("status"))


def _force_delete(call: Call, row: Volume, _body: Record) -> None:
    volume_operations.delete(call, row.id, project_id=whose(), force=True)


def _retype(call: Call, row: Volume, body: Record) -> None:
    # else of the volume it would be said that there is none
    with in_words({NotFoundError: lambda message: BadRequestError(f"Invalid volume type: {message}")}):
        volume_operations.retype(call, row, body["new_type"])


def _show_image_metadata(_call: Call, row: Volume, _body: Record) -> Body:
    return {"metadata": views.image_metadata(row.image or NO_IMAGE)}


def _set_image_metadata(call: Call, row: Volume, body: Record) -> Body:
    return {"metadata": views.image_metadata(_describe_image(call, row, Change(body["metadata"])))}


def _unset_image_metadata(call: Call, row: Volume, body: Record) -> None:
    key = body["key"]
    _describe_image(call, row, Change(removed=key, missing=f"Metadata item {key[:60]} was not found."))


def _describe_image(call: Call, row: Volume, change: Change) -> Record:
    before = (row.image or NO_IMAGE).get("properties") or {}
    return volume_operations.describe_image(call, row, change.of(before))


def _upload(call: Call, row: Volume, body: Record) -> Body:
    """Cinder's default is raw. From 3.1 on, whoever may publish images may say who sees this one."""
    visibility, protected = "private", False
    if speaks(1):
        visibility, protected = body.get("visibility", visibility), schemas.truth(body.get("protected", False))
    disk_format, container = body.get("disk_format", "raw"), body.get("container_format", volume_asks.CONTAINER)
    if container != volume_asks.CONTAINER:
        raise BadRequestError(f"Invalid input received: an image of a volume is 'bare', not {container[:40]!r}")
    row, image_id = volume_operations.upload(
        call,
        row.id,
        name=body["image_name"],
        disk_format=disk_format,
        visibility=visibility,
        protected=protected,
        force=schemas.truth(body.get("force", False)),
        project_id=whose(),
    )
    of_type = type_of(call.connection, row.type_id)
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
    "os-reserve": Action(lambda call, row, _body: volume_operations.reserve(call, row)),
    "revert": Action(_revert, _has({"snapshot_id": OPTIONAL}), words=as_bad_request),
    "os-unreserve": Action(lambda call, row, _body: volume_operations.unreserve(call, row)),
    "os-attach": Action(_attach, _has(ATTACH)),
    "os-detach": Action(_detach, DETACH),
    "os-begin_detaching": Action(lambda call, row, _body: volume_operations.begin_detaching(call, row)),
    "os-roll_detaching": Action(lambda call, row, _body: volume_operations.roll_detaching(call, row)),
    "os-set_bootable": Action(_set_bootable, _has({"bootable": schemas.BOOLEAN}, ["bootable"]), 200),
    "os-update_readonly_flag": Action(_set_readonly, _has({"readonly": schemas.BOOLEAN}, ["readonly"])),
    "os-reset_status": Action(_reset_status, _has(STATUS, minProperties=1)),
    "os-force_delete": Action(_force_delete),
    "os-force_detach": Action(_force_detach, DETACH),
    "os-show_image_metadata": Action(_show_image_metadata, status=200),
    "os-set_image_metadata": Action(_set_image_metadata, _has(METADATA, ["metadata"]), 200),
    "os-volume_upload_image": Action(_upload, _has(UPLOAD, ["image_name"])),
    "os-unset_image_metadata": Action(_unset_image_metadata, _has({"key": NAME}, ["key"]), 200),
}
