# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs of users, as several doors make them."""

from __future__ import annotations

import re

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.catalog.keypairs import write_keypairs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.keypair_records import keypairs_of

from ..web.errors import BadRequestError

RSA_BITS = 2048  # as Nova's
SAFE = re.compile(r"[A-Za-z0-9 @._-]+")


def check_name(name: str) -> None:
    """Raise BadRequestError for a name that a key pair cannot have."""
    if SAFE.fullmatch(name) is None or name != name.strip():
        raise BadRequestError(
            "Keypair data is invalid: Keypair name contains unsafe characters: use letters, digits, '@', '.', '_', '-' "
            "and blanks in between"
        )


def add(connection: Connection, project: str, user_id: str, name: str, public_key: str) -> None:
    """Record a new key pair of a user who acts in the project of this name. Raises ConflictError for a name that the
    user has, BadRequestError for another that cannot be, and as write_keypairs()."""
    check_name(name)
    if any(row["name"] == name for row in keypairs_of(connection, "", user_id)):
        raise ConflictError(f"Key pair '{name}' already exists.")
    write_keypairs(connection, project, [{"name": name, "public_key": public_key}], user_id)


def new_rsa_key(name: str) -> tuple[rsa.RSAPrivateKey, str, str]:
    """A new key; its private part as PEM, which is told once and kept nowhere; its public part as OpenSSH's line."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return key, private.decode(), f"{public.decode()} {name}"
