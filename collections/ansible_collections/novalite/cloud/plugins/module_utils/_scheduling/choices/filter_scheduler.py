# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Nova's FilterScheduler: the highest sum of `multiplier * weight`, each weight normalised to 0..1.

Normalised over the hosts that passed, as in Nova (nova/weights.py): the best of them has 1, the worst 0, and a
weigher for which all are equal adds nothing.
"""

from __future__ import annotations

import random
import typing as t

if t.TYPE_CHECKING:
    from ..plugins import Candidates

NAME = "filter_scheduler"
USES_WEIGHERS = True


def scores(candidates: Candidates, rng: random.Random) -> list[float]:
    """The weighted sum for each host. This is the scheduler's innermost loop: one pass per weigher over floats."""
    total = [0.0] * len(candidates.passed)
    for weigher, weights in zip(candidates.weighers, candidates.weights):
        low, high = min(weights), max(weights)
        span, multiplier = high - low, weigher.multiplier
        if span and multiplier:
            total = [sum_ + multiplier * ((weight - low) / span) for sum_, weight in zip(total, weights)]
    return total


def details(candidates: Candidates, position: int, score: float) -> dict[str, float]:
    """What each weigher saw of one host, before normalisation."""
    return {one.name: weights[position] for one, weights in zip(candidates.weighers, candidates.weights)}
