# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cinder's way to list: filters, sorting and pages."""

from __future__ import annotations

import ast
import json
import typing as t
import urllib.parse

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError

from ...web.context import current
from ...web.errors import BadRequestError

Record = dict[str, t.Any]


class HasId(t.Protocol):
    """What can be listed: a marker names it by its id."""

    @property
    def id(self) -> str: ...


Listed = t.TypeVar("Listed", bound=HasId)

MAX_LIMIT = 1000
FILTERS: dict[str, str] = {  # of clients: what our views call it
    "name": "name",
    "display_name": "name",
    "status": "status",
    "id": "id",
    "volume_id": "volume_id",
    "availability_zone": "availability_zone",
    "bootable": "bootable",
    "size": "size",
    "volume_type": "volume_type",
    "description": "description",
    "user_id": "user_id",
    "snapshot_id": "snapshot_id",
    "source_volid": "source_volid",
}
SORTABLE = (
    "id",
    "name",
    "display_name",
    "status",
    "size",
    "created_at",
    "updated_at",
    "availability_zone",
    "bootable",
    "volume_type",
    "user_id",
    "volume_id",
    "description",
)


def project_asked_for() -> str | None:
    """The project whose objects are listed; None: all, which is for administrators."""
    args = request.args
    if not current().is_admin or args.get("all_tenants", "0").lower() in ("0", "false", ""):
        return current().project
    return args.get("project_id") or None


def page(
    kind: str, rows: t.Sequence[Listed], full: t.Callable[[Listed], Record], shown: t.Callable[[Listed], Record]
) -> Record:
    """The body of a list of `rows` (the oldest first): those that the query asks for, as `shown`; `full` is what it
    filters and sorts by. Raises BadRequestError for a query that means nothing."""
    args = request.args
    pairs = [(row, full(row)) for row in reversed(rows)]
    for name in args:
        if name in FILTERS:
            wanted = args[name]
            pairs = [pair for pair in pairs if _text(pair[1].get(FILTERS[name])) == _text(wanted)]
        elif name == "metadata":
            asked = _metadata(args[name])
            pairs = [pair for pair in pairs if asked.items() <= pair[1]["metadata"].items()]
        elif name.endswith("~") and name[:-1] in FILTERS:
            pairs = [pair for pair in pairs if args[name] in _text(pair[1].get(FILTERS[name[:-1]]))]
    for key, direction in reversed(_order()):
        pairs.sort(key=lambda pair, key=key: _rank(pair[1].get(key)), reverse=direction == "desc")  # type: ignore[misc]
    count, limit = len(pairs), min(_number("limit", MAX_LIMIT), MAX_LIMIT)
    pairs = pairs[_start(pairs) + _number("offset", 0) :]
    body: Record = {kind: [shown(row) for row, _view in pairs[:limit]]}
    if limit and len(pairs) >= limit:  # as in Cinder, a full page has one after it, be that empty
        kept = [(name, value) for name, value in args.items() if name not in ("marker", "offset")]
        query = urllib.parse.urlencode([*kept, ("marker", pairs[limit - 1][0].id)])
        body[f"{kind}_links"] = [{"rel": "next", "href": f"{request.base_url}?{query}"}]
    if args.get("with_count", "").lower() in ("true", "1"):
        body["count"] = count
    return body


def _start(pairs: t.Sequence[tuple[HasId, Record]]) -> int:
    marker = request.args.get("marker")
    if marker is None:
        return 0
    for index, (row, _view) in enumerate(pairs):
        if row.id == marker:
            return index + 1
    raise NotFoundError(f"marker [{marker[:60]}] not found")


def _order() -> list[tuple[str, str]]:
    args = request.args
    if args.get("sort"):
        if "sort_key" in args or "sort_dir" in args:
            raise BadRequestError(
                "The 'sort_key' and 'sort_dir' parameters are deprecated and cannot be used with the 'sort' parameter."
            )
        pairs = [part.strip().partition(":") for part in args["sort"].split(",")]
        order = [(key.strip(), direction.strip() or "desc") for key, _colon, direction in pairs]
    else:
        order = [(args.get("sort_key", "created_at"), args.get("sort_dir", "desc"))]
        if not args.get("sort_key") and not args.get("sort_dir"):
            return []
    for key, direction in order:
        if key not in SORTABLE:
            raise BadRequestError(f"Sort key {key[:60]} is invalid.")
        if direction not in ("asc", "desc"):
            raise BadRequestError(f"Unknown sort direction {direction[:60]}, must be one of: asc, desc")
    return [("name" if key == "display_name" else key, direction) for key, direction in order]


def _rank(value: t.Any) -> tuple[int, t.Any]:
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, int) else (2, str(value))


def _text(value: t.Any) -> str:
    if isinstance(value, bool) or str(value).lower() in ("true", "false"):
        return str(value).lower()
    return "" if value is None else str(value)


def _number(name: str, default: int) -> int:
    text = request.args.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise BadRequestError(f"Invalid input for query parameters {name}. Value: {text[:60]}. Give a whole number.")
    return int(text)


def _metadata(text: str) -> dict[str, str]:
    """{'a': 'b'}, as Python or JSON writes it."""
    metadata: t.Any = None
    if len(text) <= 4096:
        for read in (json.loads, ast.literal_eval):
            try:
                metadata = read(text)
                break
            except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
                continue
    if not isinstance(metadata, dict) or not all(isinstance(part, str) for pair in metadata.items() for part in pair):
        raise BadRequestError("Invalid input for query parameters metadata: give a dictionary of texts")
    return t.cast("dict[str, str]", metadata)
