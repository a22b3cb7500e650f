# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Image API: who asks, and Glance's shape of an error."""

from __future__ import annotations

import typing as t
from http import HTTPStatus

from flask import Blueprint, Response, current_app, request
from werkzeug.exceptions import HTTPException

from .. import policy
from ..context import authenticate, request_id
from ..errors import message_of, status_of
from ..fallback import METHODS, check_path, no_route

Answer = tuple[t.Any, int]

image_versions = Blueprint("image_versions", __name__, url_prefix="/image")
image = Blueprint("image", __name__, url_prefix="/image/v2")

policy.grant({"image:unknown": "any"})


@image.before_request
def _begin() -> None:
    check_path()
    view = current_app.view_functions.get(request.endpoint or "")
    if policy.POLICY.get(getattr(view, "policy_action", "")) != "public":
        authenticate()


@image.after_request
@image_versions.after_request
def _end(response: Response) -> Response:
    response.headers["X-OpenStack-Request-Id"] = request_id()
    return response


def fault(error: Exception) -> Answer:
    """An error as Glance words it: {"code": "404 Not Found", "title": "Not Found", "message": "..."}."""
    status = status_of(error)
    message = message_of(error, status)
    if isinstance(error, HTTPException) and status == 404:
        message = "The resource could not be found."
    phrase = HTTPStatus(status).phrase
    return {"message": message, "code": f"{status} {phrase}", "title": phrase}, status


image.register_error_handler(Exception, fault)
image_versions.register_error_handler(Exception, fault)


# A path that is none of ours belongs to no blueprint, and its 404 would come in another dialect.
@image.route("/<path:rest>", methods=METHODS)
@policy.allows("image:unknown")
def unknown(rest: str) -> Answer:
    no_route()
