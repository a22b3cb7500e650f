# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Neutron's way to list: filters on every attribute, `fields`, sorting and pages."""

from __future__ import annotations

import typing as t
import urllib.parse

from flask import request

from ...web.errors import BadRequestError

Record = dict[str, t.Any]

MAX_LIMIT = 1000
CONTROL = ("fields", "limit", "marker", "page_reverse", "sort_key", "sort_dir")
TAGS = ("tags", "tags-any", "not-tags", "not-tags-any")


def answer(plural: str, records: t.Sequence[Record], attributes: t.Collection[str]) -> Record:
    """The body of a list: those of `records` that the request's query asks for. `attributes` are all that there are.

    Raises BadRequestError for a filter, sort key or marker that means nothing.
    """
    args = request.args
    unknown = sorted(set(args) - set(CONTROL) - set(TAGS) - set(attributes))
    if unknown:
        shown = [name[:60] for name in unknown[:10]]
        raise BadRequestError(f"Invalid input for operation: {shown} is invalid attribute for filtering.")
    filters = {name: args.getlist(name) for name in args if name not in CONTROL}
    rows = [row for row in records if all(_matches(row, name, texts) for name, texts in filters.items())]
    rows = _sorted(rows, args.getlist("sort_key"), args.getlist("sort_dir"), attributes)
    page, links = _page(plural, rows)
    body: Record = {plural: [fields(row) for row in page]}
    if links:
        body[f"{plural}_links"] = links
    return body


def fields(row: Record) -> Record:
    """`row` with those attributes alone that the request's `fields` name."""
    wanted = [name for name in request.args.getlist("fields") if name]
    return {name: row[name] for name in wanted if name in row} if wanted else row


def _matches(row: Record, name: str, wanted: t.Sequence[str]) -> bool:
    """Whether the attribute has one of the values `wanted`."""
    if name in TAGS:
        return _tagged(name, set(row.get("tags") or ()), {tag for text in wanted for tag in text.split(",") if tag})
    value = row.get(name)
    if name == "fixed_ips":
        return all(any(_has(address, text) for address in value or ()) for text in wanted)
    if isinstance(value, list):
        return any(text in value for text in wanted)
    if isinstance(value, bool):
        return str(value).lower() in [{"1": "true", "0": "false"}.get(text, text.lower()) for text in wanted]
    return ("" if value is None else str(value)) in wanted


def _tagged(name: str, tags: set[str], wanted: set[str]) -> bool:
    has = bool(wanted & tags) if name.endswith("-any") else wanted <= tags
    return not wanted or has != name.startswith("not-")


def _has(address: Record, text: str) -> bool:
    """`ip_address=10.0.0.5`, `subnet_id=...` or `ip_address_substr=10.0`."""
    key, _equals, wanted = text.partition("=")
    if key == "ip_address_substr":
        return wanted in str(address["ip_address"])
    return str(address.get(key)) == wanted


def _sorted(
    rows: list[Record], keys: t.Sequence[str], directions: t.Sequence[str], attributes: t.Collection[str]
) -> list[Record]:
    if directions and len(directions) != len(keys):
        raise BadRequestError("The number of sort_keys and sort_dirs must be same")
    for key in keys:
        if key not in attributes:
            raise BadRequestError(f"{key[:60]} is invalid attribute for sort_key")
    for direction in directions:
        if direction not in ("asc", "desc"):
            raise BadRequestError(f"{direction[:60]} is invalid value for sort_dirs, valid value is 'asc' and 'desc'")
    for key, direction in reversed(list(zip(keys, directions or ["asc"] * len(keys)))):
        rows = sorted(rows, key=lambda row: _order(row.get(key)), reverse=direction == "desc")
    return rows


def _order(value: t.Any) -> tuple[int, t.Any]:
    """Values of any kind in one order: nothing first, numbers before texts."""
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, (bool, int, float)) else (2, str(value))


def _page(plural: str, rows: list[Record]) -> tuple[list[Record], list[Record]]:
    args = request.args
    limit = _limit(args.get("limit"))
    reverse = args.get("page_reverse", "").lower() in ("true", "1")
    start, end = 0, len(rows)
    if args.get("marker"):
        at = next((index for index, row in enumerate(rows) if row["id"] == args["marker"]), None)
        if at is None:
            raise BadRequestError(f"Invalid marker {args['marker'][:60]}: there is none of these {plural} with that id")
        start, end = (0, at) if reverse else (at + 1, len(rows))
    if limit is not None and end - start > limit:
        start, end = (end - limit, end) if reverse else (start, start + limit)
    page = rows[start:end]
    links = []
    if limit is not None and page:
        if end < len(rows):
            links.append({"rel": "next", "href": _href(page[-1]["id"], reverse=False)})
        if start > 0:
            links.append({"rel": "previous", "href": _href(page[0]["id"], reverse=True)})
    return page, links


def _limit(text: str | None) -> int | None:
    """None: no pages were asked for. 0 and -1 mean that, too."""
    if text in (None, "", "0", "-1"):
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise BadRequestError(f"Limit must be an integer 0 or greater and not '{text[:60]}'")
    return min(int(text), MAX_LIMIT)


def _href(marker: str, reverse: bool) -> str:
    kept = [(name, value) for name, values in request.args.lists() for value in values]
    kept = [(name, value) for name, value in kept if name not in ("marker", "page_reverse")]
    kept.append(("marker", marker))
    if reverse:
        kept.append(("page_reverse", "True"))
    return f"{request.base_url}?{urllib.parse.urlencode(kept)}"
