# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tracked connections of addresses that change hands: the next owner must not inherit what the last one opened."""

from __future__ import annotations

import typing as t

from .._host.command import CommandError, run
from .._host.files import read_text

ATTEMPTS = 5
_FAMILY = {"IPv4": "ipv4", "IPv6": "ipv6"}
_COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"
# Both ends as the instance's side sees them, so that translated (floating) flows are found too.
_ENDS = ("--orig-src", "--reply-src")


class Owned(t.NamedTuple):
    """An address (`10.0.0.5`), in the conntrack zone of its network (0: not isolated)."""

    address: str
    zone: int = 0


def forget(owned: t.Collection[Owned]) -> list[str]:
    """Delete the tracked connections from and to these addresses. Returns warnings."""
    if not owned or _nothing_tracked():
        return []
    try:
        for family in _FAMILY.values():
            _forget(family, {held for held in owned if (":" in held.address) == (family == "ipv6")})
    except CommandError as error:
        return [f"open connections of addresses that changed hands could not be cut: {error}"]
    return []


def _forget(family: str, owned: set[Owned]) -> None:
    """`conntrack -D` looks at all connections, deletes one by one, and gives up at the first that somebody else has
    deleted or that has expired since it looked. So: one after the other, and again for what is left."""
    for _attempt in range(ATTEMPTS if owned else 0):
        left = _tracked(family, owned)
        for held, end in sorted(left):
            # Zone 0 too is named: without one, those of every network that uses this address would go.
            run(["conntrack", "-D", "-f", family, end, held.address, "-w", str(held.zone)], ok=(0, 1))
        if not left:
            return


def _tracked(family: str, owned: t.Container[Owned]) -> set[tuple[Owned, str]]:
    """Return those of the addresses `owned` that the kernel tracks connections of, and at which end each one is."""
    tracked = set()  # type: set[tuple[Owned, str]]
    for line in run(["conntrack", "-L", "-f", family]).stdout.splitlines():
        words = line.split()
        zone = next((int(word[5:]) for word in words if word.startswith("zone=")), 0)
        sources = [word[4:] for word in words if word.startswith("src=")]
        ends = [(Owned(address, zone), end) for address, end in zip(sources, _ENDS)]
        tracked.update(end for end in ends if end[0] in owned)
    return tracked


def _nothing_tracked() -> bool:
    return (read_text(_COUNT) or "").strip() == "0"
