# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Regular expressions that users filter lists with.

Python's `re` tries alternatives one after the other, and a hostile expression keeps it busy for years. This one follows
all of them at once, a character at a time: no expression costs more than its length times that of the text. It knows
what POSIX's extended expressions do: `.` `[...]` `(...)` `|` `*` `+` `?` `{m,n}` `^` `$`, and the escapes \\d \\w \\s.
"""

from __future__ import annotations

import re
import typing as t

from ..errors import BadRequestError

MAX_PATTERN = 255  # characters
MAX_STATES = 400
MAX_STEPS = 2_000_000  # of one matcher, over all texts

_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]()|]*")
_REPEAT = re.compile(r"\{([0-9]{1,3})(,([0-9]{0,3}))?\}")
_ESCAPES: dict[str, t.Callable[[str], bool]] = {
    "d": str.isdigit,
    "w": lambda char: char.isalnum() or char == "_",
    "s": str.isspace,
}
_START, _END = "^", "$"

Test = t.Callable[[str], bool]
Fragment = tuple[int, list[tuple[int, int]]]  # its first state, and the (state, slot)s that lead out of it


class _InvalidError(ValueError):
    """No expression."""


class Matcher:
    """Called with a text, says whether a pattern is found in it.

    What is no expression is looked for as it stands; so is what is one: a name such as "web[1]" finds itself.
    """

    def __init__(self, pattern: str) -> None:
        if len(pattern) > MAX_PATTERN:
            raise BadRequestError(f"a filter has {len(pattern)} characters: give at most {MAX_PATTERN}")
        self._text = pattern
        self.plain = _PLAIN.fullmatch(pattern) is not None
        self._machine: _Machine | None = None
        if not self.plain:
            try:
                self._machine = _Machine(pattern)
            except (_InvalidError, RecursionError):
                self.plain = True

    @property
    def text(self) -> str:
        return self._text

    def __call__(self, text: str) -> bool:
        return self._text in text or (self._machine is not None and self._machine.search(text))


class _Machine:
    """Thompson's: states that take a character, and states that part the way. Parsed by descent."""

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0
        # (test of a character | "^" | "$" | None, next states); None parts the way
        self._states: list[tuple[Test | str | None, list[int]]] = [(None, [])]  # the first is where all is found
        first, outs = self._alternatives()
        if self._at < len(pattern):
            raise _InvalidError("a closing bracket too many")
        self._join(outs, 0)
        self._first, self._steps = first, 0

    def search(self, text: str) -> bool:
        """Whether some part of `text` matches. Raises BadRequestError when it takes too long to say."""
        current: set[int] = set()
        for at in range(len(text) + 1):
            self._enter(self._first, current, at, len(text))
            if 0 in current:
                return True
            if at == len(text):
                break
            following: set[int] = set()
            self._steps += len(current) + 1
            if self._steps > MAX_STEPS:
                raise BadRequestError("a filter's regular expression is too expensive: give a simpler one")
            for state in current:
                test, exits = self._states[state]
                if callable(test) and test(text[at]):
                    self._enter(exits[0], following, at + 1, len(text))
            current = following
        return False

    def _enter(self, state: int, into: set[int], at: int, length: int) -> None:
        """Add `state`, and those that it leads to without a character."""
        waiting = [state]
        while waiting:
            current = waiting.pop()
            if current in into:
                continue
            into.add(current)
            test, exits = self._states[current]
            if test is None or (test == _START and at == 0) or (test == _END and at == length):
                waiting.extend(exits)

    # --- from text to states

    def _add(self, test: Test | str | None, exits: int) -> int:
        if len(self._states) >= MAX_STATES:
            raise _InvalidError("too long")
        self._states.append((test, [-1] * exits))
        return len(self._states) - 1

    def _join(self, outs: list[tuple[int, int]], to: int) -> None:
        for state, slot in outs:
            self._states[state][1][slot] = to

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise _InvalidError("ends too early")
        self._at += 1
        return char

    def _alternatives(self) -> Fragment:
        first, outs = self._sequence()
        while self._peek() == "|":
            self._take()
            other, more = self._sequence()
            fork = self._add(None, 2)
            self._states[fork][1][:] = [first, other]
            first, outs = fork, outs + more
        return first, outs

    def _sequence(self) -> Fragment:
        empty = self._add(None, 1)
        first, outs = empty, [(empty, 0)]
        while self._peek() not in ("", "|", ")"):
            following, more = self._repeated()
            self._join(outs, following)
            outs = more
        return first, outs

    def _repeated(self) -> Fragment:
        start = self._at
        fragment = self._atom()
        end = self._at
        bounds = self._bounds()
        if bounds is None:
            return fragment
        least, most = bounds
        after = self._at
        if self._peek() in ("*", "+", "?"):
            raise _InvalidError("repeats a repetition")

        def again() -> Fragment:  # the same text once more makes another copy of its states
            self._at = start
            copy = self._atom()
            assert self._at == end
            return copy

        entry = self._add(None, 1)
        outs = [(entry, 0)]
        for _copy in range(least):
            first_state, more = again()
            self._join(outs, first_state)
            outs = more
        if most is None:
            fork = self._add(None, 2)
            first_state, more = again()
            self._join(outs, fork)
            self._states[fork][1][0] = first_state
            self._join(more, fork)
            outs = [(fork, 1)]
        else:
            skipped: list[tuple[int, int]] = []
            for _copy in range(most - least):
                fork = self._add(None, 2)
                first_state, more = again()
                self._join(outs, fork)
                self._states[fork][1][0] = first_state
                skipped.append((fork, 1))
                outs = more
            outs += skipped
        self._at = after
        return entry, outs

    def _bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._peek() in simple:
            return simple[self._take()]
        match = _REPEAT.match(self._pattern, self._at)
        if match is None:
            return None
        self._at = match.end()
        least = int(match[1])
        most = least if match[2] is None else int(match[3]) if match[3] else None
        if most is not None and most < least:
            raise _InvalidError("repeats less than least")
        return least, most

    def _atom(self) -> Fragment:
        char = self._take()
        if char == "(":
            if self._pattern.startswith("?:", self._at):
                self._at += 2
            fragment = self._alternatives()
            if self._take() != ")":
                raise _InvalidError("lacks a closing bracket")
            return fragment
        if char in "*+?":
            raise _InvalidError("repeats nothing")
        if char in (_START, _END):
            state = self._add(char, 1)
        elif char == ".":
            state = self._add(lambda _char: True, 1)
        elif char == "[":
            state = self._add(self._class(), 1)
        elif char == "\\":
            state = self._add(self._escaped(), 1)
        else:
            state = self._add(char.__eq__, 1)
        return state, [(state, 0)]

    def _escaped(self) -> Test:
        char = self._take()
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char.lower() in _ESCAPES:
            known = _ESCAPES[char.lower()]
            return lambda other: not known(other)
        if char.isalnum():
            raise _InvalidError("an unknown escape")
        return char.__eq__

    def _class(self) -> Test:
        negated = self._peek() == "^"
        self._at += negated
        tests: list[Test] = []
        while self._peek() != "]" or not tests:
            char = self._take()
            if char == "\\":
                tests.append(self._escaped())
            elif self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._take()
                tests.append(_between(char, self._take()))
            else:
                tests.append(char.__eq__)
        self._take()
        return lambda char: any(test(char) for test in tests) != negated


def _between(first: str, last: str) -> Test:
    if first > last:
        raise _InvalidError("a range that ends before it begins")
    return lambda char: first <= char <= last
