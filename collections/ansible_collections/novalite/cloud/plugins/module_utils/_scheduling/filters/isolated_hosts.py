# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's IsolatedHostsFilter: certain images on certain hosts."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "isolated_hosts"
NOVA = "IsolatedHostsFilter"
RUN_ONCE_PER_REQUEST = True


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that is not isolated to an isolated image, and the reverse unless the option says otherwise."""
    isolated = host.name in options.isolated_hosts
    if request.image_id is not None and request.image_id in options.isolated_images:
        return None if isolated else "is not among the isolated hosts, the image is among the isolated images"
    if isolated and options.restrict_isolated_hosts_to_isolated_images:
        return "is kept for the isolated images"
    return None
