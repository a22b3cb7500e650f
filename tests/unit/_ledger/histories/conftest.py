# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from tests.unit._ledger.histories.driver import make_template


@pytest.fixture(scope="session")
def ledger_of_histories(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The home of the ledger that histories begin with."""
    home = tmp_path_factory.mktemp("histories") / "home"
    make_template(home)
    return home
