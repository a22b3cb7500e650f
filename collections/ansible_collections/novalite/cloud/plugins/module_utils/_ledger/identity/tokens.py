# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens: random, kept as a hash, for a time. api/web/context.py finds out whose one is."""

from __future__ import annotations

import base64
import secrets

import sqlalchemy as sa

from ..db import clock
from ..db.tables_identity import token as table
from ..db.tables_identity import user
from ..queries.identity.token_holders import Holder, Token, holder_of, token_hash

LIFETIME = 8 * 3600  # seconds


def issue_token(
    connection: sa.Connection,
    user_id: str,
    project_id: str | None,
    *,
    method: str = "password",
    issued_at: float | None = None,
    expires_at: float | None = None,
    lifetime: float = LIFETIME,
    application_credential_id: str | None = None,
    domain_id: str | None = None,
    trust_id: str | None = None,
) -> Token:
    """Make a token for `user_id`, scoped to the project or the domain, or (both None) unscoped.

    `issued_at` is when the proof (a password) was read: a password that was changed since then makes this token void.
    `expires_at` is the latest end (of the token or credential that this one comes from); `lifetime` is in seconds.
    """
    now = clock.now(connection)
    issued_at = now if issued_at is None else issued_at
    end = min(issued_at + lifetime, expires_at if expires_at is not None else float("inf"))
    audit_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    token = Token(f"nl{secrets.token_urlsafe(40)}", audit_id, issued_at, end)
    shown = {"audit_id": audit_id, "issued_at": issued_at, "expires_at": end}
    holder = {"user_id": user_id, "project_id": project_id, "application_credential_id": application_credential_id}
    connection.execute(sa.delete(table).where(table.c.expires_at <= now))
    scope = {"domain_id": domain_id, "trust_id": trust_id}
    connection.execute(sa.insert(table).values(hash=token_hash(token.text), method=method, **holder, **scope, **shown))
    return token


def token_holder(connection: sa.Connection, text: str, now: float) -> Holder | None:
    """Return who has the token; None where it is void at `now`, or its user has lost what it stands for."""
    return holder_of(connection, token_hash(text), now)


def revoke_token(connection: sa.Connection, text: str) -> bool:
    """Make the token void; return whether there was one."""
    return connection.execute(sa.delete(table).where(table.c.hash == token_hash(text))).rowcount > 0


def revoke_tokens(connection: sa.Connection, user_id: str) -> None:
    """Make all tokens of a user void, also one that is being issued right now."""
    connection.execute(sa.update(user).where(user.c.id == user_id).values(tokens_valid_since=clock.now(connection)))
    connection.execute(sa.delete(table).where(table.c.user_id == user_id))
