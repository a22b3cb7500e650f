# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Nova's NumInstancesFilter: not too many instances on one host."""

from __future__ import annotations

from ..options import Options
from ..rows import HostState, Request

NAME = "num_instances"
NOVA = "NumInstancesFilter"
RUN_ONCE_PER_REQUEST = False
LOOKS_AT_OTHER_HOSTS = False


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse a host that has `max_instances_per_host` already."""
    most = options.max_instances_per_host
    return None if host.num_instances < most else f"has {host.num_instances} instances, {most} at most"
