# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measures of hosts and guests, and what two readings of their counters make of them. Pure functions."""

from __future__ import annotations

import dataclasses
import typing as t

from .._json import JsonMapping

# What is measured of a host and of a guest -> its unit; the order is that of the files of rings
MEASURES: t.Mapping[str, str] = {
    "cpu": "cores",
    "memory": "bytes",
    "disk_read": "bytes/s",
    "disk_written": "bytes/s",
    "net_received": "bytes/s",
    "net_sent": "bytes/s",
    # shares of the time in which something waited for it: the kernel's pressure stall information
    "cpu_pressure": "share",
    "memory_pressure": "share",
    "io_pressure": "share",
}
GAUGES = frozenset({"memory"})  # which count nothing
SHORTEST = 1.0  # seconds between two readings: less would make a rate of noise
LONGEST = 900.0  # and most: what happened in a longer time was not measured

Values = t.Mapping[str, t.Optional[float]]


@dataclasses.dataclass(frozen=True)
class Reading:
    """Counters of a host or guest at a moment of its host's monotonic clock. They rise for as long as `run` lasts."""

    run: str
    clock: float
    values: Values

    @classmethod
    def of(cls, entry: JsonMapping, host: str) -> Reading:
        """Return the one that the step `counters` told of `host`, or of a guest on it."""
        values = {name: entry["values"].get(name) for name in MEASURES}
        return cls(f"{host} {entry['run']}", float(entry["clock"]), values)


def measured(before: Reading | None, now: Reading) -> Values:
    """Return the measures between two readings, each None where it is not known: a counter that began anew in between,
    for the guest was started or moved, or the host booted, says nothing of the time between; nor does one alone."""
    seconds = now.clock - before.clock if before is not None and before.run == now.run else 0.0
    follows = SHORTEST <= seconds <= LONGEST
    values: dict[str, float | None] = {}
    for name in MEASURES:
        after = now.values.get(name)
        start = before.values.get(name) if before is not None and follows else None
        if name in GAUGES:
            values[name] = after
        elif after is None or start is None or after < start:  # less, such as without a disk that was detached
            values[name] = None
        else:
            values[name] = (after - start) / seconds
    return values
