# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts as requests of one likeness see them: who passed, who was refused by what, and what they weigh.

Examined once, then kept up to date: a choice changes one host, so one host is examined again. That is why 100
instances on 1,000 hosts cost little more than one (Nova filters, weighs and logs all hosts again for each).
"""

from __future__ import annotations

import bisect
import itertools
import typing as t

from .columns import columns_for
from .kinds import Filter, Weigher
from .options import Options
from .rows import HostState, Request


class Candidates:
    """The state of one examination. `hosts` is shared with the selection, which replaces a host that was chosen."""

    def __init__(
        self,
        hosts: list[HostState],
        request: Request,
        filters: t.Sequence[Filter],
        weighers: t.Sequence[Weigher],
        options: Options,
    ) -> None:
        self.hosts = hosts
        self.request = request
        self.options = options
        self.filters = filters  # in running order: those that run once first
        # per filter: the names it refused, and why; never changed in place, since explanations hold on to it
        self.removed: list[dict[str, str]] = [{} for _filter in filters]
        self.passed = list(range(len(hosts)))  # which of `hosts` passed, ascending
        concerned_filters = [numbered for numbered in enumerate(filters) if numbered[1].concerns(request, options)]
        candidates = self._run(concerned_filters, list(hosts))
        self._again = [numbered for numbered in concerned_filters if not numbered[1].once]
        self._around = [numbered for numbered in self._again if numbered[1].looks_around]
        self.columns = columns_for(weighers, candidates, request, options) if candidates else []

    def _run(self, filters: t.Iterable[tuple[int, Filter]], hosts: list[HostState]) -> list[HostState]:
        """Ask these filters about every host that is left, `hosts`; return those that are left then."""
        request, options = self.request, self.options
        for position, filter_ in filters:
            if filter_.refused is not None:
                refused = {
                    at: filter_.passes(hosts[at], request, options) for at in filter_.refused(hosts, request, options)
                }
            else:
                passes = filter_.passes
                reasons = [passes(host, request, options) for host in hosts]
                if reasons.count(None) == len(reasons):
                    continue
                refused = {at: reason for at, reason in enumerate(reasons) if reason is not None}
            if refused:
                self._refuse(position, {hosts[at].name: str(reason) for at, reason in refused.items()})
                stay = bytearray(b"\1") * len(hosts)
                for at in refused:
                    stay[at] = 0
                self.passed = list(itertools.compress(self.passed, stay))
                hosts = list(itertools.compress(hosts, stay))
        return hosts

    def examined_again(self, request: Request, changed: t.Iterable[int]) -> None:
        """Take note that these hosts have claimed something since the last look; `request` is of the same likeness."""
        self.request = request
        changed = set(changed)
        for i in changed:
            self._examine_one(i)
        if changed and self._around:
            before = self.passed
            self._run(self._around, [self.hosts[i] for i in before])
            if len(self.passed) < len(before):
                left = set(self.passed)
                stay = [at for at, i in enumerate(before) if i in left]
                for column in self.columns:
                    column.keep(stay)

    def _examine_one(self, i: int) -> None:
        host = self.hosts[i]
        at = bisect.bisect_left(self.passed, i)
        passed = at < len(self.passed) and self.passed[at] == i
        if not passed and not self._forget_refusal(host.name):
            return  # refused by what claims do not concern
        for position, filter_ in self._again:
            reason = filter_.passes(host, self.request, self.options)
            if reason is not None:
                self._refuse(position, {host.name: reason})
                if passed:
                    del self.passed[at]
                    for column in self.columns:
                        column.remove(at)
                return
        for column in self.columns:
            column.weigh_again(at, host, self.request, self.options)

    def _refuse(self, position: int, reasons: t.Mapping[str, str]) -> None:
        """Add to what a filter refused, in the order of the hosts' names, whenever each of them was refused."""
        self.removed[position] = dict(sorted({**self.removed[position], **reasons}.items()))

    def _forget_refusal(self, name: str) -> bool:
        """True when a filter that is asked again had refused this host.

        What was claimed since makes no room, but another filter may be the first to refuse it now, or the same one
        with other figures: an explanation tells of the host as it is.
        """
        for position, _filter in self._again:
            if name in self.removed[position]:
                self.removed[position] = {key: why for key, why in self.removed[position].items() if key != name}
                return True
        return False
