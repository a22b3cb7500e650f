# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The words for a host that has too little of something; the comparison itself stands in each filter."""

from __future__ import annotations


def shortage(unit: str, amount: int, used: int, total: int, reserved: int, ratio: float) -> str:
    """Why `amount` does not fit: too big for the machine itself, or too little left of what may be claimed.

    Overcommit shares a host between instances; one instance alone never gets more than the machine has, or it would
    compete with itself (Nova's AggregateCoreFilter and its siblings had the same rule).
    """
    if amount > total:
        return f"has {total} {unit} in all, {amount} are asked for"
    free = max(0, int((total - reserved) * ratio - used))
    return f"{free} of {amount} {unit} free"
