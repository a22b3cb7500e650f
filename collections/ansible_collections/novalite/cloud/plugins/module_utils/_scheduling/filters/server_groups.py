# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ServerGroupAffinityFilter and ServerGroupAntiAffinityFilter: members on one host, or at most so many."""

from __future__ import annotations

from ..kinds import Filter, of_policy
from ..options import Options
from ..rows import HostState, Request


def _together(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host without a member, once any host has one."""
    group = request.group
    if group is None or group.policy != "affinity" or not group.members_on or host.name in group.members_on:
        return None
    return f"has none of the group's members, which are on {', '.join(sorted(group.members_on))}"


def _apart(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host with `max_server_per_host` members, except the one that this very member is on (a move). Those that
    move count on both of their hosts: they may be on either at the end."""
    group = request.group
    if group is None or group.policy != "anti-affinity" or group.members.get(request.uuid) == host.name:
        return None
    members = group.claims_on.get(host.name, 0)
    if members < group.max_server_per_host:
        return None
    return f"has {members} of the group's members, and {group.max_server_per_host} may share a host"


_AFFINITY, _ANTI = of_policy("affinity"), of_policy("anti-affinity")
PLUGINS = (
    Filter("server_group_affinity", _together, False, True, _AFFINITY, nova="ServerGroupAffinityFilter"),
    Filter("server_group_anti_affinity", _apart, concerns=_ANTI, nova="ServerGroupAntiAffinityFilter"),
)
