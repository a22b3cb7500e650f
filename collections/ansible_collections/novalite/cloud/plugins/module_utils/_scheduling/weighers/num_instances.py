# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's NumInstancesWeigher: off by default; a negative multiplier spreads by number of instances."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "num_instances"
NOVA = "NumInstancesWeigher"


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """Instances on the host."""
    return [host.num_instances for host in hosts]
