# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

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
