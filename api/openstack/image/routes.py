# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images: list, show, make, describe, remove; and whom their owners share them with, who accept that or not."""

from __future__ import annotations

from flask import make_response, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, NovaliteError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_records, image_states
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...web import policy, validation
from ...web.addresses import base_url
from ...web.bodies import Answer, Body, Record, the_one
from ...web.context import current
from ...web.errors import ForbiddenError, TooLargeError, as_bad_request, in_words
from ...web.ledger import home, reading_ledger, writing_ledger
from ...web.schemas import NAME, an_object, of
from ...web.services import reads, writes, writes_checked
from . import listing, patch, views
from .blueprint import by_operator, image, image_versions, own, seen

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
    rows = image_records.images_seen(connection, project, everything=policy.allowed("image:all_projects"))
    return listing.answer([views.image(row) for row in listing.offered(rows, project)]), 200


@image.get("/images/<image_id>", "image:read", reads)
def show_image(connection: Connection, image_id: str) -> Answer:
    return views.image(seen(connection, image_id)), 200


@image.post("/images", "image:write", strict_slashes=True)
def create_image() -> Answer:
    new_image = patch.new_image()
    with writing_ledger() as connection, as_bad_request(), in_words({QuotaError: TooLargeError}):
        number = image_records.insert_image(connection, new_image, by_operator=by_operator())
        shown = views.image(seen(connection, number))
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
        image_records.update_image(connection, row, after, by_operator=by_operator())
        return views.image(seen(connection, image_id)), 200


@image.delete("/images/<image_id>", "image:write", writes)
def delete_image(connection: Connection, image_id: str) -> Answer:
    if own(connection, image_id)["protected"]:
        raise ForbiddenError(f"Image {image_id} is protected and cannot be deleted.")
    image_records.delete_image(connection, image_id)
    image_states.remove_file(connection, home(), image_id)
    return "", 204


@image.put("/images/<image_id>/tags/<tag>", "image:write", writes_checked)
def add_tag(connection: Connection, image_id: str, tag: str) -> Answer:
    row = own(connection, image_id)
    image_records.update_image(connection, row, {**row, "tags": [*row["tags"], tag]})
    return "", 204


@image.delete("/images/<image_id>/tags/<tag>", "image:write", writes)
def remove_tag(connection: Connection, image_id: str, tag: str) -> Answer:
    row = own(connection, image_id)
    if tag not in row["tags"]:
        raise NotFoundError(f"Image {image_id} has no tag {tag[:60]}")
    image_records.update_image(connection, row, {**row, "tags": [other for other in row["tags"] if other != tag]})
    return "", 204


@image.post("/images/<image_id>/actions/<any(deactivate, reactivate):action>", "image:write", writes)
def change_status(connection: Connection, image_id: str, action: str) -> Answer:
    row = own(connection, image_id)
    if not image_states.set_active(connection, image_id, action == "reactivate"):
        raise ForbiddenError(f"Image {image_id} is {row['status']}: only an active one can be {action}d.")
    return "", 204


@image.get("/schemas/<name>", "image:read")
def show_schema(name: str) -> Answer:
    schema = views.schema(name)
    if schema is None:
        raise NotFoundError(f"there is no schema {name[:60]}")
    return schema, 200


# --- Members ----------------------------------------------------------------------------------------------------------

MEMBER_STATUS = an_object({"status": {"enum": list(image_records.MEMBER_STATES)}}, ["status"], more=True)


@image.get("/images/<image_id>/members", "image:members:read", reads)
def list_members(connection: Connection, image_id: str) -> Answer:
    rows = _members(connection, seen(connection, image_id))
    return {"members": list(map(views.member, rows)), "schema": "/v2/schemas/members"}, 200


@image.get("/images/<image_id>/members/<member>", "image:members:read", reads)
def show_member(connection: Connection, image_id: str, member: str) -> Answer:
    return views.member(_member(connection, seen(connection, image_id), member)), 200


@image.post("/images/<image_id>/members", "image:members:write", writes)
def add_member(connection: Connection, image_id: str) -> Answer:
    _check_shared(own(connection, image_id))
    member = validation.body(of("member", NAME))["member"]
    with in_words({NovaliteError: TooLargeError}):
        row = image_records.add_member(connection, image_id, member)
    return views.member(row), 200


@image.put("/images/<image_id>/members/<member>", "image:members:write", writes)
def change_member(connection: Connection, image_id: str, member: str) -> Answer:
    row = seen(connection, image_id)
    _member(connection, row, member)
    _check_shared(row)
    status = validation.body(MEMBER_STATUS)["status"]
    if current().reach not in (None, member):
        raise ForbiddenError("Only a member itself accepts or rejects an image.")
    image_records.set_status(connection, image_id, member, status)
    return views.member(_member(connection, row, member)), 200


@image.delete("/images/<image_id>/members/<member>", "image:members:write", writes)
def remove_member(connection: Connection, image_id: str, member: str) -> Answer:
    _member(connection, own(connection, image_id), member)
    image_records.remove_member(connection, image_id, member)
    return "", 204


def _members(connection: Connection, row: Record) -> list[Record]:
    """The members that the caller may know of: its own image's, else itself."""
    if row["visibility"] != "shared":
        return []
    everybody = current().reach in (None, row["owner"])
    return image_records.members(connection, row["id"], None if everybody else current().project)


def _member(connection: Connection, row: Record, member: str) -> Record:
    missing = NotFoundError(f"{member[:60]} not found in the member list of the image {row['id']}.")
    return the_one(_members(connection, row), "member", member, missing)


def _check_shared(row: Record) -> None:
    if row["visibility"] != "shared":
        raise ForbiddenError(f"Only shared images have members, and this one is {row['visibility']}.")
