# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nova's HypervisorVersionWeigher: the newest hypervisor first."""

from __future__ import annotations

import typing as t

from ..options import Options
from ..rows import HostState, Request

NAME = "hypervisor_version"
NOVA = "HypervisorVersionWeigher"


def weigh(hosts: t.Sequence[HostState], request: Request, options: Options) -> list[float]:
    """The version as libvirt counts it, 0 when unknown."""
    return [host.facts.get("hypervisor_version") or 0 for host in hosts]
