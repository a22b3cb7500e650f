# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rule for text that people write and others read: it allows every script and its blanks, and nothing that commands a
terminal, ends a line or turns the order of what is read."""

from __future__ import annotations

import re
import unicodedata

# Control characters, halves of characters, separators of lines and paragraphs. str.isprintable() refuses the blanks of
# other scripts, too (U+00A0, U+3000), and the joiners that emoji are made of.
_REFUSED = ("Cc", "Cs", "Zl", "Zp")
_LEFT_OUT = " ... "
# XML 1.0 has no place for these two
_NONCHARACTERS = "\ufffe\uffff"
# Embeddings, overrides and isolates of UAX #9 make a text read as another one (CVE-2021-42574)
_REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def is_plain(text: str, allowed: str = "") -> bool:
    """Tell whether `text` is one line of plain text; the characters `allowed` are, whatever they are."""
    return text.isprintable() or all(char in allowed or _is_plain_character(char) for char in text)


def without_controls(text: str, instead: str = "?") -> str:
    """`text` as one line that is safe to show: `instead` of each character that is not plain text."""
    if text.isprintable():
        return text
    return "".join(char if _is_plain_character(char) else instead for char in text)


def shortened(text: str, longest: int) -> str:
    """`text` in at most so many characters. What is left out is in its middle: a message of a failure begins with what
    was tried, and ends with the cause."""
    half = (longest - len(_LEFT_OUT)) // 2
    return text if len(text) <= longest else text[:half] + _LEFT_OUT + text[-half:]


def natural(value: object) -> list[tuple[int, int, str]]:
    """Return a key by which hv2 comes before hv10, and numbers by their size."""
    parts = re.findall(r"\d+|\D+", "" if value is None else str(value))
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part.casefold()) for part in parts]


def _is_plain_character(char: str) -> bool:
    return char.isprintable() or not (
        unicodedata.category(char) in _REFUSED or char in _REORDERING or char in _NONCHARACTERS
    )
