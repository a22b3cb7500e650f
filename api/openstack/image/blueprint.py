# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Image API, and who asks."""

from __future__ import annotations

from flask import Response, g

from ...web import services

image_versions = services.Service("image_versions", "/image")
image = services.Service("image", "/image/v2")


@image.blueprint.after_request
def _end(response: Response) -> Response:
    if g.get("image_close"):  # what was not read of the body would be taken for the next request
        response.headers["Connection"] = "close"
    return response
