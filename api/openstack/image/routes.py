# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images: list, show, make, describe, remove."""

from __future__ import annotations

from flask import make_response

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_records, image_states
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...web import policy
from ...web.bodies import Answer, Body
from ...web.context import current
from ...web.errors import ForbiddenError, TooLargeError, as_bad_request, in_words
from ...web.ledger import reading_ledger, writing_ledger
from ...web.services import reads, writes, writes_checked
from . import finding, listing, patch, uploads, views
from .blueprint import image, image_versions

VERSIONS = (12, 9, 7, 6, 5, 4, 3, 2, 1, 0)
METHODS = ("glance-direct",)  # of import


@image_versions.get("/", "version", strict_slashes=False)
@image.get("/", "version", strict_slashes=False)
def list_versions() -> Answer:
    links = [{"rel": "self", "href": f"{finding.root()}image/v2/"}]
    states = ["CURRENT", *(["SUPPORTED"] * (len(VERSIONS) - 1))]
    versions: list[Body] = [
        {"id": f"v2.{minor}", "status": status, "links": links} for minor, status in zip(VERSIONS, states)
    ]
    return {"versions": versions}, 300


# "/images/" is an image without an id, which there is none of
@image.get("/images", "image:read", reads, strict_slashes=True)
def list_images(connection: Connection) -> Answer:
    project = current().project
    rows = image_records.images_seen(connection, project, everything=current().is_admin)
    return listing.answer([views.image(row) for row in listing.offered(rows, project)]), 200


@image.get("/images/<image_id>", "image:read", reads)
def show_image(connection: Connection, image_id: str) -> Answer:
    return views.image(finding.seen(connection, image_id)), 200


@image.post("/images", "image:write", strict_slashes=True)
def create_image() -> Answer:
    wanted = patch.wanted()
    with writing_ledger() as connection, as_bad_request(), in_words({QuotaError: TooLargeError}):
        number = image_records.insert_image(connection, wanted, by_operator=_is_operator())
        shown = views.image(finding.seen(connection, number))
    response = make_response(shown, 201)
    response.headers["Location"] = f"{finding.root()}image/v2/images/{shown['id']}"
    response.headers["OpenStack-image-import-methods"] = ",".join(METHODS)
    return response, 201


@image.patch("/images/<image_id>", "image:write")
def update_image(image_id: str) -> Answer:
    with reading_ledger() as connection:
        finding.own(connection, image_id)  # before a word about the body
    asked = patch.changes()
    with writing_ledger() as connection, as_bad_request():
        row = finding.own(connection, image_id)
        after = patch.applied(row, views.image(row), asked)
        image_records.update_image(connection, row, after, by_operator=_is_operator())
        return views.image(finding.seen(connection, image_id)), 200


def _is_operator() -> bool:
    return policy.may(current(), "image:host_mount")


@image.delete("/images/<image_id>", "image:write", writes)
def delete_image(connection: Connection, image_id: str) -> Answer:
    if finding.own(connection, image_id)["protected"]:
        raise ForbiddenError(f"Image {image_id} is protected and cannot be deleted.")
    image_records.delete_image(connection, image_id)
    image_states.remove_file(connection, uploads.home(), image_id)
    return "", 204


@image.put("/images/<image_id>/tags/<tag>", "image:write", writes_checked)
def add_tag(connection: Connection, image_id: str, tag: str) -> Answer:
    row = finding.own(connection, image_id)
    image_records.update_image(connection, row, {**row, "tags": [*row["tags"], tag]})
    return "", 204


@image.delete("/images/<image_id>/tags/<tag>", "image:write", writes)
def remove_tag(connection: Connection, image_id: str, tag: str) -> Answer:
    row = finding.own(connection, image_id)
    if tag not in row["tags"]:
        raise NotFoundError(f"Image {image_id} has no tag {tag[:60]}")
    image_records.update_image(connection, row, {**row, "tags": [other for other in row["tags"] if other != tag]})
    return "", 204


@image.post("/images/<image_id>/actions/<any(deactivate, reactivate):action>", "image:write", writes)
def change_status(connection: Connection, image_id: str, action: str) -> Answer:
    row = finding.own(connection, image_id)
    if not image_states.set_active(connection, image_id, action == "reactivate"):
        raise ForbiddenError(f"Image {image_id} is {row['status']}: only an active one can be {action}d.")
    return "", 204


@image.get("/schemas/<name>", "image:read")
def show_schema(name: str) -> Answer:
    schema = views.schema(name)
    if schema is None:
        raise NotFoundError(f"there is no schema {name[:60]}")
    return schema, 200
