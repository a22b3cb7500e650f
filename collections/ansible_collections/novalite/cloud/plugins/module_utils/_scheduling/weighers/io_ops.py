# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's IoOpsWeigher: hosts with the fewest builds and other disk operations under way first."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "io_ops"
NOVA = "IoOpsWeigher"
MINIMUM = 0


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """Operations under way; the multiplier is negative."""
    return [host.num_io_ops for host in hosts]
