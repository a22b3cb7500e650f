# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""PCI devices that an instance asks for by alias."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "pci_passthrough"
NOVA = "PciPassthroughFilter"


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the request asks for any."""
    return request.devices is not None


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has too few of them left, wherever they are: how near, numa_topology judges."""
    result = host.own_fit(None, request.devices)
    return result if isinstance(result, str) else None
