# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Nova's DiskFilter, with Placement's rule."""

from __future__ import annotations

from ..capacity import shortage
from ..options import Options
from ..rows import HostState, Request

NAME = "disk"
RUN_ONCE_PER_REQUEST = False
LOOKS_AT_OTHER_HOSTS = False


def concerns(request: Request, options: Options) -> bool:
    """Who asks for none is let in even where too much is used already: so does Placement."""
    return request.disk_gb > 0


def passes(host: HostState, request: Request, options: Options) -> str | None:
    """Refuse when `used + amount > (total - reserved) * ratio` in GiB, or when one instance exceeds the machine."""
    amount, total = request.disk_gb, host.disk_gb
    if host.disk_gb_used + amount <= (total - host.reserved_disk_gb) * host.disk_ratio and amount <= total:
        return None
    return shortage("GiB", amount, host.disk_gb_used, total, host.reserved_disk_gb, host.disk_ratio)
