# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ServerGroupSoftAntiAffinityWeigher: hosts with the fewest members of the group first."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "soft_anti_affinity"
NOVA = "ServerGroupSoftAntiAffinityWeigher"


def concerns(request: Request, options: Options) -> bool:
    """Only groups of this policy."""
    return request.group is not None and request.group.policy == "soft-anti-affinity"


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """Members of the request's group on the host, negative."""
    members_on = request.group.members_on if request.group else {}
    return [-members_on.get(host.name, 0) for host in hosts]
