# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

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
