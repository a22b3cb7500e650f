# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's ZoneScheduler, without its draw: spread over the zones, then take the least loaded host.

A request that names its zone was held to it by the filter, which leaves the choice of `simple`.
"""

from __future__ import annotations

import collections
import random
import typing as t

if t.TYPE_CHECKING:
    from ..candidates import Candidates

NAME = "zone"
USES_WEIGHERS = False


def scores(candidates: Candidates, rng: random.Random) -> list[tuple[int, int, int]]:
    """Cores in use in the host's zone, on the host, and its MiB in use, all negative: less is better."""
    hosts = candidates.hosts
    used: dict[str, int] = collections.defaultdict(int)
    for host in hosts:
        used[host.zone] -= host.vcpus_used
    return [(used[hosts[i].zone], -hosts[i].vcpus_used, -hosts[i].memory_mb_used) for i in candidates.passed]


def details(candidates: Candidates, position: int, score: tuple[int, int, int]) -> dict[str, float]:
    """The load of one host's zone and of the host, for the explanation."""
    return {"zone_vcpus_used": -score[0], "vcpus_used": -score[1], "memory_mb_used": -score[2]}
