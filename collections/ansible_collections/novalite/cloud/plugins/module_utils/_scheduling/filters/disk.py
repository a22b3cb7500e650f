# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's DiskFilter, with Placement's rule."""

from __future__ import annotations

import typing as t

from ..capacity import shortage
from ..options import Options
from ..rows import HostState, Request

NAME = "disk"
NOVA = "DiskFilter"


def refused(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[int]:
    """Where `used + amount > (total - reserved) * ratio` in GiB, or where one instance exceeds the machine.

    Who asks for none is let in even where too much is used already: so does Placement.
    """
    amount = request.disk_gb
    if not amount:
        return []
    return [at for at, host in enumerate(hosts) if amount > host.disk_gb_room]


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """What is short on a refused host."""
    if not refused((host,), request, options):
        return None
    used, total, reserved = host.disk_gb_used, host.disk_gb, host.reserved_disk_gb
    return shortage("GiB", request.disk_gb, used, total, reserved, host.disk_ratio, host.disk_gb_others)
