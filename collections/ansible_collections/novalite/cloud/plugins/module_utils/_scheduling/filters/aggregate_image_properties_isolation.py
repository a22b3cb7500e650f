# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's AggregateImagePropertiesIsolation: aggregates that take only images with certain properties."""

from __future__ import annotations

from ..aggregates import metadata_of
from ..options import Options
from ..rows import HostState, Request

NAME = "aggregate_image_properties_isolation"
NOVA = "AggregateImagePropertiesIsolation"
RUN_ONCE_PER_REQUEST = True


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host of which an aggregate lists values of a property, when the image has another value.

    An image without the property is let in. Every property counts, while Nova sees only those that its
    image object has a field for, which makes its own option of a namespace useless.
    """
    properties = request.image_properties
    if not host.aggregates or not properties:
        return None
    namespace = options.aggregate_image_properties_isolation_namespace
    prefix = namespace + options.aggregate_image_properties_isolation_separator if namespace else ""
    for key, values in metadata_of(host).items():
        value = properties.get(key) if key.startswith(prefix) else None
        if value and str(value) not in values:
            return f"is kept for images with {key} {', '.join(sorted(values))}, this one has {value}"
    return None
