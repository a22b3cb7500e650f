# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Glance's way to list: filters, sorting and pages."""

from __future__ import annotations

import csv
import operator
import typing as t
import urllib.parse
from datetime import datetime, timezone

from flask import request

from ...web.errors import BadRequestError
from .views import BASE

Record = dict[str, t.Any]

DEFAULT_LIMIT, MAX_LIMIT = 25, 1000
SORTABLE = (
    "name",
    "status",
    "container_format",
    "disk_format",
    "size",
    "id",
    "created_at",
    "updated_at",
    "min_disk",
    "min_ram",
    "visibility",
    "owner",
    "virtual_size",
    "protected",
    "os_hidden",
)
MEMBER_STATES = ("accepted", "pending", "rejected", "all")
SEVERAL = ("id", "name", "status", "container_format", "disk_format")  # these take in:a,b
TIMES = ("created_at", "updated_at")
COMPARED = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
    "eq": operator.eq,
    "neq": operator.ne,
}
CONTROL = ("limit", "marker", "sort", "sort_key", "sort_dir", "member_status")


def offered(rows: t.Sequence[Record], project: str) -> list[Record]:
    """Those of the records that a project may use which it is shown unless it asks for others, or was asked about.

    Hidden ones, those of the community and those that others share with it are told of on request only.
    """
    asked = request.args.get("visibility")
    hidden = request.args.get("os_hidden") is not None
    state = request.args.get("member_status", "accepted")
    if state not in MEMBER_STATES:
        raise BadRequestError(f"Invalid status: {state[:60]}. It must be one of: {', '.join(MEMBER_STATES)}")
    visible = []
    for row in rows:
        own = row["owner"] == project
        if row["os_hidden"] and not hidden:
            continue
        if row["visibility"] == "community" and not own and asked not in ("community", "all"):
            continue
        if (
            row["visibility"] == "shared"
            and not own
            and row["member_status"]
            and state not in ("all", row["member_status"])
        ):
            continue
        visible.append(row)
    return visible


def answer(images: t.Sequence[Record]) -> Record:
    """The body of a list: those of `images` (the newest first) that the request's query asks for.

    Raises BadRequestError for a query that means nothing.
    """
    args = request.args
    rows = [
        row
        for row in images
        if all(_matches(row, name, text) for name in args if name not in CONTROL for text in args.getlist(name))
    ]
    for key, direction in reversed(_order()):
        rows.sort(key=lambda row: _rank(row.get(key)), reverse=direction == "desc")
    limit = _limit(args.get("limit"))
    if args.get("marker"):
        at = next((index for index, row in enumerate(rows) if row["id"] == args["marker"]), None)
        if at is None:
            raise BadRequestError(f"Marker {args['marker'][:60]} could not be found")
        rows = rows[at + 1 :]
    page = rows[:limit]
    body: Record = {"images": page, "first": _href(None), "schema": "/v2/schemas/images"}
    if page and len(rows) > limit:
        body["next"] = _href(page[-1]["id"])
    return body


def _matches(row: Record, name: str, text: str) -> bool:
    if name == "visibility":
        if text not in ("public", "private", "shared", "community", "all"):
            raise BadRequestError(f"Invalid visibility value: {text[:60]}")
        return text in ("all", row["visibility"])
    if name == "tag":
        return text in row["tags"]
    if name in ("size_min", "size_max"):
        number = _number(name, text)
        size = row["size"]
        return size is not None and bool(size >= number if name == "size_min" else size <= number)
    if name in TIMES:
        word, _colon, moment = text.partition(":")
        compare = COMPARED.get(word)
        return (compare or operator.eq)(_time(row[name]), _time(moment if compare else text))
    if name in SEVERAL and text.startswith("in:"):
        return str(row[name]) in _values(text[3:])
    if name in ("protected", "os_hidden"):
        if text.lower() not in ("true", "false", "1", "0"):
            raise BadRequestError(
                f"Invalid value '{text[:60]}' for '{name}' filter. Valid values are case sensitive: True, False"
            )
        return bool(row[name]) == (text.lower() in ("true", "1"))
    if name in ("size", "min_disk", "min_ram", "virtual_size"):
        return bool(row[name] == _number(name, text))
    value = row.get(name)
    return (value is not None or name in BASE) and str(value or "") == text


def _values(text: str) -> list[str]:
    """`a,"b,c",d` as a, b,c and d."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error:
        raise BadRequestError(f"Invalid filter value {text[:60]}. The quote is not closed.") from None


def _order() -> list[tuple[str, str]]:
    args = request.args
    keys, directions = args.getlist("sort_key"), args.getlist("sort_dir")
    if args.get("sort"):
        if keys or directions:
            raise BadRequestError("Old and new sorting syntax cannot be combined")
        pairs = [part.strip().partition(":") for part in args["sort"].split(",")]
        order = [(key, direction or "desc") for key, _colon, direction in pairs]
    else:
        if len(directions) > 1 and len(directions) != len(keys):
            raise BadRequestError("Number of sort dirs does not match the number of sort keys")
        every = directions * len(keys) if len(directions) == 1 else directions or ["desc"] * len(keys)
        order = list(zip(keys, every)) if keys else [("created_at", direction) for direction in directions]
    for key, direction in order:
        if key not in SORTABLE:
            raise BadRequestError(
                f"Invalid sort key: {key[:60]}. It must be one of the following: {', '.join(SORTABLE)}"
            )
        if direction not in ("asc", "desc"):
            raise BadRequestError(f"Invalid sort direction: {direction[:60]}")
    return order


def _rank(value: t.Any) -> tuple[int, t.Any]:
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, (bool, int)) else (2, str(value))


def _limit(text: str | None) -> int:
    return DEFAULT_LIMIT if text is None else min(_number("limit", text), MAX_LIMIT)


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadRequestError(f"{name} must be a whole number and not '{text[:60]}'")
    return int(text)


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise BadRequestError(f"'{text[:60]}' is no time: write it as 2026-01-31T12:00:00Z") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def _href(marker: str | None) -> str:
    kept = [(name, value) for name, values in request.args.lists() if name != "marker" for value in values]
    if marker is not None:
        kept.append(("marker", marker))
    return "/v2/images" + (f"?{urllib.parse.urlencode(kept)}" if kept else "")
