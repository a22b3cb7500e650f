# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's AggregateTypeAffinityFilter, AggregateMultiTenancyIsolation and AggregateImagePropertiesIsolation.

Aggregates that are kept: for certain flavors, projects, or images with certain properties.
"""

from __future__ import annotations

import typing as t

from ..aggregates import metadata_of
from ..kinds import Filter
from ..options import Options
from ..rows import HostState, Request

Metadata = t.Mapping[str, t.AbstractSet[str]]


def _kept(name: str, nova: str, reason: t.Callable[[Metadata, Request, Options], str | None]) -> Filter:
    """The filter that refuses a host for what `reason` finds in the metadata of all its aggregates."""

    def passes(host: HostState, request: Request, options: Options) -> str | None:
        return reason(metadata_of(host), request, options) if host.aggregates else None

    return Filter(name, passes, once=True, nova=nova)


def _flavors(metadata: Metadata, request: Request, options: Options) -> str | None:
    """Metadata `instance_type` names the flavors."""
    flavors = metadata.get("instance_type")
    if not flavors or request.flavor_name in flavors:
        return None
    return f"is kept for the flavors {', '.join(sorted(flavors))}, not {request.flavor_name}"


def _projects(metadata: Metadata, request: Request, options: Options) -> str | None:
    """Metadata `filter_tenant_id*` names the projects."""
    named = [values for key, values in metadata.items() if key.startswith("filter_tenant_id")]
    if not named or any(request.project_id in projects for projects in named):
        return None
    return f"is kept for other projects than {request.project_id}"


def _images(metadata: Metadata, request: Request, options: Options) -> str | None:
    """Metadata lists values of a property; an image without the property is let in.

    Every property counts, while Nova sees only those that its image object has a field for, which makes its own option
    of a namespace useless.
    """
    namespace = options.aggregate_image_properties_isolation_namespace
    prefix = namespace + options.aggregate_image_properties_isolation_separator if namespace else ""
    for key, values in metadata.items():
        value = request.image_properties.get(key) if key.startswith(prefix) else None
        if value and str(value) not in values:
            return f"is kept for images with {key} {', '.join(sorted(values))}, this one has {value}"
    return None


PLUGINS = (
    _kept("aggregate_type_affinity", "AggregateTypeAffinityFilter", _flavors),
    _kept("aggregate_multitenancy_isolation", "AggregateMultiTenancyIsolation", _projects),
    _kept("aggregate_image_properties_isolation", "AggregateImagePropertiesIsolation", _images),
)
