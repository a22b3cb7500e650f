# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The blueprint of the Compute API: who asks, in which version, and the shape of its faults."""

from __future__ import annotations

import typing as t

from flask import Blueprint, Response, current_app, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from .. import policy
from ..context import authenticate, request_id
from ..errors import message_of, status_of
from . import microversions

# nova/api/openstack/wsgi.py, Fault._fault_names
FAULTS = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH")

Answer = tuple[t.Any, int]

compute_versions = Blueprint("compute_versions", __name__, url_prefix="/compute")
compute = Blueprint("compute", __name__, url_prefix="/compute/v2.1")

policy.grant({"compute:unknown": "any"})


@compute.before_request
def _begin() -> None:
    view = current_app.view_functions.get(request.endpoint or "")
    if policy.POLICY.get(getattr(view, "policy_action", "")) != "public":
        authenticate()
    microversions.negotiate()


@compute.after_request
@compute_versions.after_request
def _end(response: Response) -> Response:
    response.headers["X-Compute-Request-Id"] = response.headers["X-OpenStack-Request-Id"] = request_id()
    microversions.announce(response)
    return response


def fault(error: Exception) -> Answer:
    """An error as Nova words it: {"itemNotFound": {"code": 404, "message": "..."}}."""
    status = status_of(error)
    message = message_of(error, status)
    if isinstance(error, HTTPException) and status in (404, 405):
        message = "The resource could not be found." if status == 404 else "The method is not allowed here."
    return {FAULTS.get(status, "computeFault"): {"code": status, "message": message}}, status


compute.register_error_handler(Exception, fault)
compute_versions.register_error_handler(Exception, fault)


# A path that is none of ours belongs to no blueprint, and its 404 would come in another dialect.
@compute.route("/<path:rest>", methods=list(METHODS))
@policy.allows("compute:unknown")
def unknown(rest: str) -> Answer:
    """Whatever is no route: 404, or 405 for a path that knows other methods."""
    adapter = current_app.create_url_adapter(request)
    assert adapter is not None  # this is a request
    for method in METHODS:
        try:
            endpoint, _values = adapter.match(request.path, method)
        except HTTPException:
            continue
        if endpoint != request.endpoint:
            raise MethodNotAllowed()
    raise NotFound()
