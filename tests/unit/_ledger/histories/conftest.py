# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from tests.unit._ledger.histories.driver import Beginning, make_beginning


@pytest.fixture(scope="session")
def beginning(tmp_path_factory: pytest.TempPathFactory) -> Beginning:
    """Make the beginning of all histories once: it takes as long as many a mistake."""
    return make_beginning(tmp_path_factory.mktemp("histories"))
