# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Retention of backups: which of them are kept."""

from __future__ import annotations

import datetime
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._rules import retention

HOUR, DAY = 3600, 86400
YEAR = 366 * DAY
TIMES = st.lists(st.integers(0, 3 * YEAR), max_size=60, unique=True).map(lambda times: {str(at): at for at in times})
KEEPS = st.dictionaries(st.sampled_from([retention.LAST, *retention.PERIODS]), st.integers(1, 12))
SLOTS: dict[str, t.Callable[[datetime.datetime], object]] = {
    "hourly": lambda at: (at.date(), at.hour),
    "daily": lambda at: at.date(),
    "weekly": lambda at: at.date() - datetime.timedelta(at.weekday()),
    "monthly": lambda at: (at.year, at.month),
}


def moment(at: int) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at, datetime.timezone.utc)


@given(TIMES, KEEPS)
def test_each_period_keeps_its_last_one(taken: dict[str, int], keep: dict[str, int]) -> None:
    kept = set(taken) - retention.superfluous(taken, keep)
    if not keep:
        assert kept == set(taken)
        return
    due = set(sorted(taken.values())[-max(1, keep.get(retention.LAST, 0)) :])
    for period, slot in SLOTS.items():
        by_slot: dict[t.Any, int] = {}
        for at in sorted(taken.values()):
            by_slot[slot(moment(at))] = at
        due |= {by_slot[each] for each in sorted(by_slot, reverse=True)[: keep.get(period, 0)]}
    assert kept == {str(at) for at in due}


@given(TIMES, KEEPS)
def test_what_is_kept_is_kept_again(taken: dict[str, int], keep: dict[str, int]) -> None:
    kept = {name: at for name, at in taken.items() if name not in retention.superfluous(taken, keep)}
    assert retention.superfluous(kept, keep) == set()
    if taken:
        assert str(max(taken.values())) in kept


def test_a_year_of_hours_is_thinned_out() -> None:
    taken = {str(hour): hour * HOUR for hour in range(365 * 24)}
    keep = {"hourly": 24, "daily": 7, "weekly": 4, "monthly": 12}
    kept = sorted(int(name) for name in set(taken) - retention.superfluous(taken, keep))
    assert kept[-24:] == list(range(365 * 24 - 24, 365 * 24))
    # the newest is the last of its day, week and month, too, and a Sunday is among the days
    assert len(kept) == 24 + 6 + 2 + 11


def test_numbers_that_mean_nothing_are_refused() -> None:
    assert retention.keep_of({"keep_daily": 7, "keep_last": None, "other": 1}) == {"daily": 7}
    for number in (0, -1, 1001):
        with pytest.raises(NovaliteError, match=f"keep_weekly={number}: give how many"):
            retention.keep_of({"keep_weekly": number})
