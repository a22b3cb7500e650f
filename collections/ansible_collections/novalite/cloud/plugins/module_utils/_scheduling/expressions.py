# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requirements and ranks: expressions over a host's attributes, in the manner of OpenNebula.

    free_ram_mb > 4096 and (zone = "west" or not hypervisor_type = "QEMU")
    free_ram_mb / memory_mb - 2 * num_io_ops

`and or not` (also `& | !`), `= == != < <= > >=`, `in` (text in text, value in list), `+ - * /`, parentheses, numbers,
texts in quotes, attributes (`attributes.py`; a dot looks inside: `metadata.rack`, `facts` need none). What a host
does not know makes a comparison false and counts 0 in arithmetic. There is nothing that could be executed.
"""

from __future__ import annotations

import functools
import operator
import re
import typing as t

from .._errors import NovaliteError
from .._json import Json
from .attributes import look_up
from .rows import HostState

Evaluator = t.Callable[[HostState], Json]
MAX_LENGTH = 2000
MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""\s*(?:(?P<number>\d+(?:\.\d+)?)(?![\w.])
        |(?P<text>"[^"]*"|'[^']*')
        |(?P<name>[A-Za-z_][\w-]*(?:\.[\w-]+)*)
        |(?P<sign><=|>=|!=|==|&&|\|\||[=<>()+*/&|!-]))""",
    re.VERBOSE,
)
_SAME = {"&": "and", "&&": "and", "|": "or", "||": "or", "!": "not", "=": "=="}
_COMPARE: dict[str, t.Callable[[Json, Json], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda left, right: operator.contains(right, left),
}
_ARITHMETIC: dict[str, t.Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda left, right: left / right if right else 0.0,
}


def evaluate(text: str, host: HostState) -> Json:
    """The value of the expression for this host. NovaliteError tells where an expression cannot be read."""
    return compiled(text)(host)


def evaluate_number(text: str, host: HostState) -> float:
    """Evaluate as `evaluate` does, but to a number: true is 1, and what is not a number is 0."""
    return _number(compiled(text)(host))


@functools.lru_cache(maxsize=256)
def compiled(text: str) -> Evaluator:
    """The expression as a function of a host."""
    if len(text) > MAX_LENGTH:
        raise NovaliteError(f"an expression of {len(text)} characters: {MAX_LENGTH} are allowed")
    return _Parser(text).whole()


def names_in(text: str) -> frozenset[str]:
    """The attributes that the expression asks for, without what lies inside them."""
    return frozenset(word.partition(".")[0] for kind, word, _position in _Parser(text).tokens if kind == "name")


class _Parser:
    """Recursive descent, one method a level of precedence; each returns a function of a host."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.tokens = list(self._tokens())

    def _tokens(self) -> t.Iterator[tuple[str, str, int]]:
        position, end = 0, len(self.text.rstrip())
        while position < end:
            match = _TOKEN.match(self.text, position)
            if not match or match.lastgroup is None:
                raise self._error(position)
            kind, word = match.lastgroup, match[match.lastgroup]
            start = match.start(kind)
            if kind == "name" and word.lower() in ("and", "or", "not", "in"):
                kind, word = "sign", word.lower()
            yield kind, _SAME.get(word, word) if kind == "sign" else word, start
            position = match.end()
        yield "end", "", end

    def _error(self, position: int) -> NovaliteError:
        rest = self.text[position:].strip()[:20] or "the end"
        return NovaliteError(f"the expression {self.text!r} cannot be read at {rest!r}")

    def _take(self, *signs: str) -> str | None:
        kind, word, _position = self.tokens[self.at]
        if kind == "sign" and word in signs:
            self.at += 1
            return word
        return None

    def whole(self) -> Evaluator:
        result = self._or()
        kind, _word, position = self.tokens[self.at]
        if kind != "end":
            raise self._error(position)
        return result

    def _or(self) -> Evaluator:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NovaliteError(f"the expression {self.text!r} is nested deeper than {MAX_DEPTH} levels")
        parts = [self._and()]
        while self._take("or"):
            parts.append(self._and())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else lambda host: any(part(host) for part in parts)

    def _and(self) -> Evaluator:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else lambda host: all(part(host) for part in parts)

    def _not(self) -> Evaluator:
        negated = False
        while self._take("not"):
            negated = not negated
        part = self._comparison()
        return (lambda host: not part(host)) if negated else part

    def _comparison(self) -> Evaluator:
        left = self._sum()
        sign = self._take(*_COMPARE)
        if sign is None:
            return left
        right, compare = self._sum(), _COMPARE[sign]

        def compared(host: HostState) -> bool:
            value, other = left(host), right(host)
            if value is None or other is None:
                return False
            try:
                return bool(compare(value, other))
            except TypeError:  # a number and a text have no order
                return False

        return compared

    def _sum(self) -> Evaluator:
        return self._arithmetic(("+", "-"), self._product)

    def _product(self) -> Evaluator:
        return self._arithmetic(("*", "/"), self._atom)

    def _arithmetic(self, signs: tuple[str, ...], operand: t.Callable[[], Evaluator]) -> Evaluator:
        left = operand()
        while sign := self._take(*signs):
            left = _combined(_ARITHMETIC[sign], left, operand())
        return left

    def _atom(self) -> Evaluator:
        if self._take("("):
            inside = self._or()
            if not self._take(")"):
                raise self._error(self.tokens[self.at][2])
            return inside
        sign = 1.0
        while self._take("-"):
            sign = -sign
        kind, word, position = self.tokens[self.at]
        if kind not in ("number", "text", "name"):
            raise self._error(position)
        self.at += 1
        value: Evaluator
        if kind == "name":
            value = functools.partial(look_up, path=word.split("."))
        else:
            constant = float(word) if kind == "number" else word[1:-1]
            value = functools.partial(_constant, constant)
        return value if sign > 0 else lambda host: -_number(value(host))


def _constant(value: str | float, _host: HostState) -> str | float:
    return value


def _combined(combine: t.Callable[[float, float], float], left: Evaluator, right: Evaluator) -> Evaluator:
    return lambda host: combine(_number(left(host)), _number(right(host)))


def _number(value: Json) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0
