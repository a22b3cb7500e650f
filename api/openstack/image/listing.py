# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Glance's way to list: filters, sorting and pages."""

from __future__ import annotations

import csv
import operator
import typing as t
from datetime import datetime

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.catalog.image_views import SeenImage

from ...web import times
from ...web.bodies import Body, Record
from ...web.errors import BadRequestError
from ...web.listing import Dialect, Order, href, order_of, ordered
from .views import BASE

GLANCE = Dialect(
    number="{name} must be a whole number and not '{value}'",
    marker="Marker {value} could not be found",
    key="Invalid sort key: {value}. It must be one of the following: {name}",
    direction="Invalid sort direction: {value}",
    default_limit=25,
)
SORTABLE = (
    *("name", "status", "container_format", "disk_format", "size", "id", "created_at", "updated_at", "min_disk"),
    *("min_ram", "visibility", "owner", "virtual_size", "protected", "os_hidden"),
)
MEMBER_STATES = ("accepted", "pending", "rejected", "all")
SEVERAL = ("id", "name", "status", "container_format", "disk_format")  # these take in:a,b
TIMES = ("created_at", "updated_at")
COMPARED = {
    **{"gt": operator.gt, "gte": operator.ge, "lt": operator.lt, "lte": operator.le},
    **{"eq": operator.eq, "neq": operator.ne},
}
CONTROL = ("limit", "marker", "sort", "sort_key", "sort_dir", "member_status")


def offered(rows: t.Sequence[SeenImage], project: str) -> list[SeenImage]:
    """List the records that a request shows, of those that the project may use.

    Hidden ones, those of the community and those that others share with it are told of on request only.
    """
    visibility = request.args.get("visibility")
    hidden = request.args.get("os_hidden") is not None
    state = request.args.get("member_status", "accepted")
    if state not in MEMBER_STATES:
        raise BadRequestError(f"Invalid status: {state[:60]}. It must be one of: {', '.join(MEMBER_STATES)}")

    def shown(row: SeenImage) -> bool:
        if row["os_hidden"] and not hidden:
            return False
        if row["owner"] == project:
            return True
        if row["visibility"] == "community":
            return visibility in ("community", "all")
        return row["visibility"] != "shared" or not row["member_status"] or state in ("all", row["member_status"])

    return [row for row in rows if shown(row)]


def answer(images: t.Sequence[Record]) -> Body:
    """The body of a list: those of `images` (the newest first) that the request's query asks for.

    Raises BadRequestError for a query that means nothing.
    """
    args = request.args
    rows = [
        row
        for row in images
        if all(_matches(row, name, text) for name in args if name not in CONTROL for text in args.getlist(name))
    ]
    rows = ordered(rows, _order())
    limit = GLANCE.limit()
    rows = rows[GLANCE.start(rows) :]
    page, path = rows[:limit], "/v2/images"
    body: Body = {"images": page, "first": href(None, base=path), "schema": "/v2/schemas/images"}
    if page and len(rows) > limit:
        body["next"] = href(page[-1]["id"], base=path)
    return body


def _matches(row: Record, name: str, text: str) -> bool:
    if name == "visibility":
        if text not in ("public", "private", "shared", "community", "all"):
            raise BadRequestError(f"Invalid visibility value: {text[:60]}")
        return text in ("all", row["visibility"])
    if name == "tag":
        return text in row["tags"]
    if name in ("size_min", "size_max"):
        number = GLANCE.whole(name, 0, text)
        size = row["size"]
        return size is not None and bool(size >= number if name == "size_min" else size <= number)
    if name in TIMES:
        word, _colon, moment = text.partition(":")
        compare = COMPARED.get(word)
        return (compare or operator.eq)(_time(row[name]), _time(moment if compare else text))
    if name == "id":
        text = text.lower()  # as ids are kept
    if name in SEVERAL and text.startswith("in:"):
        return str(row[name]) in _values(text[3:])
    if name in ("protected", "os_hidden"):
        if text.lower() not in ("true", "false", "1", "0"):
            raise BadRequestError(
                f"Invalid value '{text[:60]}' for '{name}' filter. Valid values are case sensitive: True, False"
            )
        return bool(row[name]) == (text.lower() in ("true", "1"))
    if name in ("size", "min_disk", "min_ram", "virtual_size"):
        return bool(row[name] == GLANCE.whole(name, 0, text))
    value = row.get(name)
    return (value is not None or name in BASE) and str(value or "") == text


def _values(text: str) -> list[str]:
    """`a,"b,c",d` as a, b,c and d."""
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error:
        raise BadRequestError(f"Invalid filter value {text[:60]}. The quote is not closed.") from None


def _order() -> Order:
    args = request.args
    keys, directions = args.getlist("sort_key"), args.getlist("sort_dir")
    if args.get("sort"):
        if keys or directions:
            raise BadRequestError("Old and new sorting syntax cannot be combined")
        order = order_of(args["sort"])
    else:
        if len(directions) > 1 and len(directions) != len(keys):
            raise BadRequestError("Number of sort dirs does not match the number of sort keys")
        every = directions * len(keys) if len(directions) == 1 else directions or ["desc"] * len(keys)
        order = list(zip(keys, every)) if keys else [("created_at", direction) for direction in directions]
    return GLANCE.checked(order, SORTABLE)


def _time(text: str) -> datetime:
    try:
        return times.parse(text.replace("Z", "+00:00"))
    except ValueError:
        raise BadRequestError(f"'{text[:60]}' is not a time: write it as 2026-01-31T12:00:00Z") from None
