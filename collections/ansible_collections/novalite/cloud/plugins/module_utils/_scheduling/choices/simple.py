# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's SimpleScheduler: the least loaded host, which is the one with the fewest cores in use (then memory)."""

from __future__ import annotations

import random
import typing as t

if t.TYPE_CHECKING:
    from ..candidates import Candidates

NAME = "simple"
USES_WEIGHERS = False


def scores(candidates: Candidates, rng: random.Random) -> list[tuple[int, int]]:
    """Cores and MiB in use, negative: less is better."""
    hosts = candidates.hosts
    return [(-hosts[i].vcpus_used, -hosts[i].memory_mb_used) for i in candidates.passed]


def details(candidates: Candidates, position: int, score: tuple[int, int]) -> dict[str, float]:
    """The load of one host, for the explanation."""
    return {"vcpus_used": -score[0], "memory_mb_used": -score[1]}
