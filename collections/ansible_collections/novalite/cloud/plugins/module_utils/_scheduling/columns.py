# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Scores of all candidates by one weigher: raw, normalised, multiplied; kept up to date host by host.

Normalised over the candidates, as in Nova (nova/weights.py): the best has 1, the worst 0 (or what lies below the
weigher's MINIMUM), and a weigher for which all are equal adds nothing.
"""

from __future__ import annotations

import operator
import typing as t

from .aggregates import least
from .kinds import Weigher
from .options import Options
from .rows import HostState, Request


class Column:
    """`weights` and `scores` are aligned with the candidates; `scores` is None when the weigher adds nothing."""

    def __init__(
        self,
        weigher: Weigher,
        hosts: t.Sequence[HostState],
        request: Request,
        options: Options,
        multipliers: list[float] | None = None,
    ) -> None:
        """`multipliers` has one for each host, when aggregates override the weigher's own."""
        self.weigher = weigher
        self.weights = self._weights(hosts, request, options)
        self.multipliers = multipliers
        self.scores: list[float] | None = None
        self._low = self._high = 0.0
        self._normalise()

    def _weights(self, hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
        weights, minimum = self.weigher.weigh(hosts, request, options), self.weigher.minimum
        if minimum is not None and weights and min(weights) < minimum:
            weights = [weight if weight > minimum else minimum for weight in weights]
        return weights

    def _normalise(self) -> None:
        """Find the bounds and compute all scores again, in Nova's own order of operations: the last bit counts."""
        weights, minimum = self.weights, self.weigher.minimum
        low = self._low = (min(weights) if minimum is None else minimum) if weights else 0.0
        high = self._high = max(weights) if weights else 0.0
        span = high - low
        if not span:
            self.scores = None
        elif self.multipliers is not None:
            self.scores = [by * ((weight - low) / span) for by, weight in zip(self.multipliers, weights)]
        elif self.weigher.multiplier == 1 and not low:  # most often; the same to the last bit
            self.scores = [weight / span for weight in weights]
        else:
            by = self.weigher.multiplier
            self.scores = [by * ((weight - low) / span) for weight in weights]

    def weigh_again(self, at: int, host: HostState, request: Request, options: Options) -> None:
        """The candidate at this position has changed."""
        before = self.weights[at]
        (after,) = self._weights([host], request, options)
        if after == before:
            return
        self.weights[at] = after
        if before in (self._low, self._high) or not self._low <= after <= self._high:
            self._normalise_if_bounds_moved(at)
        elif self.scores is not None:
            self._score_again(at)

    def _normalise_if_bounds_moved(self, at: int) -> None:
        low = self._low if self.weigher.minimum is not None else min(self.weights)
        if low == self._low and max(self.weights) == self._high:
            if self.scores is not None:
                self._score_again(at)
        else:
            self._normalise()

    def _score_again(self, at: int) -> None:
        by = self.weigher.multiplier if self.multipliers is None else self.multipliers[at]
        if self.scores is not None:
            self.scores[at] = by * ((self.weights[at] - self._low) / (self._high - self._low))

    def remove(self, at: int) -> None:
        """The candidate at this position is none any more."""
        gone = self.weights.pop(at)
        if self.multipliers is not None:
            del self.multipliers[at]
        if gone in (self._low, self._high):
            self._normalise()
        elif self.scores is not None:
            del self.scores[at]

    def keep(self, stay: t.Sequence[int]) -> None:
        """Keep only the candidates at these positions."""
        self.weights = [self.weights[at] for at in stay]
        if self.multipliers is not None:
            self.multipliers = [self.multipliers[at] for at in stay]
        self._normalise()


def columns_for(
    weighers: t.Iterable[Weigher], hosts: t.Sequence[HostState], request: Request, options: Options
) -> list[Column]:
    """List one column for each weigher that has something to say and counts."""
    memberships = filter(None, map(operator.attrgetter("aggregates"), hosts))
    aggregates = {id(member): member for members in memberships for member in members}
    overridden = {key for aggregate in aggregates.values() for key in aggregate.metadata}
    columns = []
    for weigher in weighers:
        if weigher.option in overridden:
            default = weigher.sign * weigher.multiplier
            multipliers = [weigher.sign * least(host, weigher.option, default, float) for host in hosts]
        elif weigher.multiplier:
            multipliers = None
        else:
            continue
        if weigher.concerns(request, options):
            columns.append(Column(weigher, hosts, request, options, multipliers))
    return columns
