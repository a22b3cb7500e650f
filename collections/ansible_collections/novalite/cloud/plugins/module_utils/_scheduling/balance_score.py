# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Score of a cluster: how far apart the loads of its hosts are, and what each move would make of it.

Of each measure (cores, memory, disk, busy cores) a host has a share in use. The score is the sum of the standard
deviations of these shares: 0 when all hosts are equally loaded. With Ganeti's weights for storage that all hosts share,
it is the score of hbal (man 1 hbal, "Description").
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import typing as t

Rank = tuple[int, int]
Amounts = tuple[float, ...]  # by measure: what there is of it, what is used, or what a guest takes
_Targets = dict[Amounts, list[tuple[str, Amounts]]]  # names and shares, by the size of the host

EXACT = 10  # decimal places of a score; beyond them is noise
CONSIDERED = 32  # of the most, and of the least, loaded hosts


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Move of any guest of these `amounts` from `source` to `target`, and the score `then`."""

    then: float
    source: str
    target: str
    amounts: Amounts


class Board:
    """Shares of the hosts, as the moves so far would leave them."""

    def __init__(self, totals: t.Mapping[str, Amounts], used: t.Mapping[str, Amounts]) -> None:
        self._totals = dict(totals)
        self._shares = {name: _shares(used[name], total) for name, total in totals.items()}
        self._sum()

    @property
    def score(self) -> float:
        count = len(self._shares)
        return math.fsum(_deviation(count, total, squares) for total, squares in self._sums)

    def move(self, source: str, target: str, amounts: Amounts) -> None:
        """Take the amounts from one host, and give them to another one."""
        for name, sign in ((source, -1), (target, 1)):
            more = _shares(amounts, self._totals[name])
            self._shares[name] = tuple(share + sign * part for share, part in zip(self._shares[name], more))
        self._sum()  # anew: sums that are carried on for hundreds of moves drift

    def candidates(self, kinds: t.Mapping[str, t.Mapping[Amounts, Rank]], most: float) -> t.Iterator[Candidate]:
        """Yield the moves that leave a score of `most` or less, the best first.

        `kinds` has, by host, what its guests take, each with a rank that decides between equally good moves; between
        equal ranks, the order of the hosts does. Moves to a host that is fuller than another one of its size in
        everything come last, for whom nothing else is allowed.
        """
        loads = {name: sum(shares) for name, shares in self._shares.items()}
        ranked = sorted(loads, key=lambda name: loads[name])
        first, last = self._by_emptiness(ranked[:CONSIDERED])
        for targets in (first, last):
            moves = self._scored(ranked[-CONSIDERED:], targets, kinds, most)
            heapq.heapify(moves)
            while moves:
                then, _rank, _order, source, target, amounts = heapq.heappop(moves)
                yield Candidate(then, source, target, amounts)

    def _by_emptiness(self, ranked: t.Iterable[str]) -> tuple[_Targets, _Targets]:
        """Part the hosts, in the order of their loads, into those that may be the best targets, and those that
        are as full as one of these in everything, or fuller; each by their size."""
        best: _Targets = {}
        others: _Targets = {}
        for name in ranked:
            totals, shares = self._totals[name], self._shares[name]
            above = (all(a <= b for a, b in zip(kept, shares)) for _name, kept in best.get(totals, ()))
            (others if any(above) else best).setdefault(totals, []).append((name, shares))
        return best, others

    def _scored(
        self, sources: t.Iterable[str], targets: _Targets, kinds: t.Mapping[str, t.Mapping[Amounts, Rank]], most: float
    ) -> list[tuple[float, Rank, int, str, str, Amounts]]:
        order = {name: at for at, name in enumerate(self._shares)}
        root = math.sqrt
        moves = []
        for source in sources:
            for amounts, rank in kinds[source].items():
                rest = self._rest(source, amounts)
                for totals, alike in targets.items():
                    lines = self._lines(rest, _shares(amounts, totals))
                    for target, shares in alike:
                        then = 0.0
                        for (at_zero, slope), share in zip(lines, shares):
                            variance = at_zero + slope * share
                            if variance > 0.0:
                                then += root(variance)
                        if then <= most and target != source:
                            moves.append((round(then, EXACT), rank, order[target], source, target, amounts))
        return moves

    def _lines(self, rest: t.Iterable[tuple[float, float]], parts: Amounts) -> list[tuple[float, float]]:
        """Return the variance of each measure once a target has `parts` more: a line over the share that it has now, as
        its height at 0 and its slope."""
        count = len(self._shares)
        return [
            ((squares + part * part) / count - ((sum_ + part) / count) ** 2, 2 * part / count)
            for (sum_, squares), part in zip(rest, parts)
        ]

    def _rest(self, source: str, amounts: Amounts) -> list[tuple[float, float]]:
        """The sums of the shares, and of their squares, without these amounts at the source."""
        shares, parts = self._shares[source], _shares(amounts, self._totals[source])
        return [
            (sum_ - part, squares - (2 * share - part) * part)
            for (sum_, squares), share, part in zip(self._sums, shares, parts)
        ]

    def _sum(self) -> None:
        columns = list(zip(*self._shares.values()))
        self._sums = [(math.fsum(column), math.fsum(share * share for share in column)) for column in columns]


def _shares(amounts: Amounts, totals: Amounts) -> Amounts:
    return tuple(amount / total if total > 0 else 0.0 for amount, total in zip(amounts, totals))


def _deviation(count: int, total: float, squares: float) -> float:
    if not count:
        return 0.0
    mean = total / count
    return math.sqrt(max(0.0, squares / count - mean * mean))
