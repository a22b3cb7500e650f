# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves that would even out the load of the hosts. Proposals only; nothing here moves anything.

The load of a host is the mean of what is used of its cores, memory and disk, as far as they may be used. The score of
a cluster is the standard deviation of its hosts' loads: 0 when all are equally loaded (Ganeti's hbal has a like one).
Greedy: the move that lowers the score most, then the next, while it is worth it. Every move passes the same filters
as a launch.
"""

from __future__ import annotations

import dataclasses
import math
import typing as t

from . import plugins
from .options import Options
from .rows import HostState, Request

MAX_MOVES = 20
MIN_GAIN = 0.001
CONSIDERED = 50  # of the most, and of the least, loaded hosts


@dataclasses.dataclass(frozen=True)
class Placed:
    """An instance where it is. Its request's group, if any, is as the scheduler would be told of it."""

    request: Request
    host: str


@dataclasses.dataclass(frozen=True)
class Move:
    """Move of one instance from one host to another, with the cluster's score before and after."""

    uuid: str
    name: str
    source: str
    target: str
    before: float
    after: float


def load(host: HostState) -> float:
    """Return the load of a host: 0 empty, 1 full, by the mean of cores, memory and disk."""
    parts = [
        used / room
        for used, room in (
            (host.vcpus_used, (host.vcpus - host.reserved_vcpus) * host.cpu_ratio),
            (host.memory_mb_used, (host.memory_mb - host.reserved_memory_mb) * host.ram_ratio),
            (host.disk_gb_used, (host.disk_gb - host.reserved_disk_gb) * host.disk_ratio),
        )
        if room > 0
    ]
    return sum(parts) / len(parts) if parts else 1.0


def score(hosts: t.Iterable[HostState]) -> float:
    """The standard deviation of the loads."""
    loads = [load(host) for host in hosts]
    return _deviation(len(loads), sum(loads), sum(figure * figure for figure in loads))


def moves(
    hosts: t.Iterable[HostState],
    placed: t.Iterable[Placed],
    options: Options,
    max_moves: int = MAX_MOVES,
    min_gain: float = MIN_GAIN,
) -> list[Move]:
    """The moves to make, in their order. Hosts that are down or disabled neither give nor take."""
    return _Cluster(hosts, placed, options).balance(max_moves, min_gain)


class _Cluster:
    """The hosts and what is on them, as the moves so far would leave them."""

    def __init__(self, hosts: t.Iterable[HostState], placed: t.Iterable[Placed], options: Options) -> None:
        self.hosts = {host.name: host for host in hosts if host.up and host.enabled}
        self.placed = {instance.request.uuid: instance for instance in placed if instance.host in self.hosts}
        self.options = options
        # retry: where it once failed to be built it may run now
        self.filters = [filter_ for filter_ in plugins.filters_for(options) if filter_.name != "retry"]
        self.members: dict[str, dict[str, str]] = {}
        for instance in self.placed.values():
            if instance.request.group is not None:
                self.members.setdefault(instance.request.group.id, dict(instance.request.group.members))

    def balance(self, max_moves: int, min_gain: float) -> list[Move]:
        planned: list[Move] = []
        while len(planned) < max_moves:
            move = self._best(min_gain)
            if move is None:
                break
            self._make(move)
            planned.append(move)
        return planned

    def _best(self, min_gain: float) -> Move | None:
        """The allowed move that lowers the score most, if by `min_gain`; by name among equals."""
        loads = {name: load(host) for name, host in self.hosts.items()}
        count, total, squares = len(loads), sum(loads.values()), sum(figure * figure for figure in loads.values())
        now = _deviation(count, total, squares)
        ranked = sorted(loads, key=lambda name: (loads[name], name))
        targets, sources = ranked[:CONSIDERED], set(ranked[-CONSIDERED:])
        candidates = []
        for uuid, instance in self.placed.items():
            if instance.host not in sources:
                continue
            lighter = load(_without(self.hosts[instance.host], instance.request))
            for target in targets:
                if loads[target] >= loads[instance.host]:
                    break  # no gain from here on: they are in the order of their loads
                heavier = load(self.hosts[target].after(instance.request))
                moved = total - loads[instance.host] - loads[target] + lighter + heavier
                moved_squares = squares - loads[instance.host] ** 2 - loads[target] ** 2 + lighter**2 + heavier**2
                then = _deviation(count, moved, moved_squares)
                if now - then >= min_gain:
                    candidates.append((then, instance.request.name, target, uuid))
        for then, name, target, uuid in sorted(candidates):
            if self._allowed(self.placed[uuid], target):
                return Move(uuid, name, self.placed[uuid].host, target, now, then)
        return None

    def _allowed(self, placed: Placed, target: str) -> bool:
        request, host = placed.request, self.hosts[target]._replace(num_io_ops=0)
        if request.group is not None:
            others = {uuid: at for uuid, at in self.members[request.group.id].items() if uuid != request.uuid}
            request = dataclasses.replace(request, group=dataclasses.replace(request.group, members=others))
        return all(
            check.passes(host, request, self.options) is None
            for check in self.filters
            if check.concerns(request, self.options)
        )

    def _make(self, move: Move) -> None:
        request = self.placed[move.uuid].request
        self.hosts[move.source] = _without(self.hosts[move.source], request)
        self.hosts[move.target] = self.hosts[move.target].after(request)
        self.placed[move.uuid] = Placed(request, move.target)
        if request.group is not None:
            self.members[request.group.id][move.uuid] = move.target


def _without(host: HostState, request: Request) -> HostState:
    instances = {uuid: instance for uuid, instance in host.instances.items() if uuid != request.uuid}
    return host.with_more(request, -1, instances=instances)


def _deviation(count: int, total: float, squares: float) -> float:
    if not count:
        return 0.0
    mean = total / count
    return math.sqrt(max(0.0, squares / count - mean * mean))
