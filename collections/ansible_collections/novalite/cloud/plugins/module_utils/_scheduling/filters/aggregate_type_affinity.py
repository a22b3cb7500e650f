# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's AggregateTypeAffinityFilter: aggregates that take only certain flavors."""

from __future__ import annotations

from ..aggregates import metadata_of
from ..options import Options
from ..rows import HostState, Request

NAME = "aggregate_type_affinity"
NOVA = "AggregateTypeAffinityFilter"
RUN_ONCE_PER_REQUEST = True


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host with metadata `instance_type` in its aggregates that does not name the flavor."""
    if not host.aggregates:
        return None
    flavors = metadata_of(host).get("instance_type")
    if not flavors or request.flavor_name in flavors:
        return None
    return f"is kept for the flavors {', '.join(sorted(flavors))}, not {request.flavor_name}"
