# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tokens: random, kept as a hash, for a time. api/web/context.py finds out whose one is."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import secrets
import typing as t

import sqlalchemy as sa

from ..._json import JsonObject
from ..db import clock
from ..db.tables import project
from ..db.tables_identity import application_credential, domain, trust, user
from ..db.tables_identity import token as table
from ..queries.assignments import Names, roles_in_domain, roles_in_project
from .roles import implied

LIFETIME = 8 * 3600  # seconds

_OF_USER, _OF_PROJECT, _SCOPE = domain.alias("of_user"), domain.alias("of_project"), domain.alias("scope")
_HOLDER = (  # asked with every request, and made once
    sa.select(
        table,
        user.c.name.label("user_name"),
        user.c.display_name.label("user_display_name"),
        _OF_USER.c.id.label("user_domain_id"),
        _OF_USER.c.name.label("user_domain_name"),
        project.c.name.label("project_name"),
        project.c.display_name.label("project_display_name"),
        _OF_PROJECT.c.id.label("project_domain_id"),
        _OF_PROJECT.c.name.label("project_domain_name"),
        _SCOPE.c.name.label("domain_name"),
        application_credential.c.roles.label("granted"),
        application_credential.c.access_rules,
    )
    .select_from(
        table.join(user, user.c.id == table.c.user_id)
        .join(_OF_USER, _OF_USER.c.id == user.c.domain_id)
        .outerjoin(project, project.c.id == table.c.project_id)
        .outerjoin(_OF_PROJECT, _OF_PROJECT.c.id == project.c.domain_id)
        .outerjoin(_SCOPE, _SCOPE.c.id == table.c.domain_id)
        .outerjoin(application_credential, application_credential.c.id == table.c.application_credential_id)
    )
    .where(
        table.c.hash == sa.bindparam("hashed"),
        table.c.expires_at > sa.bindparam("now"),
        user.c.enabled,
        _OF_USER.c.enabled,
        table.c.issued_at >= user.c.tokens_valid_since,
        sa.or_(table.c.project_id.is_(None), sa.and_(project.c.enabled, _OF_PROJECT.c.enabled)),
        sa.or_(table.c.domain_id.is_(None), _SCOPE.c.enabled),
        sa.or_(
            table.c.application_credential_id.is_(None),
            application_credential.c.expires_at.is_(None),
            application_credential.c.expires_at > sa.bindparam("now"),
        ),
    )
)
_TRUSTOR, _TRUSTEE = user.alias("trustor"), user.alias("trustee")
_ENABLED = sa.select(domain.c.id).where(domain.c.enabled)
_TRUST = sa.select(trust).where(
    trust.c.id == sa.bindparam("trust_id"),
    sa.or_(trust.c.expires_at.is_(None), trust.c.expires_at > sa.bindparam("now")),
    *(
        sa.exists().where(
            who.c.id == whose,
            who.c.enabled,
            who.c.domain_id.in_(_ENABLED),
            who.c.tokens_valid_since <= sa.bindparam("issued_at"),
        )
        for who, whose in ((_TRUSTOR, trust.c.trustor_user_id), (_TRUSTEE, trust.c.trustee_user_id))
    ),
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


@dataclasses.dataclass(frozen=True)
class Holder:
    """A valid token's row with the names that belong to it, and what it gives now."""

    row: t.Any
    roles: Names  # by their ids, without those that they imply
    trust: JsonObject | None


def token_holder(connection: sa.Connection, text: str, now: float) -> Holder | None:
    """Return who has the token; None where it is void at `now`, or its user has lost what it stands for."""
    return holder_of(connection, token_hash(text), now)


def holder_of(connection: sa.Connection, hashed: str, now: float) -> Holder | None:
    """Return the same of the token with this hash: of one that another one was made with."""
    row = connection.execute(_HOLDER, {"hashed": hashed, "now": now}).first()
    if row is None:
        return None
    if row.trust_id is not None:
        trust_record = valid_trust(connection, row.trust_id, now, row.issued_at)
        roles = None if trust_record is None else trusted_roles(connection, trust_record)
        return None if not roles else Holder(row, roles, trust_record)
    roles = {}
    if row.project_id is not None:
        roles = roles_in_project(connection, row.user_id, row.project_id)
    elif row.domain_id is not None:
        roles = roles_in_domain(connection, row.user_id, row.domain_id)
    if row.granted is not None:
        roles = within(roles, row.granted)
    if not roles and (row.project_id, row.domain_id) != (None, None):
        return None
    return Holder(row, roles, None)


def within(roles: Names, granted: t.Iterable[str]) -> Names:
    """Return what of `roles`, or of those that they imply, was `granted` for some purpose."""
    both = implied(roles) & implied(granted)
    return {role_id: roles.get(role_id, role_id) for role_id in both}


def valid_trust(connection: sa.Connection, trust_id: str, now: float, issued_at: float) -> JsonObject | None:
    """Return the trust, if a token of it that was issued then may be used now."""
    parameters = {"trust_id": trust_id, "now": now, "issued_at": issued_at}
    row = connection.execute(_TRUST, parameters).mappings().first()
    return None if row is None else dict(row)


def trusted_roles(connection: sa.Connection, trust_record: JsonObject) -> Names | None:
    """Return the roles that a trust gives; None where its trustor has not all of them any more."""
    held = roles_in_project(connection, trust_record["trustor_user_id"], trust_record["project_id"])
    roles = within(held, trust_record["roles"])
    return roles if roles.keys() >= set(trust_record["roles"]) else None


def revoke_token(connection: sa.Connection, text: str) -> bool:
    """Make the token void; return whether there was one."""
    return connection.execute(sa.delete(table).where(table.c.hash == token_hash(text))).rowcount > 0


def revoke_tokens(connection: sa.Connection, user_id: str) -> None:
    """Make all tokens of a user void, also one that is being issued right now."""
    connection.execute(sa.update(user).where(user.c.id == user_id).values(tokens_valid_since=clock.now(connection)))
    connection.execute(sa.delete(table).where(table.c.user_id == user_id))
