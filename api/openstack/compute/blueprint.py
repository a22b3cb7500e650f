# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Basis of all routes of the Compute API: its blueprints, microversions, and Nova's way to page.

Before microversion 2.27, the header X-OpenStack-Nova-API-Version named it. Faults are dialects.fault's.
"""

from __future__ import annotations

import functools
import typing as t

from flask import Response, g, request
from werkzeug.exceptions import NotFound

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

from ...web import services
from ...web.addresses import project_in_path
from ...web.bodies import Body, Json, Row, field
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.listing import MAX_LIMIT, Dialect, body
from ...web.microversions import HEADER, Version, negotiated, parse, requested_version, text
from ...web.policy import Decorator, Given, Returned

Listed = t.TypeVar("Listed")

LEGACY_HEADER = "X-OpenStack-Nova-API-Version"

MIN_VERSION: Version = (2, 1)
MAX_VERSION: Version = (2, 96)
CLEAN: Version = (2, 75)  # from which on most lists refuse what they do not know


def negotiate() -> None:
    """Find out what the request speaks. Raises BadRequestError, and NotAcceptableError for what is not spoken here."""
    version = requested_version("compute", "nova")
    if version is None and LEGACY_HEADER in request.headers:
        version = request.headers[LEGACY_HEADER].strip()
    g.compute_version = negotiated(version, MIN_VERSION, MAX_VERSION)


def check_project() -> None:
    """Refuse another project's id before the route's own path, as Nova does. Raises BadRequestError."""
    named = project_in_path()
    if named is not None and named != current().project:
        raise BadRequestError(
            f"Malformed request URL: URL's project_id '{named[:64]}' doesn't match Context's project_id "
            f"'{current().project}'"
        )


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


def check_query(first: Version, names: t.Collection[str]) -> None:
    """Refuse parameters of the query other than `names`, from microversion `first` on: before, as in Nova, what is
    mistyped is nothing, and the answer is everything. Raises BadRequestError."""
    unknown = sorted(set(request.args) - set(names))
    if unknown and microversion() >= first:
        raise BadRequestError(f"Additional properties are not allowed ('{unknown[0][:40]}' was unexpected)")


def known(first: Version, names: str, *later: tuple[Version, str]) -> Decorator:
    """A route whose query has `names` alone (with blanks in between) from microversion `first` on, and in `later` ones
    others besides."""

    def decorate(view: t.Callable[Given, Returned]) -> t.Callable[Given, Returned]:
        @functools.wraps(view)
        def checked(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
            check_query(
                first,
                [
                    *names.split(),
                    *(name for since_, more in later if microversion() >= since_ for name in more.split()),
                ],
            )
            return view(*args, **kwargs)

        return checked

    return decorate


def announce(response: Response) -> Response:
    """Tell in the answer what was spoken."""
    version = g.get("compute_version")
    if version is not None:
        response.headers[HEADER] = f"compute {text(version)}"
        response.headers[LEGACY_HEADER] = text(version)
    response.vary.update((HEADER, LEGACY_HEADER))
    return response


NOVA = Dialect(
    number="Invalid input for query parameters {name}. Value: {value}. {name} must be >= 0.",
    marker="Marker {name} {value} could not be found.",
    key="Invalid input for query parameters sort_key. Value: {value}. No such sort key.",
    direction="Invalid input for query parameters sort_dir. Value: {value}. asc or desc.",
)


def page(plural: str, rows: t.Sequence[Row], view: t.Callable[[Row], Json], key: str, name: str) -> Body:
    """The body with those of `rows` after the query's marker, a value of `key`, at most its limit, as `view` has them.
    `name` is what a row is called. Raises BadRequestError for a marker that is not there."""
    shown, marker = rows_of_page(rows, key, name)
    return body(plural, [view(row) for row in shown], marker)


def rows_of_page(rows: t.Sequence[Row], key: str, name: str) -> tuple[t.Sequence[Row], str | None]:
    """Return the `rows` of the page, and the marker of the next page, if there is one."""
    start, limit = NOVA.start(rows, key, name), NOVA.limit() or MAX_LIMIT
    shown = rows[start : start + limit]
    more = start + limit < len(rows)
    return shown, str(field(shown[-1], key)) if more else None


def part(rows: t.Sequence[Listed], *also: str) -> t.Sequence[Listed]:
    """Return the part of `rows` that the query's `limit` and `offset` select.

    Raises BadRequestError from 2.75 on for any other parameter that is not one of `also`: who pages by a marker would
    be given the first page for ever.
    """
    check_query(CLEAN, {"limit", "offset", *also})
    offset = NOVA.whole("offset", 0)
    return rows[offset : offset + (NOVA.limit() or MAX_LIMIT)]


compute_versions = services.Service("compute_versions", "/compute")
compute = services.Service("compute", "/compute/v2.1")
compute_legacy = services.Service("compute_legacy", "/compute/v2.1")  # NOVALITE_API_LEGACY=off leaves it out
for _service in (compute, compute_legacy):
    _service.blueprint.before_request(negotiate)
    _service.blueprint.before_request(check_project)
    _service.blueprint.after_request(announce)
