# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images as Compute showed them until microversion 2.35, and what is said about them until 2.38."""

from __future__ import annotations

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import image_data, images
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    SeenImage,
    images_seen,
)

from ....web.bodies import Answer, Body
from ....web.context import current
from ....web.errors import in_words
from ....web.ledger import home
from ....web.maps import Change, Map, Texts
from ....web.schemas import TEXT
from ....web.services import reads
from ....web.times import iso
from ....work.calls import calling, writing_call
from ...image.blueprint import seen
from ..blueprint import NOVA, compute_legacy, page, since
from ..servers.queries import moment
from ..servers.views import RenderContext, render_context

OLD = since("2.1", "2.35")
IMAGE_STATES = {  # Nova's words
    **dict.fromkeys(("queued", "saving", "uploading", "importing"), "SAVING"),
    **dict.fromkeys(("active", "deactivated"), "ACTIVE"),
    "killed": "ERROR",
}


@compute_legacy.get("/images/<image_id>", "image:read", OLD, reads)
def show_image_here(connection: Connection, image_id: str) -> Answer:
    return {"image": _image(_seen(connection, image_id), render_context())}, 200


@compute_legacy.delete("/images/<image_id>", "image:write", OLD)
def delete_image_here(image_id: str) -> Answer:
    image_data.delete(writing_call, lambda call: _seen(call.connection, image_id), home())
    return "", 204


def _seen(connection: Connection, image_id: str) -> SeenImage:
    with in_words({NotFoundError: lambda _message: NotFoundError("Image not found.")}):
        return seen(connection, image_id)


def _properties(connection: Connection, image_id: str) -> Texts:
    return _seen(connection, image_id)["properties"]


def _describe(connection: Connection, change: Change, before: Texts, image_id: str) -> Texts:
    """Change the properties of an image of the caller's."""
    row = _seen(connection, image_id)
    return images.update(calling(connection), row, {**row, "properties": change.of(before)})["properties"]


Map(
    name="old_image_metadata",
    path="/images/<image_id>/metadata",
    reads="image:read",
    writes="image:write",
    word="metadata",
    schema={"type": "object", "maxProperties": 128, "additionalProperties": TEXT},
    find=_properties,
    write=_describe,
    missing_to_delete="Invalid metadata key",
    below=(since("2.1", "2.38"),),
).put_into(compute_legacy)


@compute_legacy.get("/images", "image:read", OLD, defaults={"detailed": False})
@compute_legacy.get("/images/detail", "image:read", OLD, reads, defaults={"detailed": True})
def list_images_here(connection: Connection, detailed: bool) -> Answer:
    args = request.args
    rows = [
        row
        for row in images_seen(connection, current().project)
        if not row["os_hidden"]
        and (row["owner"] == current().project or row["visibility"] == "public" or row["member_status"] == "accepted")
    ]
    disk, memory = NOVA.whole("minDisk", 0), NOVA.whole("minRam", 0)
    rows = [row for row in rows if row["min_disk_gb"] >= disk and row["min_ram_mb"] >= memory]
    if "name" in args:
        rows = [row for row in rows if row["name"] == args["name"]]
    if "status" in args:
        rows = [row for row in rows if IMAGE_STATES[row["status"]] == args["status"].upper()]
    if "type" in args:
        is_snapshot = args["type"] == "snapshot"
        rows = [row for row in rows if (row["properties"].get("image_type") == "snapshot") == is_snapshot]
    if "server" in args:  # an id, or a URL that ends with it
        server = args["server"].rstrip("/").rpartition("/")[2]
        rows = [row for row in rows if row["properties"].get("instance_uuid") == server]
    if "changes-since" in args:
        since_then = moment("changes-since") or 0
        rows = [row for row in rows if row["updated_at"] >= since_then]
    context, view = render_context(), _image if detailed else _brief
    return page("images", rows, lambda row: view(row, context), "id", "image"), 200


def _brief(row: SeenImage, context: RenderContext) -> Body:
    return {"id": row["id"], "name": row["name"], "links": context.links("images", row["id"])}


def _image(row: SeenImage, context: RenderContext) -> Body:
    return {
        **_brief(row, context),
        "status": IMAGE_STATES[row["status"]],
        "progress": {"ACTIVE": 100, "SAVING": 25}.get(IMAGE_STATES[row["status"]], 0),
        "minDisk": row["min_disk_gb"],
        "minRam": row["min_ram_mb"],
        "created": iso(row["created_at"]),
        "updated": iso(row["updated_at"]),
        "metadata": row["properties"],
        "OS-EXT-IMG-SIZE:size": row["size"],
    }
