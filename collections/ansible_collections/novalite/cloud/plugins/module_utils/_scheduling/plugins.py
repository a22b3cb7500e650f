# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The scheduler's plug-ins: filters, weighers and choices, each a file of its own.

A **filter** (`filters/<name>.py`) is a module with
    NAME                      as it stands in the configuration and in explanations
    RUN_ONCE_PER_REQUEST      true: what earlier choices of this call claimed cannot change its answer
    LOOKS_AT_OTHER_HOSTS      true: a choice changes its answer for other hosts than the chosen one, too (affinity)
    passes(host, request)     None, or why the host is refused, worded to follow the host's name
A **weigher** (`weighers/<name>.py`) has NAME, MULTIPLIER (negative: pack) and weigh(host, request) -> float.
A **choice** (`choices/<name>.py`) has NAME, USES_WEIGHERS, scores(candidates, rng) and
    details(candidates, position, score), which tells what a score was made of.

They are plain functions of plain values: no state, no logging, no input or output. A new one is a file and its line
in the table below; nothing else knows them by name.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .._errors import NovaliteError
from .choices import chance, filter_scheduler, simple, zone
from .filters import availability_zone, compute, disk, image_properties, ram, requested_host, retry, vcpu
from .rows import HostState, Request
from .weighers import cpu as cpu_weigher
from .weighers import disk as disk_weigher
from .weighers import ram as ram_weigher

_FILTERS = (retry, requested_host, compute, availability_zone, image_properties, vcpu, ram, disk)
_WEIGHERS = (cpu_weigher, ram_weigher, disk_weigher)
_CHOICES = (simple, chance, zone, filter_scheduler)


@dataclasses.dataclass(frozen=True)
class Filter:
    """One filter, read out of its module once, so that loops touch no module attributes."""

    name: str
    passes: t.Callable[[HostState, Request], t.Optional[str]]
    once: bool = False
    looks_around: bool = False


@dataclasses.dataclass(frozen=True)
class Weigher:
    """One weigher with the multiplier in force."""

    name: str
    weigh: t.Callable[[HostState, Request], float]
    multiplier: float = 1.0


class Candidates(t.Protocol):
    """What a choice sees: the hosts that passed, in the order of their names, and their raw weights."""

    hosts: list[HostState]  # every host that was asked about
    passed: list[int]  # which of `hosts` passed, ascending
    weighers: t.Sequence[Weigher]
    weights: list[list[float]]  # per weigher, aligned with `passed`


class Choice(t.Protocol):
    """One way to rank what passed. A higher score is better; the earlier name wins a tie."""

    NAME: str
    USES_WEIGHERS: bool

    def scores(self, candidates: t.Any, rng: t.Any) -> t.Sequence[t.Any]: ...

    def details(self, candidates: t.Any, position: int, score: t.Any) -> dict[str, float]: ...


def default_filters() -> list[Filter]:
    """Every filter, those that run once per request first: they leave fewer hosts to ask again and again."""
    filters = [Filter(f.NAME, f.passes, f.RUN_ONCE_PER_REQUEST, f.LOOKS_AT_OTHER_HOSTS) for f in _FILTERS]
    return in_running_order(filters)


def in_running_order(filters: t.Iterable[Filter]) -> list[Filter]:
    """The order does not change what passes; it only decides which of several refusals an explanation names."""
    return sorted(filters, key=lambda one: not one.once)


def default_weighers() -> list[Weigher]:
    """Nova's three for plain capacity, with its multipliers: all spread."""
    return [Weigher(w.NAME, w.weigh, w.MULTIPLIER) for w in _WEIGHERS]


def choice_named(name: str) -> Choice:
    """The choice called `name`; NovaliteError lists those that exist."""
    known = {one.NAME: t.cast(Choice, one) for one in _CHOICES}
    if name not in known:
        raise NovaliteError(f"there is no scheduler choice {name!r}; take one of: {', '.join(known)}")
    return known[name]
