# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ledger's one secret. Whatever needs a key of its own derives it, so that one key tells nothing of another."""

from __future__ import annotations

import hashlib
import hmac
import secrets

import sqlalchemy as sa

from .tables import secret

NAME = "ledger"


def derived_key(connection: sa.Connection, purpose: str) -> bytes:
    """32 bytes for `purpose` ("ipv6", "metadata:<host>"): the same in every run over this ledger, and unguessable.

    The secret is made with the ledger; where it is missing (a ledger put together by hand) it is made now.
    """
    return hmac.digest(_secret(connection), purpose.encode(), hashlib.sha256)


def _secret(connection: sa.Connection) -> bytes:
    query = sa.select(secret.c.value).where(secret.c.name == NAME)
    value = connection.execute(query).scalar()
    if value is None:
        # who comes second at the same moment waits, and takes the one that is there
        connection.execute(
            sa.text("INSERT INTO secret (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING"),
            {"name": NAME, "value": secrets.token_hex(32)},
        )
        value = connection.execute(query).scalar_one()
    return bytes.fromhex(value)
