# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Room for more instances of one kind, on each host and in all, and what is in the way of the next.

The same filters decide as at a launch, so that the answer holds. Only those that count builds under way are left out:
they say how many at once, not how many.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from . import plugins
from .kinds import Filter
from .options import Options
from .rows import HostState, Request

LIMIT = 100_000  # instances on one host, where no filter ever says no
AT_ONCE = ("io_ops", "aggregate_io_ops")


@dataclasses.dataclass(frozen=True)
class Room:
    """Number of instances that still fit on one host, the filter that refuses the next, and its reason."""

    host: str
    fits: int
    bottleneck: str | None
    reason: str | None


def room(hosts: t.Iterable[HostState], request: Request, options: Options) -> list[Room]:
    """The room for instances like `request` on each host, by name. NovaliteError for an unknown filter."""
    filters = [filter_ for filter_ in plugins.filters_for(options) if filter_.name not in AT_ONCE]
    filters = [filter_ for filter_ in filters if filter_.concerns(request, options)]
    return [_room(host, request, options, filters) for host in sorted(hosts, key=lambda host: host.name)]


def bottlenecks(rooms: t.Iterable[Room]) -> dict[str, int]:
    """Count the hosts that each filter closes to the next instance, most first."""
    counts = collections.Counter(host_room.bottleneck for host_room in rooms if host_room.bottleneck is not None)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _room(host: HostState, request: Request, options: Options, filters: t.Sequence[Filter]) -> Room:
    # What fits after n fits after fewer, for claims only take: so the limit is looked for by halving.
    def refusal(count: int) -> tuple[str, str] | None:
        state = host.with_more(request, count)
        for filter_ in filters:
            reason = filter_.passes(state, request, options)
            if reason is not None:
                return filter_.name, reason
        return None

    low, high = 0, 1  # after `low` another one fits, unless low is 0
    if refusal(0) is None:
        while high < LIMIT and refusal(high) is None:
            low, high = high, high * 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if refusal(middle) is None else (low, middle)
        fits = high
    else:
        fits = 0
    bottleneck, reason = refusal(fits) or (None, None)
    return Room(host.name, fits, bottleneck, reason)
