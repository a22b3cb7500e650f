# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

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
