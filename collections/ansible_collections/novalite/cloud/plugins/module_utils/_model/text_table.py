# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Columns of text for people: as wide as they are, or as wide as a terminal, where cells go on below themselves."""

from __future__ import annotations

import textwrap
import typing as t

GAP = "  "  # between columns
NARROWEST = 6  # characters that a column keeps on a narrow terminal
WIDEST = 60  # characters that a column has elsewhere; a longer cell pushes on what follows it


def lined_up(rows: t.Sequence[t.Sequence[str]], room: int | None = None) -> list[str]:
    """The rows with their columns lined up, each line of at most `room` characters if that is given."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    if room is None:
        return [GAP.join(cell.ljust(min(width, WIDEST)) for cell, width in zip(row, widths)).rstrip() for row in rows]
    return [line for row in rows for line in _lines(row, fitting(widths, room))]


def fitting(widths: t.Sequence[int], room: int) -> list[int]:
    """Return `widths` of columns with the widest ones narrowed, so that a line takes at most `room` characters; none
    below NARROWEST, which the terminal then wraps."""
    narrowed = list(widths)
    over = sum(narrowed) + len(GAP) * (len(narrowed) - 1) - room
    while over > 0:
        widest = max(narrowed)
        if widest <= NARROWEST:
            break
        narrowed[narrowed.index(widest)] = widest - 1
        over -= 1
    return narrowed


def wrapped(text: str, room: int | None, indent: str = "") -> list[str]:
    """`text` as lines of at most `room` characters, all but the first of which begin with `indent`."""
    if room is None or len(text) <= room:
        return [text]
    narrow = max(room, len(indent) + NARROWEST)
    return textwrap.wrap(text, narrow, subsequent_indent=indent, break_on_hyphens=False) or [text]


def _lines(row: t.Sequence[str], widths: t.Sequence[int]) -> t.Iterator[str]:
    cells = [wrapped(cell, width) for cell, width in zip(row, widths)]
    for number in range(max(map(len, cells))):
        parts = (cell[number] if number < len(cell) else "" for cell in cells)
        yield GAP.join(map(str.ljust, parts, widths)).rstrip()
