# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Choose a host for each request: filters, then a ranking, then the claim that the next request sees."""

from __future__ import annotations

import heapq
import random
import typing as t

from . import plugins
from .candidates import Examined
from .explain import Decision, FilterStep, WeighedHost, no_valid_host
from .rows import HostState, Request

EXPLAINED_HOSTS = 10  # how many of the best a decision describes
MAX_ATTEMPTS = 3  # Nova's scheduler.max_attempts: the first host and two alternates


def select(
    hosts: t.Iterable[HostState],
    requests: t.Iterable[Request],
    choice: str = "simple",
    rng: random.Random | None = None,
    host_subset_size: int = 1,
    max_attempts: int = MAX_ATTEMPTS,
    filters: t.Sequence[plugins.Filter] | None = None,
    weighers: t.Sequence[plugins.Weigher] | None = None,
) -> list[Decision]:
    """A decision for each request, in their order; each is made on the hosts as the ones before left them.

    `choice` is simple, chance, zone or filter_scheduler. The best host wins, the earlier name among equals; with
    `host_subset_size` n it is drawn from the n best (Nova: fewer collisions between schedulers). `max_attempts`
    less one and less the attempts made before is how many alternates a decision names. The hosts given are not
    changed. Raises NovaliteError for an unknown choice.
    """
    rank = plugins.choice_named(choice)
    rng = rng or random.Random()
    state = sorted(hosts, key=lambda host: host.name)  # so that "the earlier name" is "the lower index"
    use_filters = plugins.default_filters() if filters is None else plugins.in_running_order(filters)
    use_weighers: t.Sequence[plugins.Weigher] = ()
    if rank.USES_WEIGHERS:
        use_weighers = plugins.default_weighers() if weighers is None else weighers

    chosen: list[int] = []  # the host of each choice so far
    examinations: dict[t.Hashable, tuple[Examined, int]] = {}  # with how many of `chosen` it has seen
    decisions = []
    for request in requests:
        likeness = request.likeness()
        known = examinations.get(likeness)
        if known is None:
            seen = Examined(state, request, use_filters, use_weighers)
        else:
            seen, upto = known
            seen.examined_again(chosen[upto:])
        examinations[likeness] = (seen, len(chosen))
        alternates = max(0, max_attempts - 1 - len(request.ignore_hosts))
        winner, decision = _decide(request, seen, rank, rng, max(1, host_subset_size), alternates)
        decisions.append(decision)
        if winner is not None:
            state[winner] = state[winner].after(request)
            chosen.append(winner)
    return decisions


def _decide(
    request: Request,
    seen: Examined,
    rank: plugins.Choice,
    rng: random.Random,
    subset: int,
    alternates: int,
) -> tuple[int | None, Decision]:
    decision = Decision(request, rank.NAME, len(seen.hosts), _steps(seen), None, (), ())
    if not seen.passed:
        return None, decision.without_host(no_valid_host(decision))
    scores = rank.scores(seen, rng)
    # equal scores stay in the order of the names: nlargest is as stable as a reversed sort
    best = heapq.nlargest(max(EXPLAINED_HOSTS, subset, alternates + 1), range(len(scores)), key=scores.__getitem__)
    at = best[rng.randrange(min(subset, len(best)))] if subset > 1 else best[0]
    hosts, passed = seen.hosts, seen.passed
    others = [hosts[passed[position]].name for position in best if position != at]
    weighed = tuple(
        WeighedHost(hosts[passed[position]].name, scores[position], rank.details(seen, position, scores[position]))
        for position in best[:EXPLAINED_HOSTS]
    )
    return passed[at], decision.with_host(hosts[passed[at]].name, tuple(others[:alternates]), weighed)


def _steps(seen: Examined) -> tuple[FilterStep, ...]:
    steps, start = [], len(seen.hosts)
    for one, removed in zip(seen.filters, seen.removed):
        end = start - len(removed)
        steps.append(FilterStep(one.name, start, end, removed))
        start = end
    return tuple(steps)
