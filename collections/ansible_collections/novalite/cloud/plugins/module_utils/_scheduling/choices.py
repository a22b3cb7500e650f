# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The choices: ways to rank what passed, and the best of a ranking. A higher score is better."""

from __future__ import annotations

import collections
import dataclasses
import heapq
import operator
import random
import typing as t

if t.TYPE_CHECKING:
    from .candidates import Candidates


class Score(t.Protocol):
    """A number, or several in the order of their importance."""

    def __lt__(self, other: t.Any, /) -> bool: ...
    def __gt__(self, other: t.Any, /) -> bool: ...


@dataclasses.dataclass(frozen=True)
class Choice:
    """Way to rank the hosts that passed. The earlier name wins a tie."""

    name: str
    scores: t.Callable[[Candidates, random.Random], t.Sequence[Score]]
    details: t.Callable[[Candidates, int, Score], dict[str, float]]  # what the score of this position was made of
    uses_weighers: bool = False


def best(scores: t.Sequence[Score], count: int) -> list[int]:
    """Positions of the `count` highest scores, highest first; equal scores stay in the order of their positions.

    Without sorting thousands for the sake of ten.
    """
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


def _drawn(candidates: Candidates, rng: random.Random) -> list[float]:
    return [rng.random() for _host in candidates.passed]


def _nothing(candidates: Candidates, position: int, score: Score) -> dict[str, float]:
    """Nothing explains a draw."""
    return {}


def _least_loaded(candidates: Candidates, rng: random.Random) -> list[tuple[int, int]]:
    """Cores and MiB in use, negative: less is better."""
    hosts = candidates.hosts
    return [(-hosts[i].vcpus_used, -hosts[i].memory_mb_used) for i in candidates.passed]


def _spread(candidates: Candidates, rng: random.Random) -> list[tuple[int, int, int]]:
    """Cores in use in the host's zone, on the host, and its MiB in use, all negative: less is better."""
    hosts = candidates.hosts
    used: collections.defaultdict[str, int] = collections.defaultdict(int)
    for host in hosts:
        used[host.zone] -= host.vcpus_used
    return [(used[hosts[i].zone], -hosts[i].vcpus_used, -hosts[i].memory_mb_used) for i in candidates.passed]


def _load(*names: str) -> t.Callable[[Candidates, int, Score], dict[str, float]]:
    """The details of a score that is a load, whose parts have these names."""

    def details(candidates: Candidates, position: int, score: Score) -> dict[str, float]:
        return {name: -part for name, part in zip(names, t.cast("tuple[int, ...]", score))}

    return details


def _weighed(candidates: Candidates, rng: random.Random) -> list[float]:
    """The weighted sum for each host. As in Nova, one host alone is not weighed."""
    count = len(candidates.passed)
    columns = [column.scores for column in candidates.columns if column.scores is not None]
    if count == 1 or not columns:
        return [0.0] * count
    total = columns[0]
    for column in columns[1:]:
        total = list(map(operator.add, total, column))
    return total


def _weights(candidates: Candidates, position: int, score: Score) -> dict[str, float]:
    """Return each weigher's part of the score; those that made no difference are left out."""
    # not -0.0
    return {column.weigher.name: column.scores[position] + 0.0 for column in candidates.columns if column.scores}


CHOICES = {
    choice.name: choice
    for choice in (
        # Nova's SimpleScheduler: the fewest cores in use, then memory
        Choice("simple", _least_loaded, _load("vcpus_used", "memory_mb_used")),
        # Nova's ChanceScheduler: any of the hosts that passed
        Choice("chance", _drawn, _nothing),
        # Nova's ZoneScheduler, without its draw: spread over the zones, then as `simple`. A request that names its zone
        # was held to it by the filter, which leaves the choice of `simple`
        Choice("zone", _spread, _load("zone_vcpus_used", "vcpus_used", "memory_mb_used")),
        # Nova's FilterScheduler: the highest sum of `multiplier * weight`, each weight normalised to 0..1 (columns.py)
        Choice("filter_scheduler", _weighed, _weights, uses_weighers=True),
    )
}
