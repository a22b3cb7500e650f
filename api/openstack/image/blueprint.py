# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Image API: who asks, for which image, and whether that may be changed."""

from __future__ import annotations

from flask import Response, g

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.catalog import images
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import SeenImage

from ...web import services
from ...work.calls import calling

image_versions = services.Service("image_versions", "/image")
image = services.Service("image", "/image/v2")


@image.blueprint.after_request
def _end(response: Response) -> Response:
    if g.get("image_close"):  # what was not read of the body would be taken for the next request
        response.headers["Connection"] = "close"
    return response


def seen(connection: Connection, number: str) -> SeenImage:
    """Return an image that the caller's project may use. Raises NotFoundError."""
    return images.seen(calling(connection), number)


def own(connection: Connection, number: str) -> SeenImage:
    """Return an image that the caller may change. Raises NotFoundError, ForbiddenError."""
    row = seen(connection, number)
    images.check_own(calling(connection), row)
    return row
