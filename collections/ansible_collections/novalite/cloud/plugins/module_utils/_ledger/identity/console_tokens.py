# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens of consoles: random, kept as a hash, of one instance, for one use within ten minutes."""

from __future__ import annotations

import secrets

import sqlalchemy as sa

from ..db import clock
from ..db.tables_identity import console_token as table
from ..queries.identity.token_holders import Way, token_hash

LIFETIME = 600  # seconds


def issue(connection: sa.Connection, way: Way) -> str:
    """Make a token for `way`, and return its text, which is nowhere else."""
    now = clock.now(connection)
    text = secrets.token_urlsafe(32)
    connection.execute(sa.delete(table).where(table.c.expires_at <= now))
    connection.execute(
        sa.insert(table).values(
            hash=token_hash(text),
            token_hash=way.holder,
            instance_uuid=way.instance_uuid,
            type=way.type,
            expires_at=now + LIFETIME,
        )
    )
    return text


def redeem(connection: sa.Connection, text: str) -> Way | None:
    """Use up a token; None for one that is unknown, too old, or used already. Of two at once, one gets it."""
    hashed = token_hash(text)
    valid = sa.and_(table.c.hash == hashed, table.c.expires_at > clock.now(connection))
    row = connection.execute(sa.select(table).where(valid)).first()
    if row is None or connection.execute(sa.delete(table).where(valid)).rowcount != 1:
        return None
    return Way(row.token_hash, row.instance_uuid, row.type)
