# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Image API: who asks, for which image, and whether that may be changed."""

from __future__ import annotations

from flask import Response, g

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog import image_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection

from ...web import policy, services
from ...web.bodies import Record
from ...web.context import current
from ...web.errors import ForbiddenError

image_versions = services.Service("image_versions", "/image")
image = services.Service("image", "/image/v2")


@image.blueprint.after_request
def _end(response: Response) -> Response:
    if g.get("image_close"):  # what was not read of the body would be taken for the next request
        response.headers["Connection"] = "close"
    return response


def seen(connection: Connection, number: str) -> Record:
    """An image that the caller's project may use. Raises NotFoundError."""
    rows = image_records.images_seen(
        connection, current().project, number, everything=policy.allowed("image:all_projects")
    )
    if not rows:
        raise NotFoundError(f"No image found with ID {number[:255]}")
    return rows[0]


def own(connection: Connection, number: str) -> Record:
    """Return an image that the caller may change. Raises NotFoundError, ForbiddenError."""
    row = seen(connection, number)
    if current().reach not in (None, row["owner"]):
        raise ForbiddenError("You are not permitted to modify this image: it is another's.")
    return row


def by_operator() -> bool:
    """Tell whether the caller may have hosts mount an image's disk."""
    return policy.may(current(), "image:host_mount")
