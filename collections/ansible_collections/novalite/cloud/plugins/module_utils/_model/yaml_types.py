# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values of which YAML made something else where a text is meant, found before anything makes a text of them again.

`1.10` is 1.1 to YAML, `0755` is 493, `12:30` is 750, `no` is false and `2027-01-31` a date: what a person wrote cannot
be told from that any more.
"""

from __future__ import annotations

import datetime
import json
import math
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping

Where = tuple[t.Union[str, int], ...]
LONGEST = 60  # characters of a value in an error
_TEXTS = ("str", "path")
_NUMBERS = ("int", "float")
_MAPS_OF_TEXTS = ("extra_specs", "metadata", "properties")  # for which an argument_spec has no type


def described(where: Where, data: t.Any) -> str:
    """`servers 'web': flavor` instead of servers[3].flavor; empty for `data` itself."""
    words: list[str] = []
    value = data
    for step in where:
        is_item = isinstance(value, (list, tuple))
        value = value[step]
        if is_item:
            name = value.get("name") if isinstance(value, dict) else None
            words[-1:] = [f"{words[-1] if words else ''} {name!r}" if isinstance(name, str) else f"{words[-1]}[{step}]"]
        else:
            words.append(str(step))
    return ": ".join(words)


def kind_of(value: object) -> str:
    """The kind of a value that is not a text, in a word."""
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, float) and not math.isfinite(value):
        return "not finite"
    for kinds, word in (
        ((int, float), "a number"),
        ((datetime.date, datetime.time), "a date"),
        (dict, "a mapping"),
        ((list, tuple), "a list"),
    ):
        if isinstance(value, kinds):
            return word
    return "not a text"


def complaint(what: str, value: object, secret: bool = False, number: bool = False) -> str:
    """The sentence about `what`, a place at which `value` is not the text or the `number` that is meant; a `secret` is
    not shown."""
    kind = kind_of(value)
    if isinstance(value, (dict, list, tuple)):
        return f"{what} is {kind}: give a text (in YAML, of several lines behind '|')"
    shown = str(value) if isinstance(value, datetime.date) else json.dumps(value, default=str)
    is_shown = "" if secret else f" {shown if len(shown) <= LONGEST else shown[: LONGEST - 3] + '...'},"
    meant = "a number is meant" if number else "a text is meant, so quote it (in a template, add '| string')"
    return f"{what} is{is_shown} {kind}: {meant}"


class Converted(t.NamedTuple):
    """A value, at its place, that is not the text or `number` that is meant, or that JSON has no word for."""

    where: Where
    value: object
    secret: bool
    number: bool = False

    def complaint(self, what: str) -> str:
        return complaint(what, self.value, self.secret, self.number)


def first(spec: JsonMapping | None, values: JsonMapping) -> Converted | None:
    """The first one of `values`, arguments by an argument_spec; without it, nothing is known of their types."""
    return next(_converted({"type": "dict", "options": spec or {}}, values, (), False), None)


def refuse(spec: JsonMapping | None, values: JsonMapping) -> None:
    """Raise NovaliteError with the place of the first one, if there is one."""
    if (converted := first(spec, values)) is not None:
        raise NovaliteError(converted.complaint(described(converted.where, values)))


def _converted(option: JsonMapping, value: t.Any, where: Where, secret: bool) -> t.Iterator[Converted]:
    kind, secret = option.get("type") or "str", secret or bool(option.get("no_log"))
    if value is None:
        return
    if kind in _TEXTS:
        if not isinstance(value, str):
            yield Converted(where, value, secret)
    elif isinstance(value, (list, tuple)):
        item_option = {"type": option.get("elements") or "raw", "options": option.get("options")}
        for index, item in enumerate(value):
            yield from _converted(item_option, item, (*where, index), secret)
    elif isinstance(value, t.Mapping):
        options = option.get("options") or {}
        others = {"type": "str" if kind == "dict" and not options and where and where[-1] in _MAPS_OF_TEXTS else "raw"}
        by_word = {word: each for name, each in options.items() for word in (name, *(each.get("aliases") or ()))}
        for key, item in value.items():
            if not isinstance(key, str):
                yield Converted((*where, key), key, secret)
            yield from _converted(by_word.get(key, others), item, (*where, key), secret)
    elif not isinstance(value, (str, int, float)) or (
        kind == "list" and option.get("elements") in _TEXTS and not isinstance(value, str)
    ):
        yield Converted(where, value, secret)
    elif (isinstance(value, bool) and kind in _NUMBERS) or (isinstance(value, float) and not math.isfinite(value)):
        yield Converted(where, value, secret, number=True)
