# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers of examples that Hypothesis makes up: each run makes up others, so that the tests that are run at each change
have a part of them, and those of `make test-all` all."""

from __future__ import annotations

import hypothesis

ALL, PART = "all", "part"  # profiles
IN_PART = 20  # of a hundred

# How long an example takes says how busy the machine is; speed is measured in tests/bench
hypothesis.settings.register_profile(ALL, deadline=None, max_examples=100)
hypothesis.settings.register_profile(PART, deadline=None, max_examples=IN_PART)


def part_of(count: int) -> int:
    """Return as many of `count` examples as this run has of them."""
    return max(1, count * hypothesis.settings().max_examples // 100)
