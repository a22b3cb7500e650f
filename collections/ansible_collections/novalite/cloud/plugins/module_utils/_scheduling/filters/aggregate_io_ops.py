# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's AggregateIoOpsFilter: as io_ops, with the limit in an aggregate's metadata."""

from __future__ import annotations

from ..aggregates import least
from ..options import Options
from ..rows import HostState, Request

NAME = "aggregate_io_ops"
NOVA = "AggregateIoOpsFilter"


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has `max_io_ops_per_host` already: the least of its aggregates', else the option."""
    most = least(host, "max_io_ops_per_host", options.max_io_ops_per_host, int)
    return None if host.num_io_ops < most else f"has {host.num_io_ops} disk operations under way, {most} at most"
