# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's RetryFilter and ignored hosts: a host that failed to build this instance is not tried again."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "retry"
NOVA = "RetryFilter"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Nothing to remember at the first attempt."""
    return bool(request.ignore_hosts)


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse the hosts of earlier attempts; as in Nova, whatever the case of their letters."""
    if host.name in request.ignore_hosts or host.name.lower() in {name.lower() for name in request.ignore_hosts}:
        return "failed to build it before"
    return None
