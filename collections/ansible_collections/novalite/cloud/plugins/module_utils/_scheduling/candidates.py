# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The hosts as requests of one likeness see them: who passed, who was refused by what, and the raw weights.

Examined once, then kept up to date: a choice changes one host, so one host is examined again. That is why 100
instances on 1,000 hosts cost little more than one (Nova filters, weighs and logs all hosts again for each).
"""

from __future__ import annotations

import bisect
import typing as t

from .plugins import Filter, Weigher
from .rows import HostState, Request


class Examined:
    """The state of one examination. `hosts` is shared with the selection, which replaces a host that was chosen."""

    def __init__(
        self, hosts: list[HostState], request: Request, filters: t.Sequence[Filter], weighers: t.Sequence[Weigher]
    ) -> None:
        self.hosts = hosts
        self.request = request
        self.filters = filters  # in running order: those that run once first
        self.weighers = weighers
        self.once = sum(1 for one in filters if one.once)
        # per filter: the names it refused, and why; never changed in place, since explanations hold on to it
        self.removed: list[dict[str, str]] = [{} for _filter in filters]
        self.static = self._run(list(range(len(hosts))), 0, self.once)
        self.passed: list[int] = []
        self.weights: list[list[float]] = []
        self.examined_again(None)

    def _run(self, indices: list[int], first: int, last: int) -> list[int]:
        hosts, request = self.hosts, self.request
        for position in range(first, last):
            passes, stay, removed = self.filters[position].passes, [], {}
            for i in indices:
                reason = passes(hosts[i], request)
                if reason is None:
                    stay.append(i)
                else:
                    removed[hosts[i].name] = reason
            self.removed[position] = removed
            indices = stay
        return indices

    def examined_again(self, changed: t.Iterable[int] | None) -> None:
        """Take note that these hosts (None: all) have claimed something since the last look."""
        if changed is None or any(one.looks_around for one in self.filters[self.once :]):
            self.passed = self._run(self.static, self.once, len(self.filters))
            self.weights = [[one.weigh(self.hosts[i], self.request) for i in self.passed] for one in self.weighers]
            return
        for i in set(changed):
            self._examine_one(i)

    def _examine_one(self, i: int) -> None:
        at = bisect.bisect_left(self.passed, i)
        if at == len(self.passed) or self.passed[at] != i:
            return  # refused already, and what was claimed since cannot make room
        host = self.hosts[i]
        for position in range(self.once, len(self.filters)):
            reason = self.filters[position].passes(host, self.request)
            if reason is not None:
                self.removed[position] = {**self.removed[position], host.name: reason}
                del self.passed[at]
                for weights in self.weights:
                    del weights[at]
                return
        for weigher, weights in zip(self.weighers, self.weights):
            weights[at] = weigher.weigh(host, self.request)
