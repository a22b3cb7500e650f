# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done to a volume by `POST .../action`."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._guest.image_properties import (
    check_new,
    checked_host_mount,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volume_views import Attachment, Volume
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_access,
    volume_attachments,
    volumes,
)

from ...web import policy, validation
from ...web.context import current, request_id
from ...web.errors import BadRequestError
from ...web.ledger import reading_ledger, writing_ledger
from . import routes_volumes, schemas, views
from .blueprint import Answer, Record, enqueue, in_cinders_words, speaks, volume, whose

Action = t.Callable[[str, Record], Answer]

ACTION: Record = {"type": "object", "minProperties": 1, "maxProperties": 1}
# What other clouds do with a volume, and why not here
REFUSED = {
    "os-migrate_volume": "a volume stays on its host",
    "os-volume_upload_image": "no image is made of a volume here: take a snapshot and make volumes of that",
    "os-initialize_connection": "hosts attach volumes themselves: use Compute's os-volume_attachments",
    "os-terminate_connection": "hosts detach volumes themselves: use Compute's os-volume_attachments",
    "os-unmanage": "volumes are managed by the cloud only",
    "os-reimage": "make a new volume of the image",
    "revert": "make a new volume of the snapshot",
}


@volume.post("/<project>/volumes/<number>/action")
@policy.allows("volume:write")
def act(number: str) -> Answer:
    body = validation.body(ACTION)
    ((name, said),) = body.items()
    with reading_ledger() as connection:
        volumes.one_volume(connection, number, whose())
    if name in REFUSED:
        raise BadRequestError(f"{name}: {REFUSED[name]}")
    if name not in ACTIONS:
        raise BadRequestError(f"There is no such action: {name[:60]}")
    action, schema = ACTIONS[name]
    if said is None:
        said = {}
    validation.check(said, {"type": "object", **schema}, f"value of {name}")
    return action(number, said)


def _extend(number: str, said: Record) -> Answer:
    with writing_ledger() as connection, in_cinders_words():
        size = int(said["new_size"])
        row = volumes.begin_extend(
            connection,
            number,
            size,
            project_id=whose(),
            online=speaks(42),
            request_id=request_id(),
            user_id=current().user_id,
        )
        if row.status == "extending":
            servers = [attachment.instance_uuid for attachment in row.attachments]
            enqueue(connection, "volume_extend", row, servers, volumes=number)
    return "", 202


def _reserve(number: str, _said: Record) -> Answer:
    with writing_ledger() as connection, in_cinders_words():
        volumes.reserve(connection, number, project_id=whose())
    return "", 202


def _unreserve(number: str, _said: Record) -> Answer:
    with writing_ledger() as connection, in_cinders_words():
        volumes.unreserve(connection, number, project_id=whose())
    return "", 202


def _attach(number: str, said: Record) -> Answer:
    if not said.get("instance_uuid"):
        raise BadRequestError("Invalid input received: a volume is attached to a server: give instance_uuid")
    with writing_ledger() as connection, in_cinders_words():
        attach(connection, number, said["instance_uuid"], said.get("mountpoint"), said.get("mode") == "ro")
    return "", 202


def attach(
    connection: Connection, number: str, server: str, device: str | None = None, readonly: bool = False
) -> Attachment:
    """Begin to give a volume to a server; returns the attachment."""
    row = volumes.one_volume(connection, number, whose())
    made = volume_attachments.begin_attach(
        connection,
        number,
        server,
        project_id=whose(),
        device=device,
        readonly=readonly,
        request_id=request_id(),
        user_id=current().user_id,
    )
    enqueue(connection, "volume_attach", row, [server], attachments=made.id)
    return made


def _detach(number: str, said: Record, force: bool = False) -> Answer:
    with writing_ledger() as connection, in_cinders_words():
        row = volumes.one_volume(connection, number, whose())
        wanted = said.get("attachment_id")
        theirs = [attachment for attachment in row.attachments if wanted in (None, attachment.id)]
        if theirs:
            detach(connection, row, theirs[0].instance_uuid, force)
        elif wanted is not None or row.status != "available":  # else it is so already, as in Cinder
            raise BadRequestError(f"Invalid volume: Volume {number} is not attached.")
    return "", 202


def detach(connection: Connection, row: Volume, server: str, force: bool = False) -> None:
    """Begin to take a volume from a server."""
    gone = volume_attachments.begin_detach(
        connection, row.id, server, project_id=whose(), request_id=request_id(), user_id=current().user_id, force=force
    )
    enqueue(connection, "volume_detach", row, [server], attachments=gone.id)


def _begin_detaching(number: str, _said: Record) -> Answer:
    with writing_ledger() as connection, in_cinders_words():
        row = volumes.one_volume(connection, number, whose())
        volumes.begin(connection, row, "detach", ("in-use",), "detaching")
    return "", 202


def _roll_detaching(number: str, _said: Record) -> Answer:
    with writing_ledger() as connection, in_cinders_words():
        row = volumes.one_volume(connection, number, whose())
        volumes.begin(connection, row, "keep", ("detaching",), "in-use")
    return "", 202


def _set_bootable(number: str, said: Record) -> Answer:
    with writing_ledger() as connection, in_cinders_words():
        volumes.update_volume(connection, number, {"bootable": schemas.truth(said["bootable"])}, project_id=whose())
    return "", 200


def _set_readonly(number: str, said: Record) -> Answer:
    readonly = schemas.truth(said["readonly"])
    with writing_ledger() as connection, in_cinders_words():
        row = volumes.one_volume(connection, number, whose())
        metadata = {**row.metadata, "readonly": str(readonly)}  # where Cinder's clients look
        wanted = {"readonly": readonly, "metadata": metadata}
        volumes.update_volume(connection, number, wanted, project_id=whose())
    return "", 202


def _reset_status(number: str, said: Record) -> Answer:
    policy.check("volume:admin")
    if "status" in said:
        with writing_ledger() as connection, in_cinders_words():
            volumes.reset_status(connection, number, said["status"])
    return "", 202


def _force_delete(number: str, _said: Record) -> Answer:
    policy.check("volume:admin")
    routes_volumes.remove(number, force=True)
    return "", 202


def _force_detach(number: str, said: Record) -> Answer:
    policy.check("volume:admin")
    return _detach(number, {key: said[key] for key in ("attachment_id",) if said.get(key)}, force=True)


def _retype(number: str, said: Record) -> Answer:
    caller = current()
    with writing_ledger() as connection, in_cinders_words():
        row = volumes.one_volume(connection, number, whose())
        try:
            of_type = volume_access.type_seen(connection, said["new_type"], row.project_id, caller.is_admin)
        except NotFoundError as error:  # of the volume it would say that there is none
            raise BadRequestError(f"Invalid volume type: {error}") from error
        volumes.retype(connection, number, of_type, project_id=whose())
    return "", 202


def _show_image_metadata(number: str, _said: Record) -> Answer:
    with reading_ledger() as connection:
        image = volumes.one_volume(connection, number, whose()).image
    return {"metadata": views.image_metadata(image) if image else {}}, 200


def _set_image_metadata(number: str, said: Record) -> Answer:
    image = _describe_image(number, lambda old: {**old, **said["metadata"]})
    return {"metadata": views.image_metadata(image)}, 200


def _unset_image_metadata(number: str, said: Record) -> Answer:
    _describe_image(number, lambda old: routes_volumes.without(old, said["key"]))
    return "", 200


def _describe_image(number: str, changed: t.Callable[[Record], Record]) -> Record:
    """Change what a volume knows of the image that it was made of; the image itself stays as it is."""
    with writing_ledger() as connection, in_cinders_words():
        row = volumes.one_volume(connection, number, whose())
        if not row.image:
            raise BadRequestError(f"Invalid volume: Volume {number} was not made of an image.")
        properties = volumes.checked_metadata(changed(row.image.get("properties") or {}))
        # a volume that waits for its data is what servers start from that hosts inject into
        before = row.image.get("properties") or {}
        check_new(str(row.image.get("name")), properties, before)
        checked_host_mount(f"volume {number}", before, properties, policy.may(current(), "image:host_mount"))
        image = {**row.image, "properties": properties}
        volume_access.describe_image(connection, number, image)
    return image


NONE: Record = {}
FLAG: Record = schemas.BOOLEAN
STATUS = {"enum": list(schemas.STATES)}
ACTIONS: dict[str, tuple[Action, Record]] = {
    "os-extend": (_extend, {"properties": {"new_size": schemas.SIZE}, "required": ["new_size"]}),
    "os-retype": (
        _retype,
        {
            "properties": {
                "new_type": {"type": "string", "minLength": 1, "maxLength": 255},
                "migration_policy": {"enum": ["never", "on-demand", None]},
            },
            "required": ["new_type"],
        },
    ),
    "os-reserve": (_reserve, NONE),
    "os-unreserve": (_unreserve, NONE),
    "os-attach": (
        _attach,
        {
            "properties": {
                "instance_uuid": schemas.OPTIONAL,
                "mountpoint": {"type": ["string", "null"], "maxLength": 32},
                "mode": {"enum": ["rw", "ro", None]},
                "host_name": schemas.OPTIONAL,
            }
        },
    ),
    "os-detach": (_detach, {"properties": {"attachment_id": schemas.OPTIONAL}}),
    "os-begin_detaching": (_begin_detaching, NONE),
    "os-roll_detaching": (_roll_detaching, NONE),
    "os-set_bootable": (_set_bootable, {"properties": {"bootable": FLAG}, "required": ["bootable"]}),
    "os-update_readonly_flag": (_set_readonly, {"properties": {"readonly": FLAG}, "required": ["readonly"]}),
    "os-reset_status": (_reset_status, {"properties": {"status": STATUS}, "minProperties": 1}),
    "os-force_delete": (_force_delete, NONE),
    "os-force_detach": (_force_detach, {"properties": {"attachment_id": schemas.OPTIONAL}}),
    "os-show_image_metadata": (_show_image_metadata, NONE),
    "os-set_image_metadata": (
        _set_image_metadata,
        {"properties": {"metadata": {**schemas.METADATA, "type": "object"}}, "required": ["metadata"]},
    ),
    "os-unset_image_metadata": (
        _unset_image_metadata,
        {"properties": {"key": {"type": "string", "minLength": 1, "maxLength": 255}}, "required": ["key"]},
    ),
}
