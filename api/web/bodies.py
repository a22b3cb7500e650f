# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""JSON that comes in and goes out."""

from __future__ import annotations

import collections.abc as c
import typing as t

from flask import Response

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

Json = t.Union[None, bool, int, float, str, t.Sequence["Json"], t.Mapping[str, "Json"]]
Body = dict[str, Json]  # what is answered
Record = JsonObject  # a row of the ledger; or what a client sent, once its schema allowed it
Answer = tuple[t.Union[t.Mapping[str, Json], str, Response], int]

Row = t.TypeVar("Row")  # a dataclass of the ledger, or a mapping


def field(row: object, name: str) -> Json:
    """Return what `row` has under `name`."""
    value: Json = row.get(name) if isinstance(row, c.Mapping) else getattr(row, name)
    return value


def the_one(rows: t.Iterable[Row], key: str, value: str, missing: Exception) -> Row:
    """The one of `rows` whose `key` is `value`, as texts. Raises `missing`."""
    for row in rows:
        if str(field(row, key)) == value:
            return row
    raise missing


def same(row: object, *names: str) -> Body:
    """Return the fields `names` of `row`, which an answer calls the same."""
    return {name: field(row, name) for name in names}
