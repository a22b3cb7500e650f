# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's AggregateInstanceExtraSpecsFilter: a flavor's extra specs must match the metadata of an aggregate."""

from __future__ import annotations

from ..aggregates import metadata_of
from ..extra_specs import matches
from ..options import Options
from ..rows import HostState, Request

NAME = "aggregate_instance_extra_specs"
NOVA = "AggregateInstanceExtraSpecsFilter"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Flavors without extra specs ask for nothing."""
    return bool(request.extra_specs)


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host of which no aggregate satisfies a key of the scope `aggregate_instance_extra_specs` or of none."""
    metadata = metadata_of(host)
    for key, requirement in request.extra_specs.items():
        scope, colon, rest = key.partition(":")
        if colon and scope != NAME:
            continue
        name = rest if colon else scope
        values = metadata.get(name)
        if not values:
            return f"is in no aggregate with {name}, the flavor asks for {requirement}"
        if not any(matches(value, str(requirement)) for value in values):
            return f"is in aggregates with {name} {', '.join(sorted(values))}, the flavor asks for {requirement}"
    return None
