# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Signature by which a compute host proves to the metadata service which guest asks. Pure.

The proxy on the host knows the guest by the network that the request came in on and by its source address, and signs
both, with a key of this host only: who has taken over one host can speak for that host's guests, and for no others.
"""

from __future__ import annotations

import hashlib
import hmac
import re

from .._errors import NovaliteError

HOST_HEADER = "X-Novalite-Host"
NETWORK_HEADER = "X-Novalite-Network"  # uuid
ADDRESS_HEADER = "X-Forwarded-For"  # the guest's fixed IP
SIGNATURE_HEADER = "X-Novalite-Signature"

SEPARATOR = "/"  # in none of the three parts
_PURPOSE = b"novalite metadata proxy "
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")


def host_key(secret: bytes, host: str) -> bytes:
    """The key of `host`, 32 bytes, derived from the secret that only the controller has. Raises NovaliteError for a
    name that has no place in a header."""
    if not _HOST.fullmatch(host):
        raise NovaliteError(
            f"compute host {host!r} cannot have a metadata proxy: give it a name of letters, digits, '.', '_' and '-'"
        )
    return hmac.new(secret, _PURPOSE + host.encode(), hashlib.sha256).digest()


def sign(key: bytes, host: str, network: str, address: str) -> str:
    """The signature, in hex, over a host's name, a network's uuid and a guest's address."""
    return hmac.new(key, SEPARATOR.join((host, network, address)).encode(), hashlib.sha256).hexdigest()


def is_signed(secret: bytes, host: str, network: str, address: str, signature: str) -> bool:
    """Tell whether `host` signed this. Takes as long for a wrong signature as for a right one."""
    if not _HOST.fullmatch(host) or SEPARATOR in network or SEPARATOR in address:
        return False
    expected = sign(host_key(secret, host), host, network, address)
    return hmac.compare_digest(expected.encode(), signature.encode())
