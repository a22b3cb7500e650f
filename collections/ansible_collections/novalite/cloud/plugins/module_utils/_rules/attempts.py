# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names that failed attempts are counted under."""

from __future__ import annotations

import hashlib

import netaddr

from .._addressing.texts import parse_address

LENGTH = 255


def subject(kind: str, name: str) -> str:
    """Return the name to count failures under. Of an IPv6 address it is the /64, which one machine may have all of."""
    if kind == "address":
        try:
            address = parse_address(name.partition("%")[0])
        except ValueError:
            return "address:unknown"
        if address.version == 6:
            if address.is_ipv4_mapped():
                return f"address:{address.ipv4()}"
            return f"address:{netaddr.IPNetwork((int(address), 64), version=6).cidr}"
        return f"address:{address}"
    text = f"{kind}:{name}"
    # not cut off: two long names would share what is known of one
    return text if len(text) <= LENGTH else f"{kind}:{hashlib.sha256(text.encode()).hexdigest()}"
