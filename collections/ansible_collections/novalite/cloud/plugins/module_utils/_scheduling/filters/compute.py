# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ComputeFilter: the host answers, and nobody has disabled it."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "compute"
NOVA = "ComputeFilter"
RUN_ONCE_PER_REQUEST = True


def refused(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[int]:
    """Return the positions of hosts that are down or disabled."""
    return [at for at, host in enumerate(hosts) if not (host.up and host.enabled)]


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that is down or disabled, with the reason that was recorded."""
    if host.up and host.enabled:
        return None
    if not host.up:
        return host.down_reason or "is down"
    return f"is disabled: {host.disabled_reason}" if host.disabled_reason else "is disabled"
