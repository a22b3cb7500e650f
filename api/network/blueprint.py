# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Network API: who asks, and Neutron's shape of an error."""

from __future__ import annotations

import typing as t

from flask import Blueprint, Response, current_app, request
from werkzeug.exceptions import HTTPException

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError, QuotaError

from .. import policy
from ..context import authenticate, request_id
from ..errors import UnauthorizedError, message_of, status_of
from ..fallback import METHODS, check_path, no_route

# Neutron names the class of the exception; these are for errors that say no more than their status
TYPES = {
    400: "HTTPBadRequest",
    403: "PolicyNotAuthorized",
    404: "HTTPNotFound",
    405: "HTTPMethodNotAllowed",
    409: "Conflict",
    413: "HTTPRequestEntityTooLarge",
    429: "HTTPTooManyRequests",
    503: "ServiceUnavailable",
}

Answer = tuple[t.Any, int]

network_versions = Blueprint("network_versions", __name__, url_prefix="/network")
network = Blueprint("network", __name__, url_prefix="/network/v2.0")

policy.grant({"network:unknown": "any"})


class NeutronError(Exception):
    """An error with the type by which Neutron's clients know it."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


@network.before_request
def _begin() -> None:
    check_path()
    view = current_app.view_functions.get(request.endpoint or "")
    if policy.POLICY.get(getattr(view, "policy_action", "")) != "public":
        authenticate()


@network.after_request
@network_versions.after_request
def _end(response: Response) -> Response:
    response.headers["X-OpenStack-Request-Id"] = request_id()
    return response


def fault(error: Exception) -> Answer:
    """An error as Neutron words it: {"NeutronError": {"type", "message", "detail"}}."""
    if isinstance(error, NeutronError):
        return _body(error.kind, str(error)), error.status
    if isinstance(error, QuotaError):
        return _body("OverQuota", str(error)), 409
    status = status_of(error)
    message = message_of(error, status)
    if isinstance(error, UnauthorizedError):  # keystonemiddleware's answer: it comes before Neutron
        return {"error": {"code": 401, "title": "Unauthorized", "message": message}}, 401
    if isinstance(error, HTTPException) and status in (404, 405):
        message = "The resource could not be found." if status == 404 else "The method is not allowed here."
    kind = TYPES.get(status, "HTTPInternalServerError" if status >= 500 else type(error).__name__)
    return _body(kind, message), status


def _body(kind: str, message: str) -> dict[str, t.Any]:
    return {"NeutronError": {"type": kind, "message": message, "detail": ""}}


network.register_error_handler(Exception, fault)
network_versions.register_error_handler(Exception, fault)


def not_found(what: str, number: str) -> NeutronError:
    """What Neutron says of a `what` ("Security Group") that is not there, or is not the asker's."""
    kind = f"{what.replace(' ', '')}NotFound"
    return NeutronError(404, kind, f"{what} {number[:255]} could not be found.")


def refused(error: NovaliteError, kind: str, status: int) -> NeutronError:
    return NeutronError(status, kind, str(error))


# A path that is none of ours belongs to no blueprint, and its 404 would come in another dialect.
@network.route("/<path:rest>", methods=METHODS)
@policy.allows("network:unknown")
def unknown(rest: str) -> Answer:
    no_route()
