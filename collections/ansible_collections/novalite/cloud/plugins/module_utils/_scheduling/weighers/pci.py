# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's PCIWeigher: hosts with few free PCI devices first, so that those with many stay free for who needs many."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "pci"
NOVA = "PCIWeigher"
# A host with so many free devices or more is as good as any other with as many (nova/scheduler/weights/pci.py)
PLENTY = 100


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """Count down from PLENTY by each device that is free on the host."""
    return [PLENTY - min(host.free_devices, PLENTY - 1) for host in hosts]
