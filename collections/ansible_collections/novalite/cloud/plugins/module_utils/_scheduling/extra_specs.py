# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The operators of extra specs (nova/scheduler/filters/extra_specs_ops.py): how a flavor's wish meets a host's value.

Numbers: `= == != >= <=`, where `=` means "at least". Texts: `s== s!= s< s<= s> s>=`, `<in>` (contains), `<all-in>`
(contains each), `<or>` (is one of). Without an operator both must be the same text.
"""

from __future__ import annotations

import operator
import typing as t

_NUMBERS: dict[str, t.Callable[[float, float], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
_TEXTS: dict[str, t.Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
    "<in>": operator.contains,
}


def matches(value: str, requirement: str) -> bool:
    """Tell whether a host's `value` is what is wanted. An operator without an operand is satisfied by nothing.

    So is an operator for numbers when either side is none: Nova fails the whole request then (ValueError).
    """
    operation, *words = requirement.split() or [""]
    if operation == "<or>":
        return value in words[::2]  # the others are the next <or>
    if operation == "<all-in>":
        return bool(words) and all(word in value for word in words)
    if operation in _TEXTS:
        return bool(words) and _TEXTS[operation](value, words[0])
    if operation in _NUMBERS:
        try:
            return bool(words) and _NUMBERS[operation](float(value), float(words[0]))
        except ValueError:
            return False
    return value == requirement
