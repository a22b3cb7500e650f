# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kinds of plug-ins: what a filter and a weigher are to the scheduler. plugins.py says how they are written."""

from __future__ import annotations

import dataclasses
import typing as t

from .options import Options
from .rows import HostState, Request


def _always(request: Request, options: Options) -> bool:
    return True


@dataclasses.dataclass(frozen=True)
class Filter:
    """Filter, read out of its module once, so that loops touch no module attributes."""

    name: str
    passes: t.Callable[[HostState, Request, Options], t.Optional[str]]
    once: bool = False
    looks_around: bool = False
    concerns: t.Callable[[Request, Options], bool] = _always
    refused: t.Callable[[t.Sequence[HostState], Request, Options], list[int]] | None = None
    nova: str | None = None


@dataclasses.dataclass(frozen=True)
class Weigher:
    """Weigher of hosts. Where it is in force, its multiplier already includes `sign`."""

    name: str
    weigh: t.Callable[[t.Sequence[HostState], Request, Options], list[float]]
    multiplier: float = 1.0
    minimum: float | None = None
    sign: int = 1
    concerns: t.Callable[[Request, Options], bool] = _always
    nova: str | None = None

    @property
    def option(self) -> str:
        """The name of the multiplier in the options and in the metadata of aggregates."""
        return f"{self.name}_weight_multiplier"


def of_policy(policy: str) -> t.Callable[[Request, Options], bool]:
    """A `concerns` for server groups of this policy only."""

    def concerns(request: Request, options: Options) -> bool:
        return request.group is not None and request.group.policy == policy

    return concerns
