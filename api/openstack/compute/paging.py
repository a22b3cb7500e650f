# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's way to page through lists that are short enough to be read as a whole."""

from __future__ import annotations

import typing as t

from ...web.bodies import Body, Json, Row, field
from ...web.listing import MAX_LIMIT, Dialect, body

NOVA = Dialect(
    number="Invalid input for query parameters {name}. Value: {value}. {name} must be >= 0.",
    marker="Marker {name} {value} could not be found.",
    key="Invalid input for query parameters sort_key. Value: {value}. No such sort key.",
    direction="Invalid input for query parameters sort_dir. Value: {value}. asc or desc.",
)


def page(plural: str, rows: t.Sequence[Row], view: t.Callable[[Row], Json], key: str, name: str) -> Body:
    """The body with those of `rows` after the query's marker, a value of `key`, at most its limit, as `view` has them.

    `name` is what a row is called. Raises BadRequestError for a marker that is not there.
    """
    start, limit = NOVA.start(rows, key, name), NOVA.limit() or MAX_LIMIT
    shown = rows[start : start + limit]
    more = start + limit < len(rows)
    return body(plural, [view(row) for row in shown], str(field(shown[-1], key)) if more else None)
