# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ServerGroupSoftAffinityWeigher and its opposite: the most, or fewest, members of the group first."""

from __future__ import annotations

import typing as t

from ..kinds import Weigher, of_policy
from ..options import Options
from ..rows import HostState, Request


def _most(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    members_on = request.group.members_on if request.group else {}
    return [members_on.get(host.name, 0) for host in hosts]


def _fewest(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    return [-members for members in _most(hosts, request, options)]


_SOFT, _ANTI = of_policy("soft-affinity"), of_policy("soft-anti-affinity")
PLUGINS = (
    Weigher("soft_affinity", _most, concerns=_SOFT, nova="ServerGroupSoftAffinityWeigher"),
    Weigher("soft_anti_affinity", _fewest, concerns=_ANTI, nova="ServerGroupSoftAntiAffinityWeigher"),
)
