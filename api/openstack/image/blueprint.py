# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Image API, and who asks."""

from __future__ import annotations

import typing as t

from flask import Blueprint, Response, g

from ...web import policy

Answer = tuple[t.Any, int]

image_versions = Blueprint("image_versions", __name__, url_prefix="/image")
image = Blueprint("image", __name__, url_prefix="/image/v2")
image.before_request(policy.guard)


@image.after_request
def _end(response: Response) -> Response:
    if g.get("image_close"):  # what was not read of the body would be taken for the next request
        response.headers["Connection"] = "close"
    return response
