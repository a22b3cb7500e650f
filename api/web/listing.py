# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists as OpenStack's services let clients ask for them: filters, sorting and pages. Each service is a Dialect."""

from __future__ import annotations

import dataclasses
import typing as t
import urllib.parse

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError

from .addresses import this_url
from .bodies import Body, Json, Row, field
from .errors import BadRequestError

MAX_LIMIT = 1000  # objects on a page, of all services
SHOWN = 60  # characters of what is refused

Order = list[tuple[str, str]]  # keys, each with "asc" or "desc"


@dataclasses.dataclass(frozen=True)
class Dialect:
    """A service's words for a query's faults. {value} is what came, {name} the parameter or the kind of object."""

    number: str
    marker: str
    key: str = ""
    direction: str = ""
    default_limit: int = MAX_LIMIT
    no_marker: type[NovaliteError] = BadRequestError

    def whole(self, name: str, default: int, text: str | None = None) -> int:
        """The query parameter `name`, a number from 0 on; or `text`, one of several. Raises BadRequestError."""
        text = request.args.get(name) if text is None else text
        if text is None:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise BadRequestError(self.number.format(name=name, value=text[:SHOWN]))
        return int(text)

    def limit(self) -> int:
        """Return how many objects the page has at most."""
        return min(self.whole("limit", self.default_limit), MAX_LIMIT)

    def place(self, rows: t.Sequence[Row], key: str = "id", name: str = "") -> int | None:
        """Return where the query's marker, a value of `key`, stands; None without one. Raises `no_marker`."""
        marker = request.args.get("marker")
        if not marker:
            return None
        for index, row in enumerate(rows):
            if str(field(row, key)) == marker:
                return index
        raise self.no_marker(self.marker.format(name=name, value=marker[:SHOWN]))

    def start(self, rows: t.Sequence[Row], key: str = "id", name: str = "") -> int:
        """Return where the page begins: after the marker."""
        place = self.place(rows, key, name)
        return 0 if place is None else place + 1

    def checked(self, order: Order, sortable: t.Collection[str]) -> Order:
        """`order` itself. Raises BadRequestError for a key that is not `sortable`, or a direction that is none."""
        for key, direction in order:
            if key not in sortable:
                raise BadRequestError(self.key.format(value=key[:SHOWN], name=", ".join(sortable)))
            if direction not in ("asc", "desc"):
                raise BadRequestError(self.direction.format(value=direction[:SHOWN]))
        return order


def order_of(sort: str) -> Order:
    """Parse `key:direction,key`; the direction is desc unless it is given, as in Cinder and Glance."""
    parts = [part.partition(":") for part in sort.split(",")]
    return [(key.strip(), direction.strip() or "desc") for key, _colon, direction in parts]


def ordered(
    rows: t.Iterable[Row], order: Order, of: t.Callable[[Row], t.Mapping[str, Json]] | None = None
) -> list[Row]:
    """`rows`, sorted by their fields, or by those of what `of` makes of each; else they stay as they were."""
    rows = list(rows)
    for key, direction in reversed(order):

        def place(row: Row, key: str = key) -> tuple[int, t.Any]:
            return rank(field(row, key) if of is None else of(row).get(key))

        rows.sort(key=place, reverse=direction == "desc")
    return rows


def rank(value: Json) -> tuple[int, t.Any]:
    """Values of any kind in one order: nothing first, numbers before texts."""
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, (bool, int, float)) else (2, str(value))


def href(marker: str | None, *without: str, base: str | None = None, **also: str) -> str:
    """The address of another page of the list: with `marker`, and without the parameters `without`."""
    dropped = ("marker", *without, *also)
    query = [(name, value) for name, values in request.args.lists() if name not in dropped for value in values]
    query += [] if marker is None else [("marker", marker)]
    query += also.items()
    address = this_url() if base is None else base
    return f"{address}?{urllib.parse.urlencode(query)}" if query else address


def body(plural: str, items: t.Sequence[Json], marker: str | None, *without: str) -> Body:
    """The answer with `items`; with a link to the page after `marker`, if there is one."""
    answer: Body = {plural: items}
    if marker is not None:
        answer[f"{plural}_links"] = [{"rel": "next", "href": href(marker, *without)}]
    return answer


def is_true(name: str) -> bool:
    """Return whether a query parameter is true or 1."""
    return request.args.get(name, "").lower() in ("true", "1")
