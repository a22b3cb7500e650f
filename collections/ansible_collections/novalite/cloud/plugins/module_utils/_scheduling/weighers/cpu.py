# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's CPUWeigher: most free virtual CPUs first, overcommit included."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "cpu"
NOVA = "CPUWeigher"
MINIMUM = 0


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """Virtual CPUs that are not in use; as in Nova, overcommit applies to the reserved ones, too."""
    return [host.vcpus * host.cpu_ratio - (host.vcpus_used + host.reserved_vcpus) for host in hosts]
