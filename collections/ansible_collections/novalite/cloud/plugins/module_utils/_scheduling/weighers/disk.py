# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's DiskWeigher: most free disk first; as in Nova, of the machine itself, without overcommit."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "disk"
NOVA = "DiskWeigher"
MINIMUM = 0


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """Unclaimed disk in GiB."""
    return [host.disk_gb - host.reserved_disk_gb - host.disk_gb_used for host in hosts]
