# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prefixes that are free of those that subnets have."""

from __future__ import annotations

import netaddr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._addressing import prefixes

WHOLE = netaddr.IPNetwork("10.8.0.0/24")


@st.composite
def pools(draw: st.DrawFn) -> list[str]:
    """The prefixes of a pool within a /24, compacted."""
    lengths = draw(st.lists(st.tuples(st.integers(24, 30), st.integers(0, 63)), min_size=1, max_size=4))
    return prefixes.compacted(
        str(netaddr.IPNetwork(f"{WHOLE[number * 4]}/{length}").cidr) for length, number in lengths
    )


@given(pool=pools(), lengths=st.lists(st.integers(24, 32), max_size=40))
def test_what_is_drawn_is_in_the_pool_and_of_nobody_else(pool: list[str], lengths: list[int]) -> None:
    taken: list[str] = []
    for length in lengths:
        drawn = prefixes.first_free(pool, taken, length)
        free = netaddr.IPSet(pool) - netaddr.IPSet(taken)
        if drawn is None:
            assert all(block.prefixlen > length for block in free.iter_cidrs())
            continue
        prefix = netaddr.IPNetwork(drawn)
        assert prefix.prefixlen == length and prefix.ip == prefix.network
        assert netaddr.IPSet([prefix]) <= free
        assert prefixes.within(drawn, pool) and prefixes.overlapping([drawn], taken) is None
        taken.append(drawn)


@given(ours=pools(), theirs=pools())
def test_overlaps_are_those_of_the_addresses(ours: list[str], theirs: list[str]) -> None:
    common = netaddr.IPSet(ours) & netaddr.IPSet(theirs)
    assert (prefixes.overlapping(ours, theirs) is None) == (common.size == 0)


@pytest.mark.parametrize(
    ("pool", "taken", "length", "drawn"),
    [
        (["10.8.0.0/16"], [], 24, "10.8.0.0/24"),
        (["10.8.0.0/16"], ["10.8.0.0/24"], 24, "10.8.1.0/24"),
        (["10.8.0.0/16"], ["10.8.0.0/26"], 18, "10.8.64.0/18"),
        (["10.8.0.0/16", "10.9.0.0/28"], [], 28, "10.9.0.0/28"),  # the large one stays whole
        (["10.8.0.0/30"], ["10.8.0.0/31"], 30, None),
        (["fd00:8::/48"], ["fd00:8::/64"], 64, "fd00:8:0:1::/64"),
    ],
)
def test_the_smallest_gap_with_room_is_used(pool: list[str], taken: list[str], length: int, drawn: str | None) -> None:
    assert prefixes.first_free(pool, taken, length) == drawn
