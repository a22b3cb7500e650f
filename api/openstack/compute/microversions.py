# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The microversion of the Compute API that a request speaks; before 2.27, X-OpenStack-Nova-API-Version named it."""

from __future__ import annotations

import functools
import typing as t

from flask import Response, g, request
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

from ...web.microversions import HEADER, Version, asked_for, negotiated, parse, text
from ...web.policy import Decorator, Given, Returned

LEGACY_HEADER = "X-OpenStack-Nova-API-Version"

MIN_VERSION: Version = (2, 1)
MAX_VERSION: Version = (2, 96)


def negotiate() -> None:
    """Find out what the request speaks. Raises BadRequestError, and NotAcceptableError for what is not spoken here."""
    version = asked_for("compute", "nova")
    if version is None and LEGACY_HEADER in request.headers:
        version = request.headers[LEGACY_HEADER].strip()
    g.compute_version = negotiated(version, MIN_VERSION, MAX_VERSION)


def microversion() -> Version:
    """Return the microversion that this request speaks, for comparison with (2, X)."""
    version: Version = g.get("compute_version", MIN_VERSION)
    return version


def from_version(first: Version, fields: JsonObject) -> JsonObject:
    """`fields` of a body or a schema, which came with microversion `first`; none in an earlier one."""
    return fields if microversion() >= first else {}


def since(minimum: str, until: str | None = None) -> Decorator:
    """A route that is there from microversion `minimum` to `until`; 404 in any other, as in Nova."""
    first, last = parse(minimum), MAX_VERSION if until is None else parse(until)

    def decorate(view: t.Callable[Given, Returned]) -> t.Callable[Given, Returned]:
        @functools.wraps(view)
        def versioned(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            if not first <= microversion() <= last:
                raise NotFound()
            return view(*args, **kwargs)

        return versioned

    return decorate


def announce(response: Response) -> Response:
    """Tell in the answer what was spoken."""
    version = g.get("compute_version")
    if version is not None:
        response.headers[HEADER] = f"compute {text(version)}"
        response.headers[LEGACY_HEADER] = text(version)
    response.vary.update((HEADER, LEGACY_HEADER))
    return response
