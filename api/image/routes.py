# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Images: list, show, describe, remove."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa
from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger import image_records

from .. import policy
from ..context import current
from ..errors import ForbiddenError, as_bad_request
from ..ledger import reading_ledger, writing_ledger
from . import listing, patch, views
from .blueprint import Answer, image, image_versions

Record = dict[str, t.Any]

policy.grant({"image:read": "reader", "image:write": "member"})

MADE_BY = "images come in by the cloud's operator, with the module novalite.cloud.image: they cannot be uploaded here"


@image_versions.get("/", strict_slashes=False)
@image.get("/", strict_slashes=False)
@policy.allows("version")
def list_versions() -> Answer:
    links = [{"rel": "self", "href": f"{request.url_root}image/v2/"}]
    versions = [("v2.9", "CURRENT"), *((f"v2.{minor}", "SUPPORTED") for minor in (7, 6, 5, 4, 3, 2, 1, 0))]
    return {"versions": [{"id": name, "status": status, "links": links} for name, status in versions]}, 300


@image.get("/images")
@policy.allows("image:read")
def list_images() -> Answer:
    with reading_ledger() as connection:
        rows = image_records.images_seen(connection, current().project)
    return listing.answer([views.image(row) for row in rows]), 200


@image.get("/images/<number>")
@policy.allows("image:read")
def show_image(number: str) -> Answer:
    with reading_ledger() as connection:
        return views.image(_row(connection, number)), 200


@image.post("/images")
@policy.allows("image:write")
def create_image() -> Answer:
    raise ForbiddenError(MADE_BY)


@image.patch("/images/<number>")
@policy.allows("image:write")
def update_image(number: str) -> Answer:
    wanted = patch.changes()
    with writing_ledger() as connection, as_bad_request():
        row = _own(connection, number)
        image_records.update_image(connection, row, patch.applied(row, views.image(row), wanted))
        return views.image(_row(connection, number)), 200


@image.delete("/images/<number>")
@policy.allows("image:write")
def delete_image(number: str) -> Answer:
    with writing_ledger() as connection:
        if _own(connection, number)["protected"]:
            raise ForbiddenError(f"Image {number} is protected and cannot be deleted.")
        image_records.delete_image(connection, number)
    return "", 204


@image.put("/images/<number>/tags/<tag>")
@policy.allows("image:write")
def add_tag(number: str, tag: str) -> Answer:
    with writing_ledger() as connection, as_bad_request():
        row = _own(connection, number)
        image_records.update_image(connection, row, {**row, "tags": [*row["tags"], tag]})
    return "", 204


@image.delete("/images/<number>/tags/<tag>")
@policy.allows("image:write")
def remove_tag(number: str, tag: str) -> Answer:
    with writing_ledger() as connection:
        row = _own(connection, number)
        if tag not in row["tags"]:
            raise NotFoundError(f"Image {number} has no tag {tag[:60]}")
        image_records.update_image(connection, row, {**row, "tags": [one for one in row["tags"] if one != tag]})
    return "", 204


@image.get("/images/<number>/file")
@policy.allows("image:read")
def download(number: str) -> Answer:
    with reading_ledger() as connection:
        _row(connection, number)
    raise ForbiddenError("the data of images is not given out here")


@image.put("/images/<number>/file")
@policy.allows("image:write")
def upload(number: str) -> Answer:
    with reading_ledger() as connection:
        _row(connection, number)
    raise ForbiddenError(MADE_BY)


@image.get("/images/<number>/members")
@policy.allows("image:read")
def list_members(number: str) -> Answer:
    """Images are public or their project's: there is nobody whom one was shared with."""
    with reading_ledger() as connection:
        _row(connection, number)
    return {"members": [], "schema": "/v2/schemas/members"}, 200


@image.get("/images/<number>/tasks")
@policy.allows("image:read")
def list_tasks(number: str) -> Answer:
    with reading_ledger() as connection:
        _row(connection, number)
    return {"tasks": []}, 200


@image.get("/info/import")
@policy.allows("image:read")
def show_import_methods() -> Answer:
    return {"import-methods": {"description": "Import methods available.", "type": "array", "value": []}}, 200


@image.get("/schemas/<name>")
@policy.allows("image:read")
def show_schema(name: str) -> Answer:
    found = views.schema(name)
    if found is None:
        raise NotFoundError(f"there is no schema {name[:60]}")
    return found, 200


def _row(connection: sa.Connection, number: str) -> Record:
    found = image_records.images_seen(connection, current().project, number)
    if not found:
        raise NotFoundError(f"No image found with ID {number[:255]}")
    return found[0]


def _own(connection: sa.Connection, number: str) -> Record:
    """An image that the caller may change. Public ones are the operator's."""
    row = _row(connection, number)
    if not row["owner"] and not current().is_admin:
        raise ForbiddenError("You are not permitted to modify this image: it is public.")
    return row
