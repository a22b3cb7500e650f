# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Retention: which backups are kept of those that there are, by how many of each period are to be."""

from __future__ import annotations

import datetime
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping

# What two backups of one period have in common, in UTC
PERIODS: t.Mapping[str, str] = {"hourly": "%Y-%m-%dT%H", "daily": "%Y-%m-%d", "weekly": "%G-W%V", "monthly": "%Y-%m"}
LAST = "last"  # the newest ones, whatever their period
OPTIONS = tuple(f"keep_{name}" for name in (LAST, *PERIODS))
MOST = 1000

Keep = dict[str, int]


def keep_of(request: JsonMapping) -> Keep:
    """Return how many of each period are kept, as `keep_daily` and its like (OPTIONS) of a request say it. Raises
    NovaliteError."""
    keep = {}
    for option in OPTIONS:
        number = request.get(option)
        if number is None:
            continue
        if not 0 < number <= MOST:
            raise NovaliteError(f"{option}={number}: give how many are kept, from 1 to {MOST}, or leave it out")
        keep[option[len("keep_") :]] = number
    return keep


def superfluous(taken: t.Mapping[str, float], keep: Keep) -> set[str]:
    """Return which of the backups, with the seconds since the epoch at which they were taken, are not to be kept: of
    each of the newest periods that have any, the last one is. Without any rule all are kept, and the newest always."""
    newest = sorted(taken, key=lambda name: (taken[name], name), reverse=True)
    if not keep:
        return set()
    kept = set(newest[: max(1, keep.get(LAST, 0))])
    for period, form in PERIODS.items():
        last_of: dict[str, str] = {}
        for name in newest:
            moment = datetime.datetime.fromtimestamp(taken[name], datetime.timezone.utc)
            last_of.setdefault(moment.strftime(form), name)
        kept.update(list(last_of.values())[: keep.get(period, 0)])
    return set(newest) - kept
