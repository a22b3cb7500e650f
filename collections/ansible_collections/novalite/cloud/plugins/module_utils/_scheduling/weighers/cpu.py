# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Nova's CPUWeigher: most free virtual CPUs first, overcommit included."""

from __future__ import annotations

from ..rows import HostState, Request

NAME = "cpu"
MULTIPLIER = 1.0


def weigh(host: HostState, request: Request) -> float:
    """Virtual CPUs that may still be claimed."""
    return (host.vcpus - host.reserved_vcpus) * host.cpu_ratio - host.vcpus_used
