# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""The pool of an IPv4 network: which addresses there are, and which of them never go to an instance.

Integers inside, text at the edges: a /16 is 65,536 of them.
"""

from __future__ import annotations

import ipaddress
import typing as t

from .._errors import NovaliteError

SMALLEST_PREFIX = 16  # the most addresses that are kept as rows
LARGEST_PREFIX = 30  # two addresses: a host's own and one guest


def to_int(address: str) -> int:
    """The number of a dotted IPv4 address. Raises NovaliteError when it is none."""
    try:
        return int(ipaddress.IPv4Address(address))
    except ValueError:
        raise NovaliteError(f"{address!r} is not an IPv4 address: write it as 10.20.0.5") from None


def to_text(number: int) -> str:
    """The dotted form of an IPv4 address."""
    return str(ipaddress.IPv4Address(number))


def bounds(cidr: str) -> tuple[int, int]:
    """The network's own address and its broadcast address: what is between them may be used.

    Raises NovaliteError for text that is no network, has host bits, or is outside /16 to /30.
    """
    try:
        network = ipaddress.IPv4Network(cidr)
    except ValueError as error:
        raise NovaliteError(f"{cidr!r} is not an IPv4 network ({error}): write it as 10.20.0.0/24") from None
    if not SMALLEST_PREFIX <= network.prefixlen <= LARGEST_PREFIX:
        raise NovaliteError(f"{cidr} is outside /{SMALLEST_PREFIX} to /{LARGEST_PREFIX}: choose another prefix length")
    return int(network.network_address), int(network.broadcast_address)


def pool(
    cidr: str, gateway: str | None = None, reserved: t.Iterable[tuple[str, str]] = ()
) -> t.Iterator[tuple[int, str | None]]:
    """Every address of `cidr` with the reason why it is not for instances, or None.

    The reasons are those of the ledger: network, broadcast, gateway, user. `reserved` holds ranges, first and last
    address, of the user. Raises NovaliteError for a gateway or a range outside the network.
    """
    first, last = bounds(cidr)
    ranges = [(to_int(low), to_int(high)) for low, high in reserved]
    for low, high in ranges:
        if not first <= low <= high <= last:
            raise NovaliteError(f"the reserved range {to_text(low)}-{to_text(high)} is not a range inside {cidr}")
    special = {first: "network", last: "broadcast"}
    if gateway is not None:
        router = to_int(gateway)
        if not first < router < last:
            raise NovaliteError(f"gateway {gateway} is not an address that a host may have in {cidr}")
        special[router] = "gateway"
    user = {number for low, high in ranges for number in range(low, high + 1)}
    for number in range(first, last + 1):
        yield number, special.get(number) or ("user" if number in user else None)
