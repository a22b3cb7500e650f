# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Encryption of what the ledger must be able to give back (EC2's secrets), under a key that is not in the ledger."""

from __future__ import annotations

import base64
import hashlib
import hmac

import sqlalchemy as sa
from cryptography.fernet import Fernet, InvalidToken

from ..._errors import NovaliteError
from .secrets import derived_key
from .tables import secret
from .tables_identity import ec2_credential as ec2

PURPOSE = "ec2-credentials"
MARK = "credentials-key"  # the row that says which key the ledger's secrets are encrypted with


class Seal:
    """Encryption under `root` (32 bytes, kept outside of the ledger)."""

    def __init__(self, root: bytes) -> None:
        self._fernet = _fernet(hmac.digest(root, PURPOSE.encode(), hashlib.sha256))
        self.mark = hmac.digest(root, MARK.encode(), hashlib.sha256).hex()[:32]

    def encrypt(self, text: str) -> str:
        return self._fernet.encrypt(text.encode()).decode()

    def read(self, sealed: str) -> str | None:
        """Decrypt a text; None for one that another key encrypted."""
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None


def seal_of(connection: sa.Connection, root: bytes) -> Seal:
    """Return the seal of `root`, and make it the ledger's when that has none yet: older secrets are encrypted anew.

    Raises NovaliteError when the ledger's secrets are encrypted under another key (a second machine of the API that
    made a file of its own): what this one wrote could not be read by the others.
    """
    seal = Seal(root)
    # who comes second at the same moment waits, and meets the first one's mark
    made = connection.execute(
        sa.text("INSERT INTO secret (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING"),
        {"name": MARK, "value": seal.mark},
    ).rowcount
    mark = connection.execute(sa.select(secret.c.value).where(secret.c.name == MARK)).scalar_one()
    if mark != seal.mark:
        raise NovaliteError(
            "this machine's credentials.secret is not the one that the ledger's EC2 secrets are encrypted with: copy "
            "the file from the machine where it was made (NOVALITE_CREDENTIALS_SECRET_FILE)"
        )
    if made:
        _take_over(connection, seal)
    return seal


def _take_over(connection: sa.Connection, seal: Seal) -> None:
    """Encrypt under `seal` what was encrypted under a key of the ledger's own, until version 0.1."""
    old = _fernet(derived_key(connection, PURPOSE))
    for row in connection.execute(sa.select(ec2.c.access, ec2.c.secret)).mappings().all():
        try:
            text = old.decrypt(row["secret"].encode()).decode()
        except InvalidToken:
            continue  # it could not be read before either; whoever asks for it is told
        connection.execute(sa.update(ec2).where(ec2.c.access == row["access"]).values(secret=seal.encrypt(text)))


def _fernet(key: bytes) -> Fernet:
    return Fernet(base64.urlsafe_b64encode(key))
