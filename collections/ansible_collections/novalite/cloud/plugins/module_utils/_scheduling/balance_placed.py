# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests where they are, and what was measured of guests and hosts, as balancing sees them."""

from __future__ import annotations

import dataclasses

from .rows import Request


@dataclasses.dataclass(frozen=True)
class Peak:
    """The highest of what was measured in a time: busy cores, memory in MiB, and, of a host, the share of the time in
    which something waited for cores, memory or disks (the kernel's pressure stall information)."""

    cores: float = 0.0
    memory_mb: float = 0.0
    pressure: float = 0.0


@dataclasses.dataclass(frozen=True)
class Placed:
    """Instance where it is. Its request's group, if any, is as the scheduler would be told of it.

    `peak` is what was measured of it, if anything was; `moved_mib` is what a move of it sends; a `fixed` one stays.
    """

    request: Request
    host: str
    peak: Peak | None = None
    moved_mib: int = 0
    fixed: bool = False
