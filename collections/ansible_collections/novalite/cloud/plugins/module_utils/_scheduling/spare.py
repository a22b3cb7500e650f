# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spare room for the death of any one host (N+1), kept while guests move.

Asking `reserve` about every host for every move would take minutes. Most hosts need no question: where each of the
others would take so many guests of the largest size that there are more than enough such places, any order of placing
them ends well.
"""

from __future__ import annotations

import dataclasses
import math
import typing as t

from . import plugins, reserve
from .balance_placed import Placed
from .options import Options
from .rows import AMOUNTS, HostState, Request

_ROOMS = tuple(f"{name}_room" for name in AMOUNTS)


class Spare:
    """Count of guests that would find no room if their host died."""

    def __init__(self, options: Options) -> None:
        self._options = options
        # refusals that no move of a guest changes
        self._lasting = [filter_ for filter_ in plugins.filters_for(options) if filter_.once]
        self._refusals: dict[t.Hashable, frozenset[str]] = {}

    def stranded(
        self,
        hosts: t.Mapping[str, HostState],
        guests: t.Mapping[str, t.Sequence[Placed]],
        asks: t.Callable[[Placed], Request],
    ) -> dict[str, int]:
        """Return, by host, how many of its guests no other host would take. Hosts that lose none are left out.

        `asks` returns the request of a guest as it is now, with the members of its group where they are.
        """
        everybody = [guest.request for placed in guests.values() for guest in placed]
        if not everybody:
            return {}
        rooms = {name: [getattr(host, room) for room in _ROOMS] for name, host in hosts.items()}
        places = _places(rooms, everybody)
        in_all = sum(places.values())
        lost = {}
        for name, placed in guests.items():
            requests = [guest.request for guest in placed]
            refusing = self._refusing(hosts, requests)
            if refusing is not None:
                if in_all - places.get(name, 0) - sum(places[other] for other in refusing) >= len(requests):
                    continue
                own = _places({other: room for other, room in rooms.items() if other not in refusing}, requests)
                if sum(own.values()) - own.get(name, 0) >= len(requests):
                    continue
            now = [dataclasses.replace(guest, request=asks(guest), host=name) for guest in placed]
            count = sum(len(loss.stranded) for loss in reserve.losses(hosts.values(), now, {}, self._options))
            if count:
                lost[name] = count
        return lost

    def _refusing(self, hosts: t.Mapping[str, HostState], requests: t.Iterable[Request]) -> frozenset[str] | None:
        """The hosts that would refuse one of the requests whatever room they have; None where one guest's place decides
        about another's: server groups, CPUs and pages of their own."""
        refusing: frozenset[str] = frozenset()
        for request in requests:
            if request.group is not None or request.numa is not None or request.hints:
                return None
            likeness = request.likeness()
            if likeness not in self._refusals:
                self._refusals[likeness] = frozenset(
                    name for name, host in hosts.items() if self._refused(host, request)
                )
            refusing |= self._refusals[likeness]
        return refusing

    def _refused(self, host: HostState, request: Request) -> bool:
        return any(
            filter_.passes(host, request, self._options) is not None
            for filter_ in self._lasting
            if filter_.concerns(request, self._options)
        )


def _places(rooms: t.Mapping[str, t.Sequence[float]], requests: t.Sequence[Request]) -> dict[str, int]:
    """Return, by host, for how many requests of the largest size there is room."""
    largest = [max(getattr(request, name) for request in requests) for name in AMOUNTS]
    return {
        name: max(0, min((math.floor(has / most) for has, most in zip(room, largest) if most), default=len(requests)))
        for name, room in rooms.items()
    }
