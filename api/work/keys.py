# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keys that are made here, for several doors."""

from __future__ import annotations

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

RSA_BITS = 2048  # as Nova's


def new_rsa_key(name: str) -> tuple[rsa.RSAPrivateKey, str, str]:
    """A new key; its private part as PEM, which is told once and kept nowhere; its public part as OpenSSH's line."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return key, private.decode(), f"{public.decode()} {name}"
