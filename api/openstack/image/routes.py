# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images: list, show, make, describe, remove; and whom their owners share them with, who accept that or not."""

from __future__ import annotations

from flask import make_response, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    NotFoundError,
    NovaliteError,
    QuotaError,
    TooLargeError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import image_data, images
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import (
    MEMBER_STATES,
    images_seen,
)

from ...web import policy, validation
from ...web.addresses import base_url
from ...web.bodies import Answer, Body
from ...web.context import current
from ...web.errors import as_bad_request, in_words
from ...web.ledger import home, reading_ledger, writing_ledger
from ...web.schemas import NAME, an_object, of
from ...web.services import reads, writes, writes_checked
from ...work.calls import calling, writing_call
from . import listing, patch, views
from .blueprint import image, image_versions, own, seen

VERSIONS = (12, 9, 7, 6, 5, 4, 3, 2, 1, 0)
METHODS = ("glance-direct",)  # of import


@image_versions.get("/", "version", strict_slashes=False)
@image_versions.get("/versions", "version", strict_slashes=False)
@image.get("/", "version", strict_slashes=False)
def list_versions() -> Answer:
    links = [{"rel": "self", "href": f"{base_url()}/image/v2/"}]
    states = {minor: "CURRENT" if minor == max(VERSIONS) else "SUPPORTED" for minor in VERSIONS}
    versions: list[Body] = [{"id": f"v2.{minor}", "status": status, "links": links} for minor, status in states.items()]
    return {"versions": versions}, 200 if request.path.endswith("/versions") else 300


# "/images/" is an image without an id, which there is none of
@image.get("/images", "image:read", reads, strict_slashes=True)
def list_images(connection: Connection) -> Answer:
    project = current().project
    rows = images_seen(connection, project, everything=policy.allowed("image:all_projects"))
    return listing.answer([views.image(row) for row in listing.offered(rows, project)]), 200


@image.get("/images/<image_id>", "image:read", reads)
def show_image(connection: Connection, image_id: str) -> Answer:
    return views.image(seen(connection, image_id)), 200


@image.post("/images", "image:write", strict_slashes=True)
def create_image() -> Answer:
    new_image = patch.new_image()
    with writing_ledger() as connection, as_bad_request(), in_words({QuotaError: TooLargeError}):
        shown = views.image(images.create(calling(connection), new_image))
    response = make_response(shown, 201)
    location = f"{base_url()}/image/v2/images/{shown['id']}"
    response.headers.update({"Location": location, "OpenStack-image-import-methods": ",".join(METHODS)})
    return response, 201


@image.patch("/images/<image_id>", "image:write")
def update_image(image_id: str) -> Answer:
    with reading_ledger() as connection:
        own(connection, image_id)  # before a word about the body
    requested_changes = patch.changes()
    with writing_ledger() as connection, as_bad_request():
        row = own(connection, image_id)
        after = patch.applied(row, views.image(row), requested_changes)
        return views.image(images.update(calling(connection), row, after)), 200


@image.delete("/images/<image_id>", "image:write")
def delete_image(image_id: str) -> Answer:
    image_data.delete(writing_call, lambda call: images.seen(call, image_id), home())
    return "", 204


@image.put("/images/<image_id>/tags/<tag>", "image:write", writes_checked)
def add_tag(connection: Connection, image_id: str, tag: str) -> Answer:
    row = seen(connection, image_id)
    images.update(calling(connection), row, {**row, "tags": [*row["tags"], tag]})
    return "", 204


@image.delete("/images/<image_id>/tags/<tag>", "image:write", writes)
def remove_tag(connection: Connection, image_id: str, tag: str) -> Answer:
    row = own(connection, image_id)
    if tag not in row["tags"]:
        raise NotFoundError(f"Image {image_id} has no tag {tag[:60]}")
    images.update(calling(connection), row, {**row, "tags": [other for other in row["tags"] if other != tag]})
    return "", 204


@image.post("/images/<image_id>/actions/<any(deactivate, reactivate):action>", "image:write", writes)
def change_status(connection: Connection, image_id: str, action: str) -> Answer:
    images.set_active(calling(connection), seen(connection, image_id), action == "reactivate")
    return "", 204


@image.get("/schemas/<name>", "image:read")
def show_schema(name: str) -> Answer:
    schema = views.schema(name)
    if schema is None:
        raise NotFoundError(f"there is no schema {name[:60]}")
    return schema, 200


# --- Members ----------------------------------------------------------------------------------------------------------

MEMBER_STATUS = an_object({"status": {"enum": list(MEMBER_STATES)}}, ["status"], more=True)


@image.get("/images/<image_id>/members", "image:members:read", reads)
def list_members(connection: Connection, image_id: str) -> Answer:
    rows = images.members(calling(connection), seen(connection, image_id))
    return {"members": list(map(views.member, rows)), "schema": "/v2/schemas/members"}, 200


@image.get("/images/<image_id>/members/<member>", "image:members:read", reads)
def show_member(connection: Connection, image_id: str, member: str) -> Answer:
    return views.member(images.member(calling(connection), seen(connection, image_id), member)), 200


@image.post("/images/<image_id>/members", "image:members:write", writes)
def add_member(connection: Connection, image_id: str) -> Answer:
    row = own(connection, image_id)  # before a word about the body
    member = validation.body(of("member", NAME))["member"]
    with in_words({NovaliteError: TooLargeError}):
        return views.member(images.add_member(calling(connection), row, member)), 200


@image.put("/images/<image_id>/members/<member>", "image:members:write", writes)
def change_member(connection: Connection, image_id: str, member: str) -> Answer:
    call, row = calling(connection), seen(connection, image_id)
    images.member(call, row, member)  # before a word about the body
    status = validation.body(MEMBER_STATUS)["status"]
    return views.member(images.answer_member(call, row, member, status)), 200


@image.delete("/images/<image_id>/members/<member>", "image:members:write", writes)
def remove_member(connection: Connection, image_id: str, member: str) -> Answer:
    images.remove_member(calling(connection), seen(connection, image_id), member)
    return "", 204
