# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ServerGroupAffinityFilter: all members of a group on one host."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "server_group_affinity"
NOVA = "ServerGroupAffinityFilter"
LOOKS_AT_OTHER_HOSTS = True


def concerns(request: Request, options: Options) -> bool:
    """Only groups of this policy."""
    return request.group is not None and request.group.policy == "affinity"


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host without a member, once any host has one."""
    group = request.group
    if group is None or group.policy != "affinity" or not group.members_on or host.name in group.members_on:
        return None
    return f"has none of the group's members, which are on {', '.join(sorted(group.members_on))}"
