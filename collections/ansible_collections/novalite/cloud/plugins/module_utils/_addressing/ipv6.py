# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""IPv6 addresses that nobody has to keep a pool of: those of hypervisors, and stable opaque ones of instances."""

from __future__ import annotations

import functools
import hashlib
import hmac

import netaddr

from .._errors import NovaliteError

PREFIX = 64
HOSTS = 1 << 32  # interface identifiers below this are those of hypervisors
# Interface identifiers that no instance may have: the subnet-router anycast address and the hypervisors' own, and what
# RFC 5453 reserves
RESERVED = ((0, HOSTS - 1), (0x02005EFFFE000000, 0x02005EFFFEFFFFFF), (0xFDFFFFFFFFFFFF80, 0xFDFFFFFFFFFFFFFF))


def host_ipv6(cidr_v6: str, v4: str) -> str:
    """A hypervisor's own address in the /64 `cidr_v6`: the prefix, and its IPv4 address there as the number.

    The IPv4 address is the hypervisor's alone, hence this one, too, without a record of it.
    """
    return str(netaddr.IPAddress(slash_64(cidr_v6) + int(netaddr.IPAddress(v4, 4)), 6))


def stable_privacy(cidr_v6: str, interface: str, network: str, secret: bytes, dad_counter: int = 0) -> str:
    """The address of `interface` in the /64 `cidr_v6` by RFC 7217: always the same there, elsewhere another, opaque.

    `interface` and `network` are names that do not change (UUIDs), `secret` is known to nobody else, and `dad_counter`
    goes up by one for each address that turned out to be taken. The RFC's F() is HMAC-SHA-256 here, RID its last 64
    bits. A reserved identifier counts as taken, so that the next one follows within this call.
    """
    prefix = slash_64(cidr_v6)
    while True:
        words = (f"{prefix >> PREFIX:016x}", interface, network, str(dad_counter))
        number = int.from_bytes(hmac.digest(secret, "\0".join(words).encode(), hashlib.sha256)[-8:], "big")
        if not any(low <= number <= high for low, high in RESERVED):
            return str(netaddr.IPAddress(prefix + number, 6))
        dad_counter += 1


@functools.lru_cache(maxsize=1024)
def slash_64(cidr: str) -> int:
    """The first address of `cidr`, if that is an IPv6 /64: 64 bits is what interface identifiers have.

    Raises NovaliteError.
    """
    network = netaddr.IPNetwork(cidr)
    if network.version != 6 or network.prefixlen != PREFIX:
        raise NovaliteError(f"{cidr} is not an IPv6 /{PREFIX}, which addresses by EUI-64 need: give the network one")
    return int(network.first)


def lowest_mtu(cidr_v6: object) -> int:
    """The least MTU of a network, which may have a range of IPv6."""
    return 1280 if cidr_v6 else 576  # RFC 8200, RFC 791
