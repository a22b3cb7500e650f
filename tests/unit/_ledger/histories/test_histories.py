# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whatever users do, by mistake too, and whatever breaks: no guest that runs, and no last copy of a disk, is removed
unless its user named it; no address is in use twice, and no guest is started twice.

One history is played again, act by act, by `python -m tests.unit._ledger.histories.driver <path>`.
"""

from __future__ import annotations

import pytest

from tests.unit._ledger.histories.driver import LEAVES, Beginning, histories
from tests.unit._ledger.histories.faults import FAULTS, Fault
from tests.unit._ledger.histories.mistakes import ROWS, make

TREES, PARTS = 42, 42  # so that processes can share the work
ALL = [0, *(pytest.param(part, marks=pytest.mark.thorough) for part in range(1, PARTS))]


@pytest.mark.parametrize("part", ALL)
def test_nobody_loses_a_guest(part: int, beginning: Beginning) -> None:
    assert TREES * LEAVES > 2000
    violations: dict[str, str] = {}
    with histories(beginning) as played:
        for tree in range(part, TREES, PARTS):
            violations |= played.tree(str(tree))
    replay = "python -m tests.unit._ledger.histories.driver"
    assert violations == {}, "\n".join(f"{replay} {path}: {words}" for path, words in violations.items())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.words)
def test_a_fault_is_found(fault: Fault, beginning: Beginning) -> None:
    (row,) = [row for row in ROWS if row.make is fault.mistake]
    with histories(beginning) as played, fault.planted(), pytest.raises(AssertionError):
        make(row, played)
