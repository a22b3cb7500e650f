# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""IPv4 addresses as the ledger keeps them, integers, and as people write them."""

from __future__ import annotations

import ipaddress

from .._errors import NovaliteError


def to_int(address: str) -> int:
    """The number of a dotted IPv4 address. Raises NovaliteError when it is none."""
    try:
        return int(ipaddress.IPv4Address(address))
    except ValueError:
        raise NovaliteError(f"{address!r} is not an IPv4 address: write it as 10.20.0.5") from None


def to_text(number: int) -> str:
    """The dotted form of an IPv4 address."""
    # a tenth of the time that ipaddress takes, and a launch of 1,000 has 2,000 of them
    return f"{number >> 24}.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
