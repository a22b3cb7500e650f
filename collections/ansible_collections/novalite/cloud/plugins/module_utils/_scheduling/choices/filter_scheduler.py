# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's FilterScheduler: the highest sum of `multiplier * weight`, each weight normalised to 0..1 (`columns.py`)."""

from __future__ import annotations

import operator
import random
import typing as t

if t.TYPE_CHECKING:
    from ..candidates import Candidates

NAME = "filter_scheduler"
USES_WEIGHERS = True


def scores(candidates: Candidates, rng: random.Random) -> list[float]:
    """The weighted sum for each host. As in Nova, one host alone is not weighed."""
    count = len(candidates.passed)
    columns = [column.scores for column in candidates.columns if column.scores is not None]
    if count == 1 or not columns:
        return [0.0] * count
    total = columns[0]
    for column in columns[1:]:
        total = list(map(operator.add, total, column))
    return total


def details(candidates: Candidates, position: int, score: float) -> dict[str, float]:
    """What each weigher added to the score of one host; those that made no difference are left out."""
    columns = [column for column in candidates.columns if column.scores is not None]
    return {column.weigher.name: column.scores[position] + 0.0 for column in columns if column.scores}  # no -0.0
