# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""IP addresses and ranges that somebody wrote: netaddr reads them, and here is what it would let pass.

netaddr takes what int() takes for a prefix ("+8", " 8", other scripts' digits, a line break behind it), and its errors
are no ValueError. A zone (RFC 4007) means something on one host only, so none is taken.
"""

from __future__ import annotations

import re
import typing as t

import netaddr

_Version = t.Literal[4, 6, None]
_NETWORK = re.compile(r"[0-9A-Fa-f:.]+(/[0-9.]+)?")


def parse_address(text: str, version: int | None = None) -> netaddr.IPAddress:
    """Return the address, of `version` if it is given. Raises ValueError."""
    try:
        return netaddr.IPAddress(text, t.cast("_Version", version))
    except netaddr.AddrFormatError as error:
        raise ValueError(str(error)) from None


def without_host_bits(text: str) -> str:
    """The range around `text`, such as 10.9.9.0/24 around 10.9.9.1/24; what is no range is returned as it is."""
    try:
        return str(parse_network(text, strict=False).cidr)
    except ValueError:
        return text


def parse_network(text: str, strict: bool = True, version: int | None = None) -> netaddr.IPNetwork:
    """Return the range; an address alone is one, too. Raises ValueError, with `strict` for bits behind the prefix.

    Without `strict`, `ip` of what is returned is the address as it was written.
    """
    try:
        network = netaddr.IPNetwork(text, version=t.cast("_Version", version)) if _NETWORK.fullmatch(text) else None
    except netaddr.AddrFormatError:
        network = None
    if network is None:
        raise ValueError(f"{text[:45]!r} is not an address or a range such as 10.20.0.0/24")
    if strict and network.ip != network.network:
        raise ValueError(f"{text} has host bits set")
    return network


def of_version(addresses: t.Iterable[str], version: int) -> list[str]:
    """Return those of the `addresses` (which are some) that are of this version of IP."""
    return [address for address in addresses if netaddr.IPAddress(address).version == version]
