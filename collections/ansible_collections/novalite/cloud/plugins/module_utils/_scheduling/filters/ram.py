# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's RamFilter, with Placement's rule."""

from __future__ import annotations

import typing as t

from ..capacity import shortage
from ..options import Options
from ..rows import HostState, Request

NAME = "ram"
NOVA = "RamFilter"


def refused(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[int]:
    """Where `used + amount > (total - reserved) * ratio` in MiB, or where one instance exceeds the machine.

    Who asks for none is let in even where too much is used already: so does Placement.
    """
    amount = request.memory_mb
    if not amount:
        return []
    return [at for at, host in enumerate(hosts) if amount > host.memory_mb_room]


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """What is short on a refused host."""
    if not refused((host,), request, options):
        return None
    used, total, reserved = host.memory_mb_used, host.memory_mb, host.reserved_memory_mb
    return shortage("MiB", request.memory_mb, used, total, reserved, host.ram_ratio, host.memory_mb_others)
