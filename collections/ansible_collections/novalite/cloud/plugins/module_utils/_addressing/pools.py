# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""IPv4 addresses as the ledger keeps them, integers, and as people write them."""

from __future__ import annotations

from netaddr.strategy import ipv4

from .._errors import NovaliteError
from .texts import parse_address

to_text = ipv4.int_to_str  # a quarter of the time that str(netaddr.IPAddress(number)) takes


def to_int(address: str) -> int:
    """The number of a dotted IPv4 address. Raises NovaliteError when it is none."""
    try:
        return int(parse_address(address, 4))
    except ValueError:
        raise NovaliteError(f"{address!r} is not an IPv4 address: write it as 10.20.0.5") from None
