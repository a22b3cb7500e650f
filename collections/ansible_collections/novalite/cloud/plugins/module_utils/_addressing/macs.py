# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""MAC addresses for instances, and the IPv6 addresses that follow from them."""

from __future__ import annotations

import random
import re

import netaddr

from .._errors import NovaliteError
from .ipv6 import host_ipv6, slash_64

MAC_PREFIX = "fa:16:3e"  # OpenStack's, so that its tools know such an interface for an instance's

LINK_LOCAL = "fe80::/64"

_PREFIX = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}")


def new_mac(prefix: str = MAC_PREFIX, rng: random.Random | None = None) -> str:
    """A random MAC under `prefix` (three octets, with colons). Whether it is free, the ledger's constraint decides.

    Random, from the system's source unless `rng` is given: a sequence would tell a tenant about the others. Raises
    NovaliteError for a prefix that no guest may have: multicast, or one that the IEEE gives to manufacturers.
    """
    prefix = prefix.lower()
    if not _PREFIX.fullmatch(prefix):
        raise NovaliteError(f"MAC prefix {prefix!r} is not three octets: write it as {MAC_PREFIX}")
    first = int(prefix[:2], 16)
    if first & 1:
        raise NovaliteError(f"MAC prefix {prefix!r} is a multicast one: take one with an even first octet")
    if not first & 2:
        raise NovaliteError(f"MAC prefix {prefix!r} belongs to a manufacturer: take a local one such as {MAC_PREFIX}")
    octets = (rng or random.SystemRandom()).getrandbits(24).to_bytes(3, "big")
    return ":".join((prefix, *(f"{octet:02x}" for octet in octets)))


def eui64(cidr: str, mac: str) -> str:
    """The address that a guest with `mac` gives itself in the /64 `cidr` (RFC 4291, appendix A), in RFC 5952 form.

    Raises NovaliteError when the prefix has another length: stateless autoconfiguration needs 64 bits.
    """
    return str(netaddr.EUI(mac).ipv6(slash_64(cidr)))


def router_link_local(address: str) -> str:
    """The link-local address under which the host that has `address` (IPv4) on a network is its guests' router."""
    return host_ipv6(LINK_LOCAL, address)
