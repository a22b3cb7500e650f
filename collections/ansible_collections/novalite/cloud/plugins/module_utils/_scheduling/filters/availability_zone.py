# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's AvailabilityZoneFilter: a request that names a zone stays in it."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "availability_zone"
NOVA = "AvailabilityZoneFilter"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the request names a zone: without one, any zone will do."""
    return request.availability_zone is not None


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host of another zone than the requested one."""
    if request.availability_zone is None or host.zone == request.availability_zone:
        return None
    return f"is in zone {host.zone}, not {request.availability_zone}"
