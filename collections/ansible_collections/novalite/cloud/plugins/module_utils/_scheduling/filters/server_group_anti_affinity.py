# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ServerGroupAntiAffinityFilter: at most so many members of a group on one host."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "server_group_anti_affinity"
NOVA = "ServerGroupAntiAffinityFilter"


def concerns(request: Request, options: Options) -> bool:
    """Only groups of this policy."""
    return request.group is not None and request.group.policy == "anti-affinity"


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host with `max_server_per_host` members, except the one that this very member is on (a move)."""
    group = request.group
    if group is None or group.policy != "anti-affinity" or group.members.get(request.uuid) == host.name:
        return None
    members = group.members_on.get(host.name, 0)
    if members < group.max_server_per_host:
        return None
    return f"has {members} of the group's members, and {group.max_server_per_host} may share a host"
