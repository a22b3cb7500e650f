# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Tracked connections of addresses that change hands: the next owner must not inherit what the last one opened."""

from __future__ import annotations

import typing as t

from .._command import CommandError, run
from .._host import in_threads

_FAMILY = {"IPv4": "ipv4", "IPv6": "ipv6"}
_COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"


class Owned(t.NamedTuple):
    """An address (`10.0.0.5`), in the conntrack zone of its network (0: not isolated)."""

    address: str
    zone: int = 0


def forget(owned: t.Collection[Owned]) -> list[str]:
    """Delete the tracked connections from and to these addresses. Returns warnings.

    With a file of its own for each network namespace, the count is of this one: nothing is asked where nothing is.
    """
    if not owned or _nothing_tracked():
        return []
    jobs = [(one, option)
            for one in sorted(owned)
            # Both ends as the instance's side sees them, so that translated (floating) flows are found too.
            for option in ("--orig-src", "--reply-src")]

    def delete(job: tuple[Owned, str]) -> str | None:
        (address, zone), option = job
        family = _FAMILY["IPv6" if ":" in address else "IPv4"]
        try:
            # Zone 0 too is named: without one, those of every network that uses this address would go.
            run(["conntrack", "-D", "-f", family, option, address, "-w", str(zone)], ok=(0, 1))
        except CommandError as error:
            return str(error)
        return None

    problems = sorted({problem for problem in in_threads(delete, jobs, workers=4) if problem})
    if problems:
        return [f"open connections of addresses that changed hands could not be cut: {problems[0]}"]
    return []


def _nothing_tracked() -> bool:
    try:
        with open(_COUNT, encoding="ascii") as handle:
            return int(handle.read()) == 0
    except (OSError, ValueError):
        return False
