# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Regular expressions of names: what the database decides is what Python's `re` finds."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import reading
from api.openstack.compute.servers.queries import Matcher
from tests.support.examples import part_of

NAMES = st.text(st.sampled_from("abAB1-%_^$é .*"), max_size=6)
ANCHORED = st.tuples(
    st.text(st.sampled_from("abAB1-%_é "), max_size=4),
    st.sampled_from(
        ["", "$", "*", "+", "?", "{0}", "{1,2}", "?$", "*$", ".", ".*1$", "[ab]", "$a", "|b", "(b|1)", "\\."]
    ),
).map(lambda parts: f"^{parts[0]}{parts[1]}")
PATTERNS = st.one_of(ANCHORED, st.tuples(NAMES, ANCHORED).map("".join), NAMES)


def expected(pattern: str, name: str) -> bool:
    """Reference, as users are told: an expression is searched for; anything also as it stands."""
    try:
        return pattern in name or re.search(pattern, name) is not None
    except re.error:
        return False


@pytest.mark.both_databases
@settings(max_examples=part_of(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=PATTERNS, names=st.lists(NAMES, min_size=1, max_size=6))
def test_the_database_decides_as_python_does(ledger: sa.Engine, pattern: str, names: list[str]) -> None:
    matcher = Matcher(pattern)
    begins, whole = matcher.begins()
    if begins is None:
        assert not whole
        return
    with reading(ledger) as connection:
        row = connection.execute(
            sa.select(*(begins.condition(connection.dialect.name, sa.literal(name)) for name in names))
        ).one()
    for name, passes in zip(names, row):
        assert (bool(passes) and (whole or matcher(name))) is expected(pattern, name), name


@pytest.mark.parametrize(
    ("pattern", "text", "whole"),
    [
        ("^rare$", ("rare", True), True),
        ("^rare", ("rare", False), True),
        ("^rare-[0-9]+$", ("rare-", False), False),
        ("^rares?$", ("rare", False), False),
        ("^rare|b", None, False),
        ("^.*rare", None, False),
        ("rare$", None, False),
        ("rare", None, False),
    ],
)
def test_what_is_pushed_down(pattern: str, text: tuple[str, bool] | None, whole: bool) -> None:
    begins, all_of_it = Matcher(pattern).begins()
    assert (None if begins is None else (begins.text, begins.whole), all_of_it) == (text, whole)
