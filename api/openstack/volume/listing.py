# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cinder's way to list: filters, sorting and pages."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import json
import typing as t

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_listing

from ...web import policy
from ...web.bodies import Body, Json
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.listing import Dialect, Order, body, is_true, order_of, ordered
from .blueprint import speaks


class HasId(t.Protocol):
    """Something that can be listed: a marker names it by its id."""

    @property
    def id(self) -> str: ...


Listed = t.TypeVar("Listed", bound=HasId)
View = t.Callable[[Listed], Body]


@dataclasses.dataclass(frozen=True)
class Kind(t.Generic[Listed]):
    """A kind of objects whose pages the database chooses; `load` reads those of some ids, in any order."""

    plural: str
    rows: volume_listing.Kind
    load: t.Callable[[Connection, list[str]], t.Iterable[Listed]]


CINDER = Dialect(
    number="Invalid input for query parameters {name}. Value: {value}. Give a whole number.",
    marker="marker [{value}] not found",
    no_marker=NotFoundError,
    key="Sort key {value} is invalid.",
    direction="Unknown sort direction {value}, must be one of: asc, desc",
)
_BOTH = ("id", "name", "display_name", "status", "size", "availability_zone", "bootable", "volume_type", "user_id")
# The last are of what this cloud has none of, or of an attachment
FILTERS = (
    *(*_BOTH, "volume_id", "description", "snapshot_id", "source_volid"),
    *("group_id", "migration_status", "instance_id"),
)
# Beside filters: what a list is asked for in parts by, and of it all. Of types, their own
CONTROL = frozenset(["limit", "marker", "offset", "sort", "sort_key", "sort_dir", "with_count", "all_tenants"])
OTHERS = {"volume_types": frozenset(["is_public", "extra_specs"])}
# Since when a member is told of filters that there are none of (administrators never are); on other lists never
REFUSING = {"volumes": 31, "snapshots": 31, "attachments": 31, "backups": 31, "volume_types": 52}
POOLS = frozenset(["detail", "name", "volume_type"])  # of which administrators are told, too
SORTABLE = (*_BOTH, "volume_id", "description", "created_at", "updated_at")
ALIASES = {"display_name": "name"}


def listed_project() -> str | None:
    """The project whose objects are listed; None: all, which is for administrators."""
    args = request.args
    if not policy.allowed("volume:all_tenants") or args.get("all_tenants", "0").lower() in ("0", "false", ""):
        return current().project
    return args.get("project_id") or None


def page_of(connection: Connection, kind: Kind[Listed], shown: View[Listed]) -> Body:
    """The body of a list of objects: those that the query asks for, as `shown`. Raises BadRequestError for a query that
    means nothing."""
    args = request.args
    check(kind.plural)
    texts = {name: _truth(text) if name == "bootable" else text for name, text in args.items()}
    query = volume_listing.Query(
        project_id=listed_project(),
        equals={ALIASES.get(name, name): text for name, text in texts.items() if name in FILTERS},
        parts={
            ALIASES.get(name[:-1], name[:-1]): text
            for name, text in texts.items()
            if name.endswith("~") and name[:-1] in FILTERS
        },
        metadata=_metadata(args["metadata"]) if "metadata" in args else None,
        sort=[(key, direction == "asc") for key, direction in _order()],
    )
    limit, offset = CINDER.limit(), CINDER.whole("offset", 0)
    ids = volume_listing.find(connection, kind.rows, query, limit, args.get("marker") or None, offset)
    loaded = {row.id: row for row in kind.load(connection, ids)}
    answer = _body(kind.plural, [shown(loaded[number]) for number in ids if number in loaded], ids, limit)
    if is_true("with_count"):
        answer["count"] = volume_listing.count(connection, kind.rows, query)
    return answer


def _body(plural: str, items: list[Body], ids: t.Sequence[str], limit: int) -> Body:
    full_page = limit and len(ids) >= limit  # as in Cinder, it has one after it, be that empty
    return body(plural, items, ids[-1] if full_page else None, "offset")


def page(kind: str, rows: t.Sequence[Listed], full: View[Listed], shown: View[Listed]) -> Body:
    """The same of `rows` that are few (the oldest first); `full` is what the query filters and sorts by."""
    args = request.args
    check(kind)
    views = {row.id: full(row) for row in rows}
    for name in args:
        field = ALIASES.get(name.rstrip("~"), name.rstrip("~"))
        if name in FILTERS:
            views = {key: view for key, view in views.items() if _text(view.get(field)) == _text(args[name])}
        elif name == "metadata":
            pairs = _metadata(args[name]).items()
            views = {
                key: view for key, view in views.items() if pairs <= t.cast("Body", view.get("metadata", {})).items()
            }
        elif name.endswith("~") and name[:-1] in FILTERS:
            views = {key: view for key, view in views.items() if args[name] in _text(view.get(field))}
    matching = [row for row in reversed(rows) if row.id in views]
    matching = ordered(matching, _order(), lambda row: views[row.id])
    limit = CINDER.limit()
    chosen = matching[CINDER.start(matching) + CINDER.whole("offset", 0) :][:limit]
    answer = _body(kind, list(map(shown, chosen)), [row.id for row in chosen], limit)
    if is_true("with_count"):
        answer["count"] = len(matching)
    return answer


def check(kind: str) -> None:
    """Refuse filters that there are none of as Cinder does. Raises BadRequestError."""
    if policy.allowed("volume:any_filter") or kind not in REFUSING or not speaks(REFUSING[kind]):
        return
    _refuse_others({*CONTROL, *OTHERS.get(kind, ()), *FILTERS, "metadata"})


def check_pools() -> None:
    """The same of the list of pools."""
    if speaks(31):
        _refuse_others(POOLS)


def _refuse_others(names: t.Collection[str]) -> None:
    unknown = [
        name[:60]
        for name in request.args
        if name not in names and name.removesuffix("~") not in set(FILTERS).intersection(names)
    ]
    if unknown:
        raise BadRequestError(f"Invalid filters {','.join(unknown[:10])} are found in query options.")


def _order() -> Order:
    args = request.args
    if args.get("sort"):
        if "sort_key" in args or "sort_dir" in args:
            raise BadRequestError(
                "The 'sort_key' and 'sort_dir' parameters are deprecated and cannot be used with the 'sort' parameter."
            )
        order = order_of(args["sort"])
    else:
        order = [(args.get("sort_key", "created_at"), args.get("sort_dir", "desc"))]
        if not args.get("sort_key") and not args.get("sort_dir"):
            return []
    return [(ALIASES.get(key, key), direction) for key, direction in CINDER.checked(order, SORTABLE)]


def _text(value: Json) -> str:
    return "" if value is None else _truth(str(value))


def _truth(text: str) -> str:
    return text.lower() if text.lower() in ("true", "false") else text


def _metadata(text: str) -> dict[str, str]:
    """{'a': 'b'}, as Python or JSON writes it."""
    metadata: Json = None
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            metadata = read(text) if len(text) <= 4096 else None
            break
    if not isinstance(metadata, dict) or not all(isinstance(part, str) for pair in metadata.items() for part in pair):
        raise BadRequestError("Invalid input for query parameters metadata: give a dictionary of texts")
    return metadata
