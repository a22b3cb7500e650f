# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Choose a host for each request: filters, then a ranking, then the claim that the next request sees."""

from __future__ import annotations

import dataclasses
import operator
import random
import typing as t

from .._errors import NovaliteError
from . import plugins
from .candidates import Candidates
from .choices import CHOICES, Choice, best
from .explain import Decision, FilterStep, WeighedHost, no_valid_host
from .kinds import Filter, Weigher
from .options import Options
from .rows import Group, HostState, Request

EXPLAINED_HOSTS = 10  # how many of the best a decision describes
MAX_ATTEMPTS = 3  # Nova's scheduler.max_attempts: the first host and two alternates


def select(
    hosts: t.Iterable[HostState],
    requests: t.Iterable[Request],
    choice: str = "simple",
    rng: random.Random | None = None,
    host_subset_size: int | None = None,
    max_attempts: int = MAX_ATTEMPTS,
    filters: t.Sequence[Filter] | None = None,
    weighers: t.Sequence[Weigher] | None = None,
    options: Options | None = None,
    explained_hosts: int = EXPLAINED_HOSTS,
) -> list[Decision]:
    """A decision for each request, in their order; each is made on the hosts as the ones before left them.

    `choice` is simple, chance, zone or filter_scheduler. The best host wins, the earlier name among equals; with
    `host_subset_size` n (else the option) it is drawn from the n best (Nova: fewer collisions between schedulers).
    `max_attempts` less one and less the attempts made before is how many alternates a decision names. `filters` and
    `weighers` take the place of those that the options enable. `explained_hosts` of the best are described in a
    decision. The hosts given are not changed. Raises NovaliteError for an unknown choice, option or expression.
    """
    options = options or Options()
    rank = CHOICES.get(choice)
    if rank is None:
        raise NovaliteError(f"there is no scheduler choice {choice!r}; take one of: {', '.join(CHOICES)}")
    selection = _Selection(
        # by name, so that "the earlier name" is "the lower index"
        sorted(hosts, key=operator.attrgetter("name")),
        rank,
        plugins.filters_for(options) if filters is None else plugins.in_running_order(filters),
        () if not rank.uses_weighers else plugins.weighers_for(options) if weighers is None else weighers,
        options if host_subset_size is None else dataclasses.replace(options, host_subset_size=host_subset_size),
        rng or random.Random(),
    )
    return [
        selection.decide(request, max_attempts - 1 - len(request.ignore_hosts), explained_hosts) for request in requests
    ]


class _Selection:
    """The hosts, the groups and the examinations of one call, as the choices so far have left them."""

    def __init__(
        self,
        hosts: list[HostState],
        rank: Choice,
        filters: t.Sequence[Filter],
        weighers: t.Sequence[Weigher],
        options: Options,
        rng: random.Random,
    ) -> None:
        self.hosts, self.rank, self.filters, self.weighers = hosts, rank, filters, weighers
        self.options, self.rng = options, rng
        self.chosen: list[int] = []  # the host of each choice so far
        self.groups: dict[str, Group] = {}
        self.examinations: dict[t.Hashable, tuple[Candidates, int]] = {}  # with how many of `chosen` it has seen

    def decide(self, request: Request, alternates: int, explained: int) -> Decision:
        """A host for this request, which it then has in what later requests see."""
        if request.group is not None:
            group = self.groups.setdefault(request.group.id, request.group)
            request = dataclasses.replace(request, group=group)
        seen = self._candidates(request)
        decision = Decision(request, self.rank.name, len(self.hosts), _steps(seen))
        if not seen.passed:
            return dataclasses.replace(decision, message=no_valid_host(decision))
        scores = self.rank.scores(seen, self.rng)
        options, hosts, passed = self.options, self.hosts, seen.passed
        subset = min(max(1, options.host_subset_size), len(passed))
        order = best(scores, max(explained, subset, alternates + 1))
        if options.shuffle_best_same_weighed_hosts:
            # all that are as good as the best; those first `order` names do not suffice
            same = [at for at, score in enumerate(scores) if score == scores[order[0]]]
            self.rng.shuffle(same)
            order = (same + [at for at in order if scores[at] != scores[order[0]]])[: max(len(order), subset)]
        winner = order[self.rng.randrange(subset) if subset > 1 else 0]
        others = [hosts[passed[at]].name for at in order if at != winner]
        weighed = tuple(
            WeighedHost(host.name, scores[at], self.rank.details(seen, at, scores[at]), host.others_in_words)
            for at in order[:explained]
            for host in [hosts[passed[at]]]
        )
        index = passed[winner]
        self._claim(request, index)
        numa = hosts[index].claims.get(request.uuid)
        if request.numa is not None and numa is None:
            raise NovaliteError(
                f"{request.name!r} asks for CPUs, NUMA nodes or pages of its own, which enabled_filters leave out of "
                "account: add numa_topology to them"
            )
        return decision.with_host(hosts[index].name, tuple(others[: max(0, alternates)]), weighed, numa)

    def _candidates(self, request: Request) -> Candidates:
        likeness = request.likeness()
        known = self.examinations.get(likeness)
        if known is None:
            seen = Candidates(self.hosts, request, self.filters, self.weighers, self.options)
        else:
            seen, upto = known
            seen.examined_again(request, self.chosen[upto:])
        self.examinations[likeness] = (seen, len(self.chosen))
        return seen

    def _claim(self, request: Request, index: int) -> None:
        host = self.hosts[index] = self.hosts[index].after(request)
        self.chosen.append(index)
        if request.group is not None:
            self.groups[request.group.id] = request.group.with_member(request.uuid, host.name)


def _steps(seen: Candidates) -> tuple[FilterStep, ...]:
    steps, start = [], len(seen.hosts)
    for filter_, removed in zip(seen.filters, seen.removed):
        end = start - len(removed)
        steps.append(FilterStep(filter_.name, start, end, removed))
        start = end
    return tuple(steps)
