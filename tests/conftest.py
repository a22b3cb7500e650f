# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import gc

import hypothesis
import pytest

# How long an example takes says how busy the machine is; speed is measured in tests/bench
hypothesis.settings.register_profile("novalite", deadline=None)
hypothesis.settings.load_profile("novalite")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep the garbage collector from what stays until the end: all modules and tests, millions of objects.

    It would walk through them again and again, which took a quarter of the tests' time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # what a test makes and drops is a multiple of the default's 700 objects
