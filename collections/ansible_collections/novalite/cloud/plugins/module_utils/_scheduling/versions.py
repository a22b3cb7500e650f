# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Versions of hypervisors as libvirt counts them (7.2.0 is 7002000), and the ranges that images ask for."""

from __future__ import annotations

import functools
import operator
import re
import typing as t

Version = tuple[int, ...]

_COMPARE: dict[str, t.Callable[[Version, Version], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "!=": operator.ne,
}
_PREDICATE = re.compile(r"\s*(<=|>=|<|>|!=|==)\s*(\d+(?:\.\d+)*)\s*")


def text_of(number: int) -> str:
    """7002000 -> 7.2.0"""
    parts = []
    while number:
        number, part = divmod(number, 1000)
        parts.append(str(part))
    return ".".join(reversed(parts))


def satisfies(number: int, required: str) -> bool:
    """Tell whether a version lies in a range such as `>=5.1,<8`. An invalid range is satisfied by nothing."""
    predicates = _read(required)
    return predicates is not None and all(
        compare(_comparable(text_of(number)), version) for compare, version in predicates
    )


@functools.lru_cache(maxsize=64)
def _read(required: str) -> list[tuple[t.Callable[[Version, Version], bool], Version]] | None:
    matches = [_PREDICATE.fullmatch(part) for part in required.split(",")]
    if not all(matches):
        return None
    return [(_COMPARE[predicate[1]], _comparable(predicate[2])) for predicate in matches if predicate]


def _comparable(version: str) -> Version:
    """Without the zeros at the end: 7.2 and 7.2.0 are the same version."""
    parts = [int(part) for part in version.split(".")]
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)
