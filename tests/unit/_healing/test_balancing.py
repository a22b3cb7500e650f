# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns of balancing beside the watch: nothing moves where a host may have to be healed, and a plan is told once."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.novalite.cloud.plugins.module_utils._healing import balancing, states
from ansible_collections.novalite.cloud.plugins.module_utils._healing.balancing import ACT, OFF, SUGGEST, Situation
from ansible_collections.novalite.cloud.plugins.module_utils._healing.nouns import Clock, Lease

NOW = Clock(1000.0, "ctl")
QUIET = Situation(Lease("ctl", 1030.0, 1), {"hv1": states.UP, "hv2": states.UP, "hv3": states.EMPTY}, at=100.0)
situations = st.builds(
    Situation,
    lease=st.none() | st.builds(Lease, st.sampled_from(["ctl", "other"]), st.floats(900, 1100), st.just(1)),
    states=st.dictionaries(st.sampled_from(["hv1", "hv2", "hv3"]), st.sampled_from(states.STATES)),
    armed=st.booleans(),
    rolling=st.booleans(),
    moving=st.integers(0, 2),
    at=st.floats(0, 2000),
    plan=st.sampled_from(["", "a", "b"]),
)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lease": None}, "nobody watches"),
        ({"lease": Lease("ctl", 1000.0, 1)}, "nobody watches"),
        ({"lease": Lease("other", 1030.0, 1)}, "other watches the hosts"),
        ({"states": {}}, "no host answers"),
        ({"states": {"hv1": states.EMPTY}}, "no host answers"),
        ({"rolling": True}, "a rolling maintenance"),
        ({"moving": 2}, "2 servers still move"),
        *(({"states": {"hv1": states.UP, "hv2": state}}, f"hv2 is {state}") for state in states.STATES[1:5]),
        ({"states": {"hv1": states.UP, "hv2": states.BACK}}, "hv2 is back"),
    ],
)
def test_what_leaves_the_balance_alone(changes: dict[str, t.Any], words: str) -> None:
    situation = dataclasses.replace(QUIET, **changes)
    for mode in (SUGGEST, ACT):
        assert words in balancing.hindrance(mode, situation, NOW)
        assert balancing.verdict(mode, "a", situation, NOW) == balancing.Verdict(False, False, situation.plan)


def test_while_healing_is_disarmed_moves_are_suggested_only() -> None:
    disarmed = dataclasses.replace(QUIET, armed=False)
    assert balancing.hindrance(ACT, disarmed, NOW) == "healing is disarmed"
    assert balancing.hindrance(SUGGEST, disarmed, NOW) == balancing.hindrance(ACT, QUIET, NOW) == ""
    assert not balancing.verdict(ACT, "a", disarmed, NOW).act and balancing.verdict(SUGGEST, "a", disarmed, NOW).tell


def test_a_host_that_is_dead_and_empty_neither_gives_nor_takes() -> None:
    assert QUIET.hosts == ["hv1", "hv2"]


@given(situations, st.sampled_from(balancing.MODES), st.sampled_from(["", "a", "b"]))
def test_moves_are_made_in_the_mode_act_alone_and_never_while_a_host_is_in_doubt(
    situation: Situation, mode: str, plan: str
) -> None:
    verdict = balancing.verdict(mode, plan, situation, NOW)
    if verdict.act:
        lease = t.cast(Lease, situation.lease)
        assert mode == ACT and plan and situation.armed and not situation.rolling and not situation.moving
        assert lease.owner == NOW.controller and lease.expires > NOW.now
        assert set(situation.states.values()) <= {states.UP, states.EMPTY}
    if mode == OFF:
        assert verdict == balancing.Verdict(False, False, "")
    assert not (verdict.act and not verdict.tell)  # what is done stands in the journal


@given(st.lists(st.sampled_from(["", "a", "b"]), max_size=12))
def test_a_plan_is_suggested_once_until_it_is_another_one(plans: list[str]) -> None:
    situation, announced = QUIET, []
    for plan in plans:
        verdict = balancing.verdict(SUGGEST, plan, situation, NOW)
        announced.append(plan if verdict.tell else "")
        situation = dataclasses.replace(situation, plan=verdict.plan)
    assert announced == [plan if plan != before else "" for before, plan in zip(["", *plans], plans)]


@pytest.mark.parametrize(("at", "due"), [(0.0, True), (400.0, True), (401.0, False), (1000.0, False), (1001.0, True)])
def test_turns_have_an_interval_whatever_the_clock_does(at: float, due: bool) -> None:
    situation = dataclasses.replace(QUIET, at=at)
    assert balancing.is_due(situation, NOW, 600) is due
    assert balancing.is_for_watch(SUGGEST, situation, NOW) is due


def test_the_watch_leaves_moves_to_a_run_of_their_own() -> None:
    """Or it would look at no host while they last."""
    assert not balancing.is_for_watch(ACT, QUIET, NOW)
    assert not balancing.is_for_watch(OFF, QUIET, NOW)
    assert balancing.is_for_watch(OFF, dataclasses.replace(QUIET, plan="a"), NOW)  # to forget it
    assert not balancing.is_for_watch(SUGGEST, dataclasses.replace(QUIET, rolling=True), NOW)
