# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Neutron's way to list: filters on every attribute, `fields`, sorting and pages."""

from __future__ import annotations

import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import Page

from ...web.bodies import Body, Record
from ...web.errors import BadRequestError
from ...web.listing import Dialect, href, is_true, ordered

NEUTRON = Dialect(
    number="Limit must be an integer 0 or greater and not '{value}'",
    marker="Invalid marker {value}: there is none of these {name} with that id",
    key="{value} is invalid attribute for sort_key",
    direction="{value} is invalid value for sort_dirs, valid value is 'asc' and 'desc'",
)
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
    keys, directions = args.getlist("sort_key"), args.getlist("sort_dir")
    if directions and len(directions) != len(keys):
        raise BadRequestError("The number of sort_keys and sort_dirs must be same")
    order = list(zip(keys, directions or ["asc"] * len(keys)))
    page, links = _page(plural, ordered(rows, NEUTRON.checked(order, attributes)))
    body: Record = {plural: [fields(row) for row in page]}
    if links:
        body[f"{plural}_links"] = links
    return body


def values(name: str) -> list[str] | None:
    """The values of which an attribute is to have one; None where the request says nothing that a database could."""
    texts = request.args.getlist(name)
    return texts if texts and all(texts) else None


def is_paged() -> bool:
    """Tell whether the request asks for a page, in no order of its own: then it is by ids, as in Neutron."""
    return (_limit() is not None or bool(request.args.get("marker"))) and not request.args.get("sort_key")


def page(filters: t.Collection[str]) -> Page | None:
    """The page that is asked for, if the request has no order of its own and no filters but these: of what others leave
    of a page, nothing is known before all is read."""
    others = request.args.keys() - {*CONTROL, *filters}
    limit = _limit()
    if (
        limit is None
        or not is_paged()
        or others
        or any(values(name) is None for name in request.args.keys() & set(filters))
    ):
        return None
    return Page(limit, request.args.get("marker") or None, is_true("page_reverse"))


def _limit() -> int | None:
    # no limit, 0 and -1 mean that no pages are asked for
    return None if request.args.get("limit") in (None, "", "0", "-1") else NEUTRON.limit()


def fields(row: Record) -> Record:
    """`row` with those attributes alone that the request's `fields` name."""
    names = [name for name in request.args.getlist("fields") if name]
    return {name: row[name] for name in names if name in row} if names else row


def _matches(row: Record, name: str, texts: t.Sequence[str]) -> bool:
    """Tell whether the attribute has one of the values `texts`."""
    if name in TAGS:
        return _tagged(name, set(row.get("tags") or ()), {tag for text in texts for tag in text.split(",") if tag})
    value = row.get(name)
    if name == "fixed_ips":
        return all(any(_has(address, text) for address in value or ()) for text in texts)
    if isinstance(value, list):
        return any(text in value for text in texts)
    if isinstance(value, bool):
        return str(value).lower() in [{"1": "true", "0": "false"}.get(text, text.lower()) for text in texts]
    return ("" if value is None else str(value)) in texts


def _tagged(name: str, tags: set[str], requested_tags: set[str]) -> bool:
    has = bool(requested_tags & tags) if name.endswith("-any") else requested_tags <= tags
    return not requested_tags or has != name.startswith("not-")


def _has(address: Record, text: str) -> bool:
    """`ip_address=10.0.0.5`, `subnet_id=...` or `ip_address_substr=10.0`."""
    key, _equals, expected_text = text.partition("=")
    if key == "ip_address_substr":
        return expected_text in str(address["ip_address"])
    return str(address.get(key)) == expected_text


def _page(plural: str, rows: list[Record]) -> tuple[list[Record], list[Body]]:
    limit, reverse = _limit(), is_true("page_reverse")
    start, end = 0, len(rows)
    place = NEUTRON.place(rows, name=plural)
    if place is not None:
        start, end = (0, place) if reverse else (place + 1, len(rows))
    if limit is not None and end - start > limit:
        start, end = (end - limit, end) if reverse else (start, start + limit)
    page = rows[start:end]
    links: list[Body] = []
    if limit is not None and page:
        if end < len(rows):
            links.append({"rel": "next", "href": href(page[-1]["id"], "page_reverse")})
        if start > 0:
            links.append({"rel": "previous", "href": href(page[0]["id"], page_reverse="True")})
    return page, links
