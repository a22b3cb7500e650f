# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's RAMWeigher: most free memory first; as in Nova, of the machine itself, without overcommit."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "ram"
NOVA = "RAMWeigher"
MINIMUM = 0


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """Unclaimed memory in MiB."""
    return [host.memory_mb - host.reserved_memory_mb - host.memory_mb_used for host in hosts]
