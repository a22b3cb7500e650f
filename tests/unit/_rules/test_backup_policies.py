# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policies of backups: which one a server follows, and what is due."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._rules import backup_policies as rules
from ansible_collections.novalite.cloud.plugins.module_utils._rules.backup_policies import Backup, Policy

HOUR, DAY = 3600, 86400


def policy(scope: str = "all", target: str = "", every: int = DAY, verify_every: int | None = None) -> Policy:
    return Policy(f"{scope} {target}", scope, target, every, {}, verify_every, 0, 0)


def taken(at: int, verified_at: int | None = None) -> Backup:
    return Backup(at, verified_at, True, False)


def failed(at: int) -> Backup:
    return Backup(at, None, False, False)


@pytest.mark.parametrize(
    ("text", "seconds"), [("hourly", HOUR), ("daily", DAY), ("12h", 12 * HOUR), ("10m", 600), ("2w", 14 * DAY)]
)
def test_times(text: str, seconds: int) -> None:
    assert rules.seconds_of("every", text) == seconds


@pytest.mark.parametrize("text", ["", "9m", "0h", "1y", "-1h", "1.5h", "h", "400d", "\u0661h"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(NovaliteError, match="give hourly, daily"):
        rules.seconds_of("every", text)


def test_the_narrowest_policy_holds() -> None:
    server = {"server": "uuid", "flavor": "2", "project": "p"}
    known = [policy(), policy("project", "p"), policy("flavor", "2"), policy("server", "uuid")]
    for number in range(len(known), 0, -1):
        assert rules.policy_of(known[:number], server) == known[number - 1]
    assert rules.policy_of([policy("project", "q"), policy("server", "other")], server) is None


def test_a_backup_is_due() -> None:
    assert rules.backup_due(policy(), [], 0)
    assert not rules.backup_due(policy(), [taken(100)], 99 + DAY)
    assert rules.backup_due(policy(), [taken(100)], 100 + DAY)
    assert not rules.backup_due(policy(), [taken(0), Backup(1, None, False, True)], 2 * DAY)  # one is under way
    assert not rules.backup_due(policy(), [taken(0), failed(2 * DAY)], 2 * DAY + 60)  # one failed just now
    assert rules.backup_due(policy(), [taken(0), failed(2 * DAY)], 2 * DAY + HOUR)


def test_a_proof_is_due() -> None:
    weekly = policy(verify_every=7 * DAY)
    assert not rules.proof_due(policy(), [taken(0)], 0)
    assert not rules.proof_due(weekly, [failed(0)], 0)
    assert rules.proof_due(weekly, [taken(0)], 0)
    assert not rules.proof_due(weekly, [taken(0, 5), taken(DAY)], 2 * DAY)
    assert rules.proof_due(weekly, [taken(0, 5), taken(DAY)], 5 + 7 * DAY)
    assert not rules.proof_due(weekly, [taken(0), taken(DAY, DAY + 5)], 99 * DAY)  # the newest is proven


def test_a_boot_is_due() -> None:
    weekly = dataclasses.replace(policy(), boot_every=7 * DAY)
    full = dataclasses.replace(taken(0), is_full=True)

    def booted(at: int, proven_at: int | None) -> Backup:
        return dataclasses.replace(full, booted_at=at, proven_at=proven_at)

    assert rules.boot_due(weekly, [full], 0)
    assert not rules.boot_due(policy(), [full], 0)
    assert not rules.boot_due(weekly, [taken(0)], 99 * DAY)  # it needs others
    assert not rules.boot_due(weekly, [booted(5, 5), full], 4 + 7 * DAY)
    assert rules.boot_due(weekly, [booted(5, 5), full], 5 + 7 * DAY)
    assert not rules.boot_due(weekly, [booted(5, None)], 4 + DAY)
    assert rules.boot_due(weekly, [booted(5, None)], 5 + DAY)


@given(st.integers(rules.LEAST, DAY), st.lists(st.integers(0, 10 * DAY), max_size=20), st.integers(10 * DAY, 20 * DAY))
def test_no_good_backup_is_older_than_the_policy_says(every: int, times: list[int], now: int) -> None:
    """A backup is due if and only if the newest is at least that old, where nothing fails."""
    due = rules.backup_due(policy(every=every), [taken(at) for at in times], now)
    assert due == (not times or now - max(times) >= every)
