# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Microversions: which one a request asks for with `OpenStack-API-Version: compute 2.X`, or `volume 3.X`."""

from __future__ import annotations

import re

from flask import request

from .errors import BadRequestError, NotAcceptableError

HEADER = "OpenStack-API-Version"
Version = tuple[int, int]

_FORM = re.compile(r"([1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})")


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


def requested_version(*names: str) -> str | None:
    """Return what the header says for the service, which goes by any of `names`."""
    for part in request.headers.get(HEADER, "").split(","):
        service, _blank, version = part.strip().partition(" ")
        if service.lower() in names:
            return version.strip()
    return None


def negotiated(version: str | None, first: Version, last: Version) -> Version:
    """The version for who asks for `version`. Raises BadRequestError; NotAcceptableError outside `first` to `last`."""
    if version is None:
        return first
    if version.lower() == "latest":
        return last
    spoken = parse(version)
    if not first <= spoken <= last:
        raise NotAcceptableError(
            f"Version {text(spoken)} is not supported by the API. Minimum is {text(first)} and maximum is {text(last)}."
        )
    return spoken
