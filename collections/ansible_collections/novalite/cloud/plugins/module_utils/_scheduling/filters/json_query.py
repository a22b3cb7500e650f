# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's JsonFilter: the hint `query`, a JSON list such as `[">=", "$free_ram_mb", 1024]`."""

from __future__ import annotations

import functools
import json
import operator
import typing as t

from ..._errors import NovaliteError
from ..._json import Json
from ..attributes import look_up
from ..options import Options
from ..rows import HostState, Request

NAME = "json"
NOVA = "JsonFilter"


_COMPARE: dict[str, t.Callable[[Json, Json], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_MAX_DEPTH = 50


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the request gives the hint."""
    return bool(request.hint("query"))


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host for which the query is not true. NovaliteError for a query that cannot be read."""
    query = request.hint("query")
    if not query:
        return None
    result = _evaluate(_parsed(query), host, query)
    if any(result) if isinstance(result, list) else result:
        return None
    return f"does not satisfy {query}"


@functools.lru_cache(maxsize=64)
def _parsed(query: str) -> Json:
    try:
        parsed = json.loads(query)
        _check(parsed, query)
    except (ValueError, TypeError, RecursionError):
        example = '[">=", "$free_ram_mb", 1024]'
        raise NovaliteError(f"the hint query={query!r} is not a JSON query such as {example}") from None
    return parsed


def _check(query: Json, whole: str, depth: int = 0) -> None:
    if not isinstance(query, list) or depth > _MAX_DEPTH:
        raise ValueError(whole)
    if query and query[0] not in {*_COMPARE, "in", "not", "or", "and"}:
        raise NovaliteError(f"the hint query={whole!r} has no operation {query[0]!r}: = < > <= >= in not or and exist")
    for argument in query[1:]:
        if isinstance(argument, list):
            _check(argument, whole, depth + 1)


def _evaluate(query: list[Json], host: HostState, whole: str) -> Json:
    """Evaluate as Nova does: what a host does not know is left out, and one argument alone compares to nothing."""
    if not query:
        return True
    operation, arguments = query[0], []
    for argument in query[1:]:
        if isinstance(argument, list):
            argument = _evaluate(argument, host, whole)
        elif isinstance(argument, str):
            argument = _look_up(argument, host)
        if argument is not None:
            arguments.append(argument)
    if operation == "not":
        return [not argument for argument in arguments]
    if operation in ("or", "and"):
        return any(arguments) if operation == "or" else all(arguments)
    if len(arguments) < 2:
        return False
    first, *others = arguments
    if operation == "in":
        return first in others
    try:
        return all(_COMPARE[operation](first, other) for other in others)
    except TypeError:  # a number and a text have no order
        return False


def _look_up(text: str, host: HostState) -> Json:
    if not text.startswith("$"):
        return text or None
    return look_up(host, text[1:].split("."))
