# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A mistake of an operator costs nobody a guest, and the run says what is wrong."""

from __future__ import annotations

import pytest

from tests.unit._ledger.histories.driver import Beginning, histories
from tests.unit._ledger.histories.mistakes import ROWS, Row, make


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.make.__name__)
def test_a_mistake_costs_nobody_a_guest(row: Row, beginning: Beginning) -> None:
    with histories(beginning) as played:
        make(row, played)
