# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hooks that every request goes through, whatever service it is for."""

from __future__ import annotations

import re
import typing as t

from flask import Flask, Response, request
from werkzeug.exceptions import BadRequest

from ..settings import Settings
from .context import request_id

MAX_QUERY = 8192  # characters
MAX_DEPTH = 32  # levels of lists and objects in JSON; no request of any of these services has ten

_UNFIT = re.compile("[\0\ud800-\udfff]")


def register(app: Flask, settings: Settings) -> None:
    app.before_request(_refuse_unfit)
    app.after_request(_identify)


def _refuse_unfit() -> None:
    """Refuse what no name or id can be and PostgreSQL does not store: a NUL, half of a surrogate pair."""
    if len(request.query_string) > MAX_QUERY:
        raise BadRequest
    texts: list[str] = [request.path]
    for name, values in request.args.lists():
        texts += [name, *values]
    if any(unfit(text) for text in texts):
        raise BadRequest


def unfit(value: t.Any) -> bool:
    """Tell whether `value`, which came as JSON, is nested deeper than MAX_DEPTH, or a text in it cannot be stored.

    It goes down one level after the other and never into itself: how deep a client nests is the client's to choose,
    and whatever looks at `value` afterwards (a schema, a playbook's variables, repr) calls itself for each level.
    """
    level = [value]
    for _depth in range(MAX_DEPTH + 1):
        below: list[t.Any] = []
        for item in level:
            if isinstance(item, str):
                if _UNFIT.search(item) is not None:
                    return True
            elif isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return False
        level = below
    return True


def _identify(response: Response) -> Response:
    """Name the request in its answer, as every OpenStack service does."""
    name = request_id()
    response.headers.setdefault("X-OpenStack-Request-Id", name)
    if request.path.startswith("/compute"):
        response.headers.setdefault("X-Compute-Request-Id", name)
    return response


# --- Pages of other origins (CORS) ------------------------------------------------------------------------------------

# The services that are asked with a token in a header
_PATHS = ("/identity", "/compute", "/image", "/network", "/volume", "/v1")
_METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE"
_TAKEN = (
    "Accept, Content-Type, Idempotency-Key, Last-Event-ID, OpenStack-API-Version, X-Auth-Token, "
    "X-OpenStack-Nova-API-Version, X-OpenStack-Request-Id, X-Subject-Token"
)
_SHOWN = (
    "Location, OpenStack-API-Version, Retry-After, X-Compute-Request-Id, X-OpenStack-Nova-API-Version, "
    "X-OpenStack-Request-Id, X-Subject-Token"
)
_SECONDS = "3600"  # for which a browser may keep the answer to its question


def share(app: Flask, settings: Settings) -> None:
    """Let the pages of NOVALITE_API_CORS_ORIGINS ask in a browser, with a token, as a dashboard does that runs there.

    They are never allowed to send cookies: the session of the status page is for its own pages.
    """
    origins = settings.cors_origins
    if not origins:
        return

    @app.before_request
    def _preflight() -> Response | None:
        """A browser asks whether it may ask: without a token, and before it is known whether there is such a route."""
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers and _is_shared():
            return Response(status=204)
        return None

    @app.after_request
    def _tell(response: Response) -> Response:
        if not _is_shared():
            return response
        response.vary.add("Origin")
        origin = request.headers.get("Origin", "")
        if origin not in origins and not (origin and "*" in origins):
            return response
        response.headers["Access-Control-Allow-Origin"] = origin
        if request.method == "OPTIONS":
            response.headers["Access-Control-Allow-Methods"] = _METHODS
            response.headers["Access-Control-Allow-Headers"] = _TAKEN
            response.headers["Access-Control-Max-Age"] = _SECONDS
        else:
            response.headers["Access-Control-Expose-Headers"] = _SHOWN
        return response


def _is_shared() -> bool:
    return request.path.startswith(tuple(f"{path}/" for path in _PATHS)) or request.path in _PATHS
