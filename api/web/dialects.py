# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The body of an error, in the words of the service that lies under a path."""

from __future__ import annotations

import html
import http
import typing as t

from flask import request
from werkzeug.exceptions import NotFound

from .bodies import Body

Render = t.Callable[[int, str, Exception | None], Body | str]  # a text is HTML

# Nova's names (nova.api.openstack.wsgi.Fault)
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
NETWORK_TYPES = {400: "HTTPBadRequest", 401: "HTTPUnauthorized", 403: "PolicyNotAuthorized", 404: "HTTPNotFound"}


def title(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def fault(status: int, message: str, error: Exception | None = None) -> Body:
    """Nova's and Cinder's: {"itemNotFound": {"code": 404, "message": ...}}."""
    key = FAULTS.get(status, "computeFault")
    if isinstance(error, NotFound):  # a path, and not what the ledger does not know
        message = "The resource could not be found."
    return {key: {"code": status, "message": message}}


def keystone(status: int, message: str, error: Exception | None = None) -> Body:
    """Keystone's: {"error": {"code": 404, "title": "Not Found", "message": ...}}."""
    return {"error": {"code": status, "title": title(status), "message": message}}


class NeutronError(Exception):
    """An error with the class by which Neutron's clients know it."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.neutron_type = status, kind


def not_found(what: str, number: str) -> NeutronError:
    """Return Neutron's error about a `what` ("Security Group") that does not exist, or is another project's."""
    kind = f"{what.replace(' ', '')}NotFound"
    message = f"{what.capitalize()} {number[:255]} does not exist"  # of these
    return NeutronError(404, kind, message if "Security" in what else f"{what} {number[:255]} could not be found.")


def neutron(status: int, message: str, error: Exception | None = None) -> Body:
    """Neutron's; an error may carry its own `neutron_type`, for clients that look at it."""
    kind = getattr(error, "neutron_type", None) or NETWORK_TYPES.get(status, title(status).replace(" ", ""))
    return {"NeutronError": {"type": kind, "message": message, "detail": ""}}


def glance(status: int, message: str, error: Exception | None = None) -> Body | str:
    """Glance's, which are webob's: JSON for whoever asks for it, else HTML, which glanceclient reads."""
    if request.accept_mimetypes.best_match(("text/html", "application/json")) == "application/json":
        return {"code": status, "title": title(status), "message": message}
    heading = f"{status} {title(status)}"
    return (
        f"<html>\n<head><title>{heading}</title></head>\n<body>\n<h1>{heading}</h1>\n"
        f"{html.escape(message)}<br /><br />\n</body>\n</html>\n"
    )


def native(status: int, message: str, error: Exception | None = None) -> Body:
    return {"error": {"code": status, "message": message}}


# The longest prefix first where one is another's beginning.
DIALECTS: dict[str, Render] = {
    "/identity": keystone,
    "/compute": fault,
    "/volume": fault,
    "/network": neutron,
    "/image": glance,
}


def dialect(path: str) -> Render:
    """Return the function that renders errors under `path`."""
    for prefix, render in DIALECTS.items():
        if path == prefix or path.startswith(prefix + "/"):
            return render
    return native
