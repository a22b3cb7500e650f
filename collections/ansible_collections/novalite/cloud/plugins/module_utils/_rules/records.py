# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts that all operations over named records share: names that are fit to store, and the report of what changed."""

from __future__ import annotations

import dataclasses
import typing as t

from .._errors import NovaliteError
from .._json import Json, JsonMapping, JsonObject
from .._model.plain_text import is_plain

NAME_LENGTH = 255
LARGEST = 2**31 - 1  # Nova's bound for sizes and quotas


@dataclasses.dataclass
class Changes:
    """The changes of a call, by name; a side that lacks a name says that the record did not, or does not, exist."""

    before: JsonObject = dataclasses.field(default_factory=dict)
    after: JsonObject = dataclasses.field(default_factory=dict)

    def note(self, name: str, before: Json, after: Json) -> bool:
        """Take down one record, None where it does not exist; return whether the two differ."""
        if before == after:
            return False
        if before is not None:
            self.before[name] = before
        if after is not None:
            self.after[name] = after
        return True

    @property
    def made(self) -> list[str]:
        """The names of records that the call made: these alone raise a count that has a limit."""
        return [name for name in self.after if name not in self.before]

    def result(self, kind: str, records: t.Iterable[JsonMapping]) -> JsonObject:
        """The operation's result: `changed`, the records under `kind`, and `diff` when something changed."""
        result = {"changed": bool(self.before or self.after), kind: [dict(record) for record in records]}
        return with_diff(result, {kind: self.before}, {kind: self.after})


def with_diff(result: JsonObject, before: Json, after: Json) -> JsonObject:
    """The `result` of an operation with its `diff`, if it has `changed` anything."""
    return {**result, "diff": {"before": before, "after": after}} if result["changed"] else result


def checked_names(
    kind: str, items: t.Sequence[JsonMapping], length: int = NAME_LENGTH, spaces: bool = False
) -> list[str]:
    """The names of `items`, in order; with `spaces` they may begin and end with some, as OpenStack's clients give them.
    Raises NovaliteError for a name that cannot be stored or comes twice."""
    names = []
    for item in items:
        name = check_text(f"{kind} name", item["name"], length)
        if not name.strip() or (name != name.strip() and not spaces):
            raise NovaliteError(f"{kind} name {name!r} is empty or begins or ends with a space: give it a plain name")
        names.append(name)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise NovaliteError(f"{kind} {twice[0]!r} is listed twice: list each name once")
    return names


def check_text(what: str, text: str, length: int = NAME_LENGTH) -> str:
    """`text` itself, if it is one line of at most `length` printable characters. Raises NovaliteError."""
    if len(text) > length:
        raise NovaliteError(f"{what} {text[:20]!r}... has {len(text)} characters: {length} is the limit")
    if not is_plain(text):
        raise NovaliteError(f"{what} {text[:60]!r} holds a control character: use one line of plain text")
    return text


def scalar_text(what: str, value: Json, length: int = NAME_LENGTH) -> str:
    """`value` as the text that Nova and Glance keep of it: YAML turns an unquoted 2 or true into something else. Raises
    NovaliteError for what is no text, number or truth value."""
    if not isinstance(value, (str, int, float)):
        raise NovaliteError(f"{what} is {value!r}: give it a string")
    return check_text(what, str(value).lower() if isinstance(value, bool) else str(value), length)


def check_range(what: str, value: int, low: int, high: int = LARGEST) -> int:
    """`value` itself, if it lies in low..high. Raises NovaliteError."""
    if not low <= value <= high:
        raise NovaliteError(f"{what} {value} is out of range: it must lie between {low} and {high}")
    return value


def set_values(item: JsonMapping, keys: t.Iterable[str]) -> JsonObject:
    """The values that the user gave for `keys`: an option that was left out is None, and changes nothing."""
    return {key: item[key] for key in keys if item.get(key) is not None}
