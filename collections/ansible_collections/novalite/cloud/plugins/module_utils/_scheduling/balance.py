# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves that would even out the load of the hosts. Decisions only: nothing here moves anything.

The move that lowers the score most comes first, then the next, while it is worth it; of equal ones, that which sends
least. Every move passes the filters of a launch, leaves the target within its limits by the measured peaks, and takes
nobody's way out: where the other hosts had room for the guests of a host that dies, they have it still.
"""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from . import plugins
from .balance_placed import Peak, Placed
from .balance_score import Amounts, Board, Candidate
from .options import Options
from .rows import HostState, Request
from .spare import Spare

TRIED = 500  # moves that are refused, before it is believed that none is left


@dataclasses.dataclass(frozen=True)
class Rules:
    """Bounds of a plan. Under the score `enough`, a move must lower it by `min_gain`, as with hbal; over it, by
    `least_gain`. `max_mib` bounds what all moves send; no move goes to a host with a pressure over `max_pressure`."""

    max_moves: int = 20
    min_gain: float = 0.01
    enough: float = 0.1
    least_gain: float = 0.0001
    max_mib: int | None = None
    max_pressure: float = 0.2


@dataclasses.dataclass(frozen=True)
class Move:
    """Move of one instance from one host to another, with the cluster's score before and after, and what it sends."""

    uuid: str
    name: str
    source: str
    target: str
    before: float
    after: float
    moved_mib: int = 0

    @property
    def why(self) -> str:
        """The use of the move, in one line for a person."""
        lower = f"the score falls from {self.before:.4f} to {self.after:.4f}"
        return f"{self.source} is fuller than {self.target}: {lower}, at most {self.moved_mib} MiB are sent"


def score(hosts: t.Iterable[HostState], placed: t.Iterable[Placed] = ()) -> float:
    """Return the score of the hosts that are up and enabled: 0 when all are equally loaded."""
    there, guests = _in_service(hosts, placed)
    return _board(there, guests).score


def moves(
    hosts: t.Iterable[HostState],
    placed: t.Iterable[Placed],
    options: Options,
    rules: Rules | None = None,
    peaks: t.Mapping[str, Peak] | None = None,
) -> list[Move]:
    """Return the moves to make, in their order. Hosts that are down or disabled neither give nor take.

    `peaks` has, by host, what was measured of it, guests and everything else together.
    """
    return _Cluster(hosts, placed, options, peaks or {}).balance(rules or Rules())


class _Cluster:
    """The hosts and what is on them, as the moves so far would leave them."""

    def __init__(
        self, hosts: t.Iterable[HostState], placed: t.Iterable[Placed], options: Options, peaks: t.Mapping[str, Peak]
    ) -> None:
        placed = list(placed)
        self.hosts, self.guests = _in_service(hosts, placed)
        groups = [guest.request.group for guests in self.guests.values() for guest in guests]
        self.members = {group.id: dict(group.members) for group in groups if group is not None}
        self.options, self.peaks, self.spare = options, dict(peaks), Spare(options)
        # retry: where it once failed to be built it may run now
        self.filters = [filter_ for filter_ in plugins.filters_for(options) if filter_.name != "retry"]
        self.board = _board(self.hosts, self.guests)
        self.order = {guest.request.uuid: at for at, guest in enumerate(placed)}
        self.stranded = self._ask_who_is_stranded()

    def balance(self, rules: Rules) -> list[Move]:
        planned: list[Move] = []
        sent = 0
        while len(self.hosts) > 1 and len(planned) < rules.max_moves:
            chosen = self._best(rules, sent)
            if chosen is None:
                break
            planned.append(chosen)
            sent += chosen.moved_mib
        return planned

    def _best(self, rules: Rules, sent: int) -> Move | None:
        """Make the best move that is allowed, and return it; None where no move is worth it."""
        now = self.board.score
        gain = rules.min_gain if now < rules.enough else rules.least_gain
        kinds = {name: _kinds(guests) for name, guests in self.guests.items()}
        ranks = {
            name: {
                amounts: (guests[0].moved_mib, self.order[guests[0].request.uuid]) for amounts, guests in kind.items()
            }
            for name, kind in kinds.items()
        }
        tried = 0
        for candidate in self.board.candidates(ranks, now - gain):
            for guest in kinds[candidate.source][candidate.amounts]:
                tried += 1
                if tried > TRIED:
                    return None
                fits = rules.max_mib is None or sent + guest.moved_mib <= rules.max_mib
                if fits and self._allowed(guest, candidate.target, rules) and self._make(guest, candidate):
                    name, way = guest.request.name, (candidate.source, candidate.target)
                    return Move(guest.request.uuid, name, *way, now, self.board.score, guest.moved_mib)
        return None

    def _allowed(self, guest: Placed, target: str, rules: Rules) -> bool:
        host, peak = self.hosts[target], self.peaks.get(target)
        if peak is not None:
            more = guest.peak or Peak(guest.request.vcpus, guest.request.memory_mb)
            if (
                peak.pressure > rules.max_pressure
                or peak.cores + more.cores > host.vcpus - host.reserved_vcpus
                or peak.memory_mb + more.memory_mb > host.memory_mb - host.reserved_memory_mb
            ):
                return False
        host, request = host._replace(num_io_ops=0), self._request(guest)
        return all(
            check.passes(host, request, self.options) is None
            for check in self.filters
            if check.concerns(request, self.options)
        )

    def _request(self, guest: Placed) -> Request:
        """Return the request of the guest, with the other members of its group where they are by now."""
        group = guest.request.group
        if group is None:
            return guest.request
        now = dataclasses.replace(group, members=self.members[group.id]).without([guest.request.uuid])
        return dataclasses.replace(guest.request, group=now)

    def _make(self, guest: Placed, candidate: Candidate) -> bool:
        """Move the guest; undo it where a host's death would then strand guests that have a way out. Tells which."""
        self._move(guest, candidate.source, candidate.target)
        lost, before = self._ask_who_is_stranded(), self.stranded
        if set(lost) <= set(before) and sum(lost.values()) <= sum(before.values()):
            self.stranded = lost
            self.board.move(candidate.source, candidate.target, candidate.amounts)
            return True
        self._move(guest, candidate.target, candidate.source)
        return False

    def _move(self, guest: Placed, source: str, target: str) -> None:
        request = guest.request
        self.hosts[source] = _without(self.hosts[source], request)
        self.hosts[target] = self.hosts[target].after(request)
        self.guests[source] = [each for each in self.guests[source] if each.request.uuid != request.uuid]
        self.guests[target].append(dataclasses.replace(guest, host=target))
        if request.group is not None:
            self.members[request.group.id][request.uuid] = target
        for name, sign in ((source, -1), (target, 1)):
            if guest.peak is not None and name in self.peaks:
                at = self.peaks[name]
                cores, memory_mb = at.cores + sign * guest.peak.cores, at.memory_mb + sign * guest.peak.memory_mb
                self.peaks[name] = dataclasses.replace(at, cores=cores, memory_mb=memory_mb)

    def _ask_who_is_stranded(self) -> dict[str, int]:
        """Return, by host, how many of its guests would find no room if it died."""
        return self.spare.stranded(self.hosts, self.guests, self._request)


def _in_service(
    hosts: t.Iterable[HostState], placed: t.Iterable[Placed]
) -> tuple[dict[str, HostState], dict[str, list[Placed]]]:
    there = {host.name: host for host in hosts if host.up and host.enabled}
    guests: dict[str, list[Placed]] = {name: [] for name in there}
    for guest in placed:
        if guest.host in there:
            guests[guest.host].append(guest)
    return there, guests


def _board(hosts: t.Mapping[str, HostState], guests: t.Mapping[str, t.Iterable[Placed]]) -> Board:
    used = {}
    for name, host in hosts.items():
        busy = sum(guest.peak.cores for guest in guests[name] if guest.peak is not None)
        used[name] = (host.vcpus_used, host.memory_mb_used, host.disk_gb_used, busy)
    return Board({name: _totals(host) for name, host in hosts.items()}, used)


def _totals(host: HostState) -> Amounts:
    return (host.vcpus, host.memory_mb, host.disk_gb, host.vcpus)


def _amounts(guest: Placed) -> Amounts:
    request = guest.request
    return (request.vcpus, request.memory_mb, request.disk_gb, guest.peak.cores if guest.peak else 0.0)


def _without(host: HostState, request: Request) -> HostState:
    instances = {uuid: instance for uuid, instance in host.instances.items() if uuid != request.uuid}
    return host.with_more(request, -1, instances=instances)


def _kinds(guests: t.Iterable[Placed]) -> dict[Amounts, list[Placed]]:
    """The guests that may move, by what they take; of equal ones, those that send least come first."""
    kinds: dict[Amounts, list[Placed]] = collections.defaultdict(list)
    for guest in sorted(guests, key=lambda guest: guest.moved_mib):
        if not guest.fixed:
            kinds[_amounts(guest)].append(guest)
    return kinds
