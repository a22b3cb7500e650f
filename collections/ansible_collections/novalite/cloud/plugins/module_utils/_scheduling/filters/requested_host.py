# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's requested destination: an operator named the host. All other filters still apply to it."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "requested_host"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the request names a host: only then it is held to it."""
    return request.requested_host is not None


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse every host but the requested one."""
    if request.requested_host is None or host.name == request.requested_host:
        return None
    return f"is not the requested host {request.requested_host}"
