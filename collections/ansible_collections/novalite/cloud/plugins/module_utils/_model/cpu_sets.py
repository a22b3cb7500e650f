# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets of CPUs or NUMA nodes as texts: Nova's and libvirt's `0-3,^2,8`. Pure."""

from __future__ import annotations

import re
import typing as t

from .._errors import NovaliteError

_PART = re.compile(r"(\^?)(\d{1,5})(?:-(\d{1,5}))?")


def parse(what: str, text: str) -> frozenset[int]:
    """Return the numbers that `text` stands for; `^` takes one out. Raises NovaliteError, which names `what` it is."""
    added: set[int] = set()
    removed: set[int] = set()
    for part in filter(None, map(str.strip, text.split(","))):
        match = _PART.fullmatch(part.replace(" ", ""))
        if match is None or (match[1] and match[3]) or int(match[3] or match[2]) < int(match[2]):
            raise NovaliteError(f"{what} is {text[:60]!r}: give numbers and ranges, such as 0-3,^2,8")
        (removed if match[1] else added).update(range(int(match[2]), int(match[3] or match[2]) + 1))
    return frozenset(added - removed)


def text_of(numbers: t.Iterable[int]) -> str:
    """Return the text of these numbers, with ranges, as libvirt writes it."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in ranges)
