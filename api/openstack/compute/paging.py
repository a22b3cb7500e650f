# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's way to page through lists that are short enough to be read as a whole."""

from __future__ import annotations

import re
import typing as t
import urllib.parse

from flask import request

from ...web.errors import BadRequestError

Record = dict[str, t.Any]
Row = t.TypeVar("Row")

MAX_LIMIT = 1000  # nova.conf [api] max_limit


def number(name: str, default: int = 0) -> int:
    """A query parameter that is a whole number from 0 on. Raises BadRequestError."""
    said = request.args.get(name)
    if said is None:
        return default
    if re.fullmatch(r"[0-9]{1,18}", said, re.ASCII) is None:
        raise BadRequestError(f"Invalid input for query parameters {name}. Value: {said[:40]}. {name} must be >= 0.")
    return int(said)


def page(rows: t.Sequence[Row], key: t.Callable[[Row], object], what: str) -> tuple[list[Row], list[Record]]:
    """Those of `rows` after the query's marker, a value of `key`, at most its limit; and the links to what follows.

    Raises BadRequestError for a marker that is not there.
    """
    limit = min(number("limit", MAX_LIMIT) or MAX_LIMIT, MAX_LIMIT)
    marker, start = request.args.get("marker"), 0
    if marker is not None:
        at = next((index for index, row in enumerate(rows) if str(key(row)) == marker), None)
        if at is None:
            raise BadRequestError(f"Marker {what} {marker[:60]} could not be found.")
        start = at + 1
    shown = list(rows[start : start + limit])
    if start + limit >= len(rows):
        return shown, []
    args = [(name, value) for name, values in request.args.lists() if name != "marker" for value in values]
    query = urllib.parse.urlencode([*args, ("marker", str(key(shown[-1])))])
    return shown, [{"rel": "next", "href": f"{request.base_url}?{query}"}]
