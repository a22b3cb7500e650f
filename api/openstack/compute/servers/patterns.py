# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Regular expressions that users filter lists with.

Python's `re` tries alternatives one after the other, and a hostile expression keeps it busy for years. RE2 follows all
of them at once: no expression costs more than its length times that of the text.
"""

from __future__ import annotations

import re

import re2

from ....web.errors import BadRequestError

MAX_PATTERN = 255  # characters

_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]()|]*")
_OPTIONS = re2.Options()
_OPTIONS.dot_nl = True
_OPTIONS.log_errors = False  # to stderr
_OPTIONS.max_mem = 1 << 20  # bytes, of an expression that repetitions make large


class Matcher:
    """Called with a text, says whether a pattern is found in it.

    What is no expression is looked for as it stands; so is what is one: a name such as "web[1]" finds itself.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN:
            raise BadRequestError(f"a filter has {len(pattern)} characters: give at most {MAX_PATTERN}")
        self.text = pattern
        self.plain = _PLAIN.fullmatch(pattern) is not None
        self._expression = None
        if not self.plain:
            try:
                self._expression = re2.compile(pattern, _OPTIONS)
            except re2.error:
                self.plain = True

    def __call__(self, text: str) -> bool:
        return self.text in text or (self._expression is not None and self._expression.search(text) is not None)
