# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Nova's AvailabilityZoneFilter: a request that names a zone stays in it."""

from __future__ import annotations

from ..rows import HostState, Request

NAME = "availability_zone"
RUN_ONCE_PER_REQUEST = True
LOOKS_AT_OTHER_HOSTS = False


def passes(host: HostState, request: Request) -> str | None:
    """Refuse a host of another zone than the requested one; no requested zone means any."""
    if request.availability_zone is None or host.zone == request.availability_zone:
        return None
    return f"is in zone {host.zone}, not {request.availability_zone}"
