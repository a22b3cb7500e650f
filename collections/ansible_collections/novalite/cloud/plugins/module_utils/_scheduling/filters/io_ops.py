# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's IoOpsFilter: not too many disk operations under way on one host."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "io_ops"
NOVA = "IoOpsFilter"


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has `max_io_ops_per_host` already."""
    most = options.max_io_ops_per_host
    return None if host.num_io_ops < most else f"has {host.num_io_ops} disk operations under way, {most} at most"
