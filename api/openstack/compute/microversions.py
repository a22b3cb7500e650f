# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which microversion of the Compute API a request speaks.

Asked for with `OpenStack-API-Version: compute 2.X` or, as before 2.27, `X-OpenStack-Nova-API-Version: 2.X`.
"""

from __future__ import annotations

import functools
import re
import typing as t

from flask import Response, g, request
from werkzeug.exceptions import NotFound

from ...web.errors import BadRequestError, NotAcceptableError

HEADER, LEGACY_HEADER = "OpenStack-API-Version", "X-OpenStack-Nova-API-Version"

Version = tuple[int, int]

MIN_VERSION: Version = (2, 1)
MAX_VERSION: Version = (2, 96)

_FORM = re.compile(r"([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})")

View = t.TypeVar("View", bound=t.Callable[..., t.Any])


def text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"


def parse(version: str) -> Version:
    """(2, 26) of "2.26". Raises BadRequestError."""
    match = _FORM.fullmatch(version)
    if match is None:
        raise BadRequestError(
            f"API Version String {version[:40]} is of invalid format. Must be of format MajorNum.MinorNum."
        )
    return int(match[1]), int(match[2])


def negotiate() -> None:
    """Find out what the request speaks. Raises BadRequestError, and NotAcceptableError for what is not spoken here."""
    asked = _asked_for()
    if asked is None:
        version = MIN_VERSION
    elif asked.lower() == "latest":
        version = MAX_VERSION
    else:
        version = parse(asked)
        if not MIN_VERSION <= version <= MAX_VERSION:
            raise NotAcceptableError(
                f"Version {text(version)} is not supported by the API. Minimum is {text(MIN_VERSION)} and maximum is "
                f"{text(MAX_VERSION)}."
            )
    g.compute_version = version


def microversion() -> Version:
    """What this request speaks, for comparison with (2, X)."""
    version: Version = g.get("compute_version", MIN_VERSION)
    return version


def since(minimum: str, until: str | None = None) -> t.Callable[[View], View]:
    """A route that is there from microversion `minimum` to `until`; 404 in any other, as in Nova."""
    first, last = parse(minimum), MAX_VERSION if until is None else parse(until)

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def versioned(*args: t.Any, **kwargs: t.Any) -> t.Any:
            if not first <= microversion() <= last:
                raise NotFound()
            return view(*args, **kwargs)

        return t.cast(View, versioned)

    return decorate


def announce(response: Response) -> Response:
    """Tell in the answer what was spoken."""
    version = g.get("compute_version")
    if version is not None:
        response.headers[HEADER] = f"compute {text(version)}"
        response.headers[LEGACY_HEADER] = text(version)
    response.vary.update((HEADER, LEGACY_HEADER))
    return response


def _asked_for() -> str | None:
    for part in request.headers.get(HEADER, "").split(","):
        service, _blank, version = part.strip().partition(" ")
        if service.lower() in ("compute", "nova"):
            return version.strip()
    legacy = request.headers.get(LEGACY_HEADER)
    return None if legacy is None else legacy.strip()
