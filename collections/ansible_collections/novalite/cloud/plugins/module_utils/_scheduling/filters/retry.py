# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Nova's RetryFilter: a host that failed to build this instance is not tried again."""

from __future__ import annotations

from ..rows import HostState, Request

NAME = "retry"
RUN_ONCE_PER_REQUEST = True
LOOKS_AT_OTHER_HOSTS = False


def passes(host: HostState, request: Request) -> str | None:
    """Refuse the hosts of earlier attempts."""
    return "failed to build it before" if host.name in request.ignore_hosts else None
