# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""NUMA nodes, CPUs of its own and pages that an instance asks for."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "numa_topology"
NOVA = "NUMATopologyFilter"


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the request asks for any of them."""
    return request.numa is not None


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has no such nodes, CPUs and pages left."""
    result = None if request.numa is None else host.numa_fit(request.numa)
    return result if isinstance(result, str) else None
