# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Nova's RamFilter, with Placement's rule."""

from __future__ import annotations

from ..capacity import shortage
from ..rows import HostState, Request

NAME = "ram"
RUN_ONCE_PER_REQUEST = False
LOOKS_AT_OTHER_HOSTS = False


def passes(host: HostState, request: Request) -> str | None:
    """Refuse when `used + amount > (total - reserved) * ratio` in MiB, or when one instance exceeds the machine."""
    amount, used, total, reserved = request.memory_mb, host.memory_mb_used, host.memory_mb, host.reserved_memory_mb
    if used + amount <= (total - reserved) * host.ram_ratio and amount <= total:
        return None
    return shortage("MiB", amount, used, total, reserved, host.ram_ratio)
