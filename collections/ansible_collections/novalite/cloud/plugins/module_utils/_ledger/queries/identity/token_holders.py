# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Holders of tokens: who that is, where, and with which roles. Reads only."""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

import sqlalchemy as sa

from ...._json import JsonObject
from ...db.tables import project
from ...db.tables_identity import application_credential, domain, trust, user
from ...db.tables_identity import token as table
from .assignments import Names, implied, roles_in_domain, roles_in_project

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


@dataclasses.dataclass(frozen=True)
class Holder:
    """A valid token's row with the names that belong to it, and what it gives now."""

    row: t.Any
    roles: Names  # by their ids, without those that they imply
    trust: JsonObject | None


def holder_of(connection: sa.Connection, hashed: str, now: float) -> Holder | None:
    """Return who has the token with this hash, or had the one that another was made with; None where it is void at
    `now`, or its user has lost what it stands for."""
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


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to the console `type` of an instance, for whom the token with the hash `holder` stands."""

    holder: str
    instance_uuid: str
    type: str
