# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens: random, kept as a hash, for a time. api/web/context.py finds out whose one is."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import secrets
import time
import typing as t

import sqlalchemy as sa

from ..db.tables import project
from ..db.tables_identity import application_credential, role_assignment, user
from ..db.tables_identity import token as table

LIFETIME = 8 * 3600  # seconds

_HOLDERS = (  # asked with every request, and made once
    sa.select(
        table,
        user.c.name.label("user_name"),
        project.c.name.label("project_name"),
        application_credential.c.roles.label("granted"),
        role_assignment.c.role,
    )
    .select_from(
        table.join(user, user.c.id == table.c.user_id)
        .outerjoin(project, project.c.id == table.c.project_id)
        .outerjoin(application_credential, application_credential.c.id == table.c.application_credential_id)
        .outerjoin(
            role_assignment,
            sa.and_(role_assignment.c.user_id == table.c.user_id, role_assignment.c.project_id == table.c.project_id),
        )
    )
    .where(
        table.c.hash == sa.bindparam("hashed"),
        table.c.expires_at > sa.bindparam("now"),
        user.c.enabled,
        table.c.issued_at >= user.c.tokens_valid_since,
        sa.or_(table.c.project_id.is_(None), project.c.enabled),
        sa.or_(
            table.c.application_credential_id.is_(None),
            application_credential.c.expires_at.is_(None),
            application_credential.c.expires_at > sa.bindparam("now"),
        ),
    )
)


@dataclasses.dataclass(frozen=True)
class Token:
    """A token that was just made: `text` is nowhere else."""

    text: str
    audit_id: str
    issued_at: float
    expires_at: float


def token_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
) -> Token:
    """Make a token for `user_id`, scoped to `project_id` unless that is None.

    `issued_at` is when the proof (a password) was read: a password that was changed since then makes this token void.
    `expires_at` is the latest end (of the token or credential that this one comes from); `lifetime` is in seconds.
    """
    now = time.time()
    issued_at = now if issued_at is None else issued_at
    end = min(issued_at + lifetime, expires_at if expires_at is not None else float("inf"))
    audit_id = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
    token = Token(f"nl{secrets.token_urlsafe(40)}", audit_id, issued_at, end)
    shown = {"audit_id": audit_id, "issued_at": issued_at, "expires_at": end}
    holder = {"user_id": user_id, "project_id": project_id, "application_credential_id": application_credential_id}
    connection.execute(sa.delete(table).where(table.c.expires_at <= now))
    connection.execute(sa.insert(table).values(hash=token_hash(token.text), method=method, **holder, **shown))
    return token


def token_holders(connection: sa.Connection, text: str, now: float) -> t.Sequence[t.Any]:
    """Return a row for each role that the token's user has in its project: none for a token that is void at `now`."""
    return connection.execute(_HOLDERS, {"hashed": token_hash(text), "now": now}).all()


def revoke_token(connection: sa.Connection, text: str) -> bool:
    """Make the token void; return whether there was one."""
    return connection.execute(sa.delete(table).where(table.c.hash == token_hash(text))).rowcount > 0


def revoke_tokens(connection: sa.Connection, user_id: str) -> None:
    """Make all tokens of a user void, also one that is being issued right now."""
    connection.execute(sa.update(user).where(user.c.id == user_id).values(tokens_valid_since=time.time()))
    connection.execute(sa.delete(table).where(table.c.user_id == user_id))
