# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What comes in and goes out as JSON."""

from __future__ import annotations

import typing as t

from flask import Response

Json = t.Union[None, bool, int, float, str, t.Sequence["Json"], t.Mapping[str, "Json"]]
Body = dict[str, Json]  # what is answered
Record = dict[str, t.Any]  # a row of the ledger; or what a client sent, once its schema allowed it
Answer = tuple[t.Union[t.Mapping[str, Json], str, Response], int]

Row = t.TypeVar("Row")


def field(row: object, name: str) -> t.Any:
    """What a row, be it a dataclass or a mapping, has under `name`."""
    return row[name] if isinstance(row, t.Mapping) else getattr(row, name)


def the_one(rows: t.Iterable[Row], key: str, value: str, missing: Exception) -> Row:
    """The one of `rows` whose `key` is `value`, as texts. Raises `missing`."""
    for row in rows:
        if str(field(row, key)) == value:
            return row
    raise missing


def same(row: object, *names: str) -> Body:
    """Those fields of `row` that an answer calls the same."""
    return {name: field(row, name) for name in names}
