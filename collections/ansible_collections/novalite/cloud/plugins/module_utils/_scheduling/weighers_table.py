# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Our weighers. A new one is a file and its line here; nothing else knows them by name."""

from __future__ import annotations

from .weighers import (
    build_failure,
    cpu,
    disk,
    hypervisor_version,
    io_ops,
    metrics,
    num_instances,
    ram,
    rank,
    soft_affinity,
    soft_anti_affinity,
)

WEIGHERS = (
    build_failure,
    cpu,
    disk,
    hypervisor_version,
    io_ops,
    metrics,
    num_instances,
    ram,
    rank,
    soft_affinity,
    soft_anti_affinity,
)
