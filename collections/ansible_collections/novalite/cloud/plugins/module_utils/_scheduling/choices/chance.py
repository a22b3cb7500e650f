# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ChanceScheduler: any of the hosts that passed."""

from __future__ import annotations

import random
import typing as t

if t.TYPE_CHECKING:
    from ..candidates import Candidates

NAME = "chance"
USES_WEIGHERS = False


def scores(candidates: Candidates, rng: random.Random) -> list[float]:
    """A draw for each host."""
    return [rng.random() for _host in candidates.passed]


def details(candidates: Candidates, position: int, score: float) -> dict[str, float]:
    """Nothing explains a draw."""
    return {}
