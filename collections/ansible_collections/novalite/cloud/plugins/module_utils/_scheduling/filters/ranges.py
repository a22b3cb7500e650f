# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Novalite's own, which Nova and Neutron lack: no host that the instance's networks would cut off from its home."""

from __future__ import annotations

from ..._addressing import places
from ..options import Options
from ..rows import HostState, Request

NAME = "ranges"
RUN_ONCE_PER_REQUEST = True


def concerns(request: Request, options: Options) -> bool:
    """Isolated networks are in a namespace of their own."""
    return bool(request.ranges)


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that lives in a range in which it would get an address."""
    here, shared = places.parse(host.facts.get("places")), host.facts.get("shared_routes") or ()
    for use in request.ranges:
        place = places.conflict(use, here, shared)
        if place is not None:
            return f"lives in {use.cidr}, by {place.text}"
    return None
