# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decision of healing in simulated clouds, by seeds, and with faults planted in it."""

from __future__ import annotations

import pytest

from tests.unit._healing.code import Fault, with_fault
from tests.unit._healing.faults import FAULTS
from tests.unit._healing.story import Broken, play

SHORT, LONG, PART = 500, 10_000, 100
PARTS = [
    pytest.param(first, marks=[pytest.mark.thorough] if first >= SHORT else [], id=f"{first}+")
    for first in range(0, LONG, PART)
]


@pytest.mark.parametrize("first", PARTS)
def test_invariants_hold_in_every_story(first: int) -> None:
    """Play stories: one writer a disk, a proof before each evacuation, nobody alive fenced, guests back or listed."""
    for seed in range(first, first + PART):
        play(seed)


@pytest.mark.parametrize(("fault", "seed"), [pytest.param(fault, seed, id=fault.says) for fault, seed in FAULTS])
def test_planted_fault_is_found_by_a_seed_that_replays(fault: Fault, seed: int) -> None:
    play(seed)
    messages = []
    for _ in range(2):
        with pytest.raises(Broken) as caught:
            play(seed, with_fault(fault))
        messages.append(str(caught.value))
    assert messages[0] == messages[1], "the story went another way the second time"


def test_faults_are_twenty_or_more() -> None:
    assert len({fault.says for fault, _seed in FAULTS}) == len(FAULTS) >= 20
