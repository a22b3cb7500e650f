# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's AggregateNumInstancesFilter: as num_instances, with the limit in an aggregate's metadata."""

from __future__ import annotations

from ..aggregates import least
from ..options import Options
from ..rows import HostState, Request

NAME = "aggregate_num_instances"
NOVA = "AggregateNumInstancesFilter"


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has `max_instances_per_host` already: the least of its aggregates', else the option."""
    most = least(host, "max_instances_per_host", options.max_instances_per_host, int)
    return None if host.num_instances < most else f"has {host.num_instances} instances, {most} at most"
