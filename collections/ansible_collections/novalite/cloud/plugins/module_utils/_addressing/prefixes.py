# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prefixes: which of them are free of those that subnets have, and where two lists of them overlap."""

from __future__ import annotations

import typing as t

import netaddr

Prefix = netaddr.IPNetwork


def compacted(prefixes: t.Iterable[str]) -> list[str]:
    """Return the same addresses as the fewest prefixes, in order."""
    return [str(prefix) for prefix in netaddr.cidr_merge([Prefix(text) for text in prefixes])]


def overlapping(prefixes: t.Iterable[str], others: t.Iterable[str]) -> str | None:
    """Return the first of the `prefixes` that has an address in common with one of the `others`."""
    theirs = [Prefix(text) for text in others]
    for text in prefixes:
        prefix = Prefix(text)
        if any(prefix in other or other in prefix for other in theirs):
            return text
    return None


def within(prefix: str, prefixes: t.Iterable[str]) -> bool:
    """Tell whether one of the `prefixes`, which are compacted, covers the prefix."""
    return any(Prefix(prefix) in Prefix(text) for text in prefixes)


def first_free(prefixes: t.Iterable[str], taken: t.Iterable[str], length: int) -> str | None:
    """Return the lowest prefix of this `length` in the smallest gap that has room for one; None: there is no room.

    `prefixes` are compacted; those `taken` do not overlap. The smallest gap first keeps large ones for large subnets.
    """
    gaps: list[Prefix] = []
    for text in prefixes:
        whole = Prefix(text)
        within_whole = sorted(prefix for prefix in map(Prefix, taken) if prefix in whole)
        start = whole.first
        for prefix in within_whole:
            gaps += _blocks(start, prefix.first - 1, whole.version)
            start = prefix.last + 1
        gaps += _blocks(start, whole.last, whole.version)
    fitting = [gap for gap in gaps if gap.prefixlen <= length]
    if not fitting:
        return None
    smallest = min(fitting, key=lambda gap: (-gap.prefixlen, gap.first))
    return f"{smallest.network}/{length}"


def _blocks(first: int, last: int, version: t.Literal[4, 6]) -> list[Prefix]:
    if first > last:
        return []
    return netaddr.iprange_to_cidrs(netaddr.IPAddress(first, version), netaddr.IPAddress(last, version))
