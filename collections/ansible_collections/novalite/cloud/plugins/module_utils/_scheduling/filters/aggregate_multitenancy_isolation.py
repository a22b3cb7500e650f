# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's AggregateMultiTenancyIsolation: aggregates that are kept for certain projects."""

from __future__ import annotations

from ..aggregates import metadata_of
from ..options import Options
from ..rows import HostState, Request

NAME = "aggregate_multitenancy_isolation"
NOVA = "AggregateMultiTenancyIsolation"
RUN_ONCE_PER_REQUEST = True


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host with metadata `filter_tenant_id*` in its aggregates that do not name the project."""
    if not host.aggregates:
        return None
    projects: set[str] = set()
    for key, values in metadata_of(host).items():
        if key.startswith("filter_tenant_id"):
            projects |= values
    if not projects or request.project_id in projects:
        return None
    return f"is kept for other projects than {request.project_id}"
