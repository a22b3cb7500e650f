# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's NumInstancesFilter: not too many instances on one host."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "num_instances"
NOVA = "NumInstancesFilter"


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has `max_instances_per_host` already."""
    most = options.max_instances_per_host
    return None if host.num_instances < most else f"has {host.num_instances} instances, {most} at most"
