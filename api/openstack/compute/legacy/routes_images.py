# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images as Compute showed them until microversion 2.35, and what is said about them until 2.38."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_records, image_states
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ....web import policy, validation
from ....web.context import current
from ....web.errors import BadRequestError, ForbiddenError, as_bad_request
from ....web.ledger import reading_ledger, writing_ledger
from ...image.uploads import home as image_home
from ...image.views import time as image_time
from .. import paging
from ..blueprint import Answer, compute_legacy
from ..microversions import since
from ..servers.queries import moment

Record = dict[str, t.Any]


LAST = "2.35"
LAST_METADATA = "2.38"
IMAGE_STATES = {  # Nova's words
    "queued": "SAVING",
    "saving": "SAVING",
    "uploading": "SAVING",
    "importing": "SAVING",
    "active": "ACTIVE",
    "deactivated": "ACTIVE",
    "killed": "ERROR",
}


@compute_legacy.get("/images")
@policy.allows("image:read")
@since("2.1", LAST)
def list_images_here() -> Answer:
    return _images(lambda row: {"id": row["id"], "name": row["name"], "links": _links("images", row["id"])})


@compute_legacy.get("/images/detail")
@policy.allows("image:read")
@since("2.1", LAST)
def list_images_in_detail_here() -> Answer:
    return _images(_image)


@compute_legacy.get("/images/<image_id>")
@policy.allows("image:read")
@since("2.1", LAST)
def show_image_here(image_id: str) -> Answer:
    with reading_ledger() as connection:
        found = image_records.images_seen(connection, current().project, image_id, everything=current().is_admin)
    if not found:
        raise NotFoundError("Image not found.")
    return {"image": _image(found[0])}, 200


@compute_legacy.delete("/images/<image_id>")
@policy.allows("image:write")
@since("2.1", LAST)
def delete_image_here(image_id: str) -> Answer:
    with writing_ledger() as connection:
        if _own_image(connection, image_id)["protected"]:
            raise ForbiddenError(f"Image {image_id} is protected and cannot be deleted.")
        image_records.delete_image(connection, image_id)
        image_states.remove_file(connection, image_home(), image_id)
    return "", 204


METADATA = {"type": "object", "maxProperties": 128, "additionalProperties": {"type": "string", "maxLength": 255}}


def _named(name: str, rules: Record) -> Record:
    return {"type": "object", "properties": {name: rules}, "required": [name], "additionalProperties": False}


@compute_legacy.get("/images/<image_id>/metadata")
@policy.allows("image:read")
@since("2.1", LAST_METADATA)
def list_image_metadata(image_id: str) -> Answer:
    return {"metadata": _seen_image(image_id)["properties"]}, 200


@compute_legacy.get("/images/<image_id>/metadata/<key>")
@policy.allows("image:read")
@since("2.1", LAST_METADATA)
def show_image_metadata(image_id: str, key: str) -> Answer:
    properties = _seen_image(image_id)["properties"]
    if key not in properties:
        raise NotFoundError("Metadata item was not found")
    return {"meta": {key: properties[key]}}, 200


@compute_legacy.post("/images/<image_id>/metadata")
@policy.allows("image:write")
@since("2.1", LAST_METADATA)
def add_image_metadata(image_id: str) -> Answer:
    return {"metadata": _describe(image_id, lambda old: {**old, **_said()})}, 200


@compute_legacy.put("/images/<image_id>/metadata")
@policy.allows("image:write")
@since("2.1", LAST_METADATA)
def replace_image_metadata(image_id: str) -> Answer:
    return {"metadata": _describe(image_id, lambda _old: _said())}, 200


@compute_legacy.put("/images/<image_id>/metadata/<key>")
@policy.allows("image:write")
@since("2.1", LAST_METADATA)
def set_image_metadata(image_id: str, key: str) -> Answer:
    def changed(old: Record) -> Record:
        meta = validation.body(_named("meta", {**METADATA, "minProperties": 1, "maxProperties": 1}))["meta"]
        if key not in meta:
            raise BadRequestError("Request body and URI mismatch")
        return {**old, **meta}

    return {"meta": {key: _describe(image_id, changed)[key]}}, 200


@compute_legacy.delete("/images/<image_id>/metadata/<key>")
@policy.allows("image:write")
@since("2.1", LAST_METADATA)
def remove_image_metadata(image_id: str, key: str) -> Answer:
    def changed(old: Record) -> Record:
        if key not in old:
            raise NotFoundError("Invalid metadata key")
        return {name: value for name, value in old.items() if name != key}

    _describe(image_id, changed)
    return "", 204


def _said() -> Record:
    return t.cast("Record", validation.body(_named("metadata", METADATA))["metadata"])


def _describe(image_id: str, changed: t.Callable[[Record], Record]) -> Record:
    """Change the properties of an image of the caller's; returns what they are now."""
    with writing_ledger() as connection, as_bad_request():
        row = _own_image(connection, image_id)
        after = {**row, "properties": changed(row["properties"])}
        by_operator = policy.may(current(), "image:host_mount")
        image_records.update_image(connection, row, after, by_operator=by_operator)
        found = image_records.images_seen(connection, current().project, image_id, everything=current().is_admin)
    return t.cast("Record", found[0]["properties"])


def _seen_image(image_id: str) -> Record:
    with reading_ledger() as connection:
        found = image_records.images_seen(connection, current().project, image_id, everything=current().is_admin)
    if not found:
        raise NotFoundError("Image not found.")
    return found[0]


def _own_image(connection: Connection, image_id: str) -> Record:
    found = image_records.images_seen(connection, current().project, image_id, everything=current().is_admin)
    if not found:
        raise NotFoundError("Image not found.")
    if found[0]["owner"] != current().project and not current().is_admin:
        raise ForbiddenError("You are not permitted to modify this image: it is another's.")
    return found[0]


def _images(view: t.Callable[[Record], Record]) -> Answer:
    args = request.args
    with reading_ledger() as connection:
        rows = [
            row
            for row in image_records.images_seen(connection, current().project)
            if not row["os_hidden"]
            and (
                row["owner"] == current().project or row["visibility"] == "public" or row["member_status"] == "accepted"
            )
        ]
    for name, key in (("minDisk", "min_disk_gb"), ("minRam", "min_ram_mb")):
        rows = [row for row in rows if row[key] >= paging.number(name)]
    if "name" in args:
        rows = [row for row in rows if row["name"] == args["name"]]
    if "status" in args:
        rows = [row for row in rows if IMAGE_STATES[row["status"]] == args["status"].upper()]
    if "type" in args:
        wanted = args["type"] == "snapshot"
        rows = [row for row in rows if (row["properties"].get("image_type") == "snapshot") == wanted]
    if "server" in args:  # an id, or a URL that ends with it
        server = args["server"].rstrip("/").rpartition("/")[2]
        rows = [row for row in rows if row["properties"].get("instance_uuid") == server]
    if "changes-since" in args:
        since_then = moment("changes-since") or 0
        rows = [row for row in rows if row["updated_at"] >= since_then]
    rows, links = paging.page(rows, lambda row: row["id"], "image")
    body: Record = {"images": [view(row) for row in rows]}
    if links:
        body["images_links"] = links
    return body, 200


def _image(row: Record) -> Record:
    return {
        "id": row["id"],
        "name": row["name"],
        "status": IMAGE_STATES[row["status"]],
        "progress": {"ACTIVE": 100, "SAVING": 25}.get(IMAGE_STATES[row["status"]], 0),
        "minDisk": row["min_disk_gb"],
        "minRam": row["min_ram_mb"],
        "created": image_time(row["created_at"]),
        "updated": image_time(row["updated_at"]),
        "metadata": row["properties"],
        "OS-EXT-IMG-SIZE:size": row["size"],
        "links": _links("images", row["id"]),
    }


def _links(kind: str, number: str) -> list[Record]:
    return [
        {"rel": "self", "href": f"{request.url_root}compute/v2.1/{kind}/{number}"},
        {"rel": "bookmark", "href": f"{request.url_root}compute/{kind}/{number}"},
    ]
