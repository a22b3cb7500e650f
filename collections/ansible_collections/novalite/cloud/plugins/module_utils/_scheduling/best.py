# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The positions of the highest scores, without sorting thousands for the sake of ten."""

from __future__ import annotations

import heapq
import typing as t


class Score(t.Protocol):
    """A number, or several in the order of their importance."""

    def __lt__(self, other: t.Any, /) -> bool: ...
    def __gt__(self, other: t.Any, /) -> bool: ...


def best(scores: t.Sequence[Score], count: int) -> list[int]:
    """Positions of the `count` highest scores, highest first; equal scores stay in the order of their positions."""
    if len(scores) <= count:
        return sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
    highest = heapq.nlargest(count, scores)
    least = highest[-1]
    above = [at for at, score in enumerate(scores) if score > least]
    above.sort(key=scores.__getitem__, reverse=True)
    at = -1
    while len(above) < count:  # those equal to the last, in their order
        at = scores.index(least, at + 1)
        above.append(at)
    return above
