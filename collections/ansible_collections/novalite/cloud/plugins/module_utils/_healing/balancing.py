# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns of balancing beside the watch: when one is due, what forbids it, whether its plan is told, and carried out."""

from __future__ import annotations

import dataclasses
import typing as t

from . import states
from .nouns import Clock, Lease

OFF, SUGGEST, ACT = "off", "suggest", "act"
MODES = (OFF, SUGGEST, ACT)
EVERY_S = 600  # between the beginnings of two turns
QUIET = frozenset((states.UP, states.EMPTY))  # of a host that is dead and empty, nothing is to come any more


@dataclasses.dataclass(frozen=True)
class Situation:
    """State of the cloud at a turn: the watch's lease, the states of its hosts, whether healing is `armed` for all of
    them, whether a `rolling` maintenance is under way, and how many servers are `moving` for the balance. `at` is when
    the last turn began, `plan` the one that was told last, "" for none."""

    lease: Lease | None
    states: t.Mapping[str, str]
    armed: bool = True
    rolling: bool = False
    moving: int = 0
    at: float = 0.0
    plan: str = ""

    @property
    def hosts(self) -> list[str]:
        """The hosts that may give and take: the watch heard of them just now."""
        return sorted(host for host, state in self.states.items() if state == states.UP)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """Judgement of a plan: whether it is told, whether its moves are made, and which plan counts as told after that."""

    tell: bool
    act: bool
    plan: str


def is_due(situation: Situation, clock: Clock, every_s: float) -> bool:
    """Tell whether the time of a turn has come; also when the clock was set back since the last one."""
    return not situation.at <= clock.now < situation.at + every_s


def hindrance(mode: str, situation: Situation, clock: Clock) -> str:
    """Return why the balance is left alone now, "" if it is not. Nothing moves where a host may have to be healed, or
    nobody would heal it."""
    lease = situation.lease
    if lease is None or lease.expires <= clock.now:
        return "nobody watches the hosts"
    if lease.owner != clock.controller:
        return f"{lease.owner} watches the hosts"
    if not situation.hosts:
        return "no host answers the watch"
    busy = sorted(host for host, state in situation.states.items() if state not in QUIET)
    if busy:
        return f"{busy[0]} is {situation.states[busy[0]]}"
    if situation.rolling:
        return "a rolling maintenance is under way"
    if situation.moving:
        return f"{situation.moving} servers still move for the balance"
    if mode == ACT and not situation.armed:
        return "healing is disarmed"
    return ""


def is_for_watch(mode: str, situation: Situation, clock: Clock) -> bool:
    """Tell whether a round of the watch is to take a turn. What moves servers has a run of its own: while they move,
    the watch has to go on looking at the hosts."""
    if mode == OFF:
        return bool(situation.plan)  # it is forgotten
    return mode == SUGGEST and is_due(situation, clock, EVERY_S) and not hindrance(mode, situation, clock)


def verdict(mode: str, plan: str, situation: Situation, clock: Clock) -> Verdict:
    """Judge the `plan` of a turn, "" for one without moves. One that is carried out is told each time, one that is
    suggested once, until it is another one."""
    if mode == OFF or not plan:
        return Verdict(False, False, "")
    if hindrance(mode, situation, clock):
        return Verdict(False, False, situation.plan)
    if mode == ACT:
        return Verdict(True, True, "")
    return Verdict(plan != situation.plan, False, plan)
