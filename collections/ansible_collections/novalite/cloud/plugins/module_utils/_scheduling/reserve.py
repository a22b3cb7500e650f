# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reserve for the death of a host: where its guests would find room among the others, and which would find none.

They are placed as a launch would place them, by the same filters, the largest first. Filters whose refusal passes are
left out: a host bears only so many builds at a time, but they follow one another.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from .._model.plain_text import natural
from . import plugins
from .balance_placed import Placed
from .options import Options
from .rows import HostState, Request
from .select import select

PASSING = ("retry", "io_ops", "aggregate_io_ops")  # filters whose refusal is over in a while


@dataclasses.dataclass(frozen=True)
class Stranded:
    """Instance that no other host would take, with the scheduler's reason."""

    uuid: str
    name: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Loss:
    """Consequence of the death of `host`: how many of its instances each other host would take, and who is left."""

    host: str
    instances: int
    takers: t.Mapping[str, int]
    stranded: tuple[Stranded, ...]


def losses(
    hosts: t.Iterable[HostState],
    placed: t.Iterable[Placed],
    bound: t.Mapping[str, t.Sequence[Stranded]],
    options: Options,
) -> list[Loss]:
    """The loss of each host that has instances, alone, in natural order. A host that is down or disabled takes nobody.

    `bound` has, by host, those that cannot go to another one, whatever room there is.
    """
    states = list(hosts)
    of_host: dict[str, list[Request]] = collections.defaultdict(list)
    for instance in placed:
        of_host[instance.host].append(instance.request)
    filters = [filter_ for filter_ in plugins.filters_for(options) if filter_.name not in PASSING]
    lost = []
    for host in sorted({*of_host, *bound}, key=natural):
        requests = sorted((_without(request, host) for request in of_host.get(host, ())), key=_size, reverse=True)
        others = [state for state in states if state.name != host]
        decisions = select(others, requests, "filter_scheduler", filters=filters, options=options, explained_hosts=1)
        takers = collections.Counter(decision.host for decision in decisions if decision.host is not None)
        stranded = [
            *bound.get(host, ()),
            *(
                Stranded(decision.request.uuid, decision.request.name, decision.message)
                for decision in decisions
                if decision.host is None
            ),
        ]
        count = len(requests) + len(bound.get(host, ()))
        lost.append(
            Loss(host, count, dict(sorted(takers.items(), key=lambda taker: natural(taker[0]))), tuple(stranded))
        )
    return lost


def _without(request: Request, host: str) -> Request:
    """Return the request after the death of `host`: of its server group, only members on other hosts are left."""
    if request.group is None:
        return request
    return dataclasses.replace(request, group=request.group.without(host=host))


def _size(request: Request) -> tuple[int, int, int, str]:
    return request.memory_mb, request.vcpus, request.disk_gb, request.uuid
