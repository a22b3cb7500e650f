# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""IP addresses and ranges that somebody wrote. What is returned prints as what it is, and as nothing else.

Python's ipaddress takes any text behind a percent sign (an IPv6 zone, RFC 4007), line breaks too, and prints it again:
into a file, a chain or an argument. A zone means something on one host only, so none is taken.
"""

from __future__ import annotations

import ipaddress
import typing as t

Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
MAX_PAIR = 256  # addresses of an allowed address pair: on hosts each has a rule of its own
Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


def parse_address(text: str) -> Address:
    """Return the address. Raises ValueError."""
    _refuse_zone(text)
    return ipaddress.ip_address(text)


def parse_network(text: str, strict: bool = True) -> Network:
    """Return the range; an address alone is one, too. Raises ValueError, with `strict` for bits behind the prefix."""
    _refuse_zone(text)
    return ipaddress.ip_network(text, strict=strict)


def _refuse_zone(text: str) -> None:
    if "%" in text:
        raise ValueError(f"{text[:45]!r} has a zone, which means something on one host only")
