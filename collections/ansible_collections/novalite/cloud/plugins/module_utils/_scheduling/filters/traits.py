# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Placement's traits: `trait:<name>=required` or `=forbidden` in a flavor, `=required` in an image."""

from __future__ import annotations

from ..._json import JsonMapping
from ..options import Options
from ..rows import HostState, Request

NAME = "traits"
RUN_ONCE_PER_REQUEST = True

PREFIX = "trait:"


def _named(properties: JsonMapping, kind: str) -> list[str]:
    return [key[len(PREFIX) :] for key, value in properties.items() if key.startswith(PREFIX) and value == kind]


def concerns(request: Request, options: Options) -> bool:
    """Tell whether the flavor or the image names traits."""
    return any(key.startswith(PREFIX) for key in (*request.extra_specs, *request.image_properties))


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that lacks a required trait or has a forbidden one."""
    required = _named(request.extra_specs, "required") + _named(request.image_properties, "required")
    lacking = [trait for trait in required if trait not in host.traits]
    if lacking:
        return f"lacks the required traits {', '.join(lacking)}"
    forbidden = [trait for trait in _named(request.extra_specs, "forbidden") if trait in host.traits]
    return f"has the forbidden traits {', '.join(forbidden)}" if forbidden else None
