# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users' regular expressions: what Python's `re` finds, in bounded time."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.openstack.compute.servers.queries import MAX_PATTERN, Matcher
from api.web.errors import BadRequestError

CHARACTERS = st.sampled_from("ab1-. ")
ATOMS = st.one_of(
    st.sampled_from(["a", "b", "1", "-", ".", "\\.", "\\d", "\\w", "\\s", "\\D", "[ab]", "[^a]", "[a-c1]", "[]a]"]),
    st.sampled_from(["^", "$"]),
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"{two[0]}|{two[1]}"),
        inner.map(lambda pattern: f"({pattern})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}"])).map(
            lambda two: f"({two[0]}){two[1]}"
        ),
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, st.text(CHARACTERS, max_size=8))
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    # Python's "$" also matches before a newline at the end, which no text here has
    expected = re.search(pattern, text) is not None or pattern in text
    assert Matcher(pattern)(text) is expected


@pytest.mark.parametrize("pattern", ["(", ")", "a{2,1}", "[b-a]", "*", "a**", "[", "\\", "\\q", "(?=a)"])
def test_what_is_no_expression_is_looked_for_as_it_stands(pattern: str) -> None:
    matcher = Matcher(pattern)
    assert matcher.plain
    assert matcher(f"x{pattern}y")
    assert not matcher("nothing of it")


def test_a_name_with_special_characters_finds_itself() -> None:
    assert Matcher("web[1]+")("web[1]+")
    assert not Matcher("web[1]+")("web[2]+")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "(a*)*b", "a?" * 80 + "a" * 80, "(.*){20}x", "(((a+)+)+)+$"])
def test_hostile_expressions_end(pattern: str) -> None:
    assert Matcher(pattern)("a" * 60 + "!") is False


def test_many_texts_cost_little() -> None:
    matcher, began = Matcher("(a|b|c|d|e|f)*x" + "(.?)" * 60), time.process_time()
    assert not any(matcher("abcdef" * 40) for _text in range(2000))
    assert time.process_time() - began < 5


def test_a_pattern_is_bounded() -> None:
    with pytest.raises(BadRequestError, match="at most 255"):
        Matcher("a" * (MAX_PATTERN + 1))
    assert Matcher("a{1,99}b{99}(c{99}d{99}){99}").plain  # too many states to follow
