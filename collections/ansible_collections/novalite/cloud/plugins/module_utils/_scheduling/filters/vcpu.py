# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's CoreFilter, with Placement's rule: virtual CPUs may be shared up to the host's ratio."""

from __future__ import annotations

import typing as t

from ..capacity import shortage
from ..options import Options
from ..rows import HostState, Request

NAME = "vcpu"
NOVA = "CoreFilter"


def refused(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[int]:
    """Where `used + amount > (total - reserved) * ratio`, or where one instance exceeds the machine.

    Who asks for none is let in even where too much is used already: so does Placement.
    """
    amount = request.vcpus
    if not amount:
        return []
    return [at for at, host in enumerate(hosts) if amount > host.vcpus_room]


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """What is short on a refused host."""
    if not refused((host,), request, options):
        return None
    used, total, reserved = host.vcpus_used, host.vcpus, host.reserved_vcpus
    return shortage("vCPUs", request.vcpus, used, total, reserved, host.cpu_ratio, host.vcpus_others)
