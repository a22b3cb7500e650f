# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Substitutes for a password: application credentials (a user's, for one project) and EC2 keys."""

from __future__ import annotations

import hashlib
import secrets
import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError, QuotaError
from ..._json import JsonObject
from ..._rules.records import NAME_LENGTH, check_text
from ..db import clock, tables
from ..db.sealing import Seal
from ..db.tables_identity import application_credential as application
from ..db.tables_identity import domain, user
from ..db.tables_identity import ec2_credential as ec2
from ..queries.assignments import roles_in_project
from ..queries.counts import count, equal, is_any

Credential = JsonObject

MOST = 100  # of each kind, for one user


class UnreadableError(NovaliteError):
    """A secret was encrypted with another key than this ledger's."""


def create_application_credential(
    connection: sa.Connection,
    *,
    user_id: str,
    project_id: str,
    name: str,
    secret_hash: str,
    roles: t.Collection[str],
    description: str = "",
    unrestricted: bool = False,
    expires_at: float | None = None,
    access_rules: t.Sequence[JsonObject] | None = None,
) -> Credential:
    """Record one. Raises ConflictError for a name that the user has already, QuotaError beyond 100."""
    if not check_text("application credential name", name, NAME_LENGTH):
        raise NovaliteError("an application credential needs a name")
    mine = application.c.user_id == user_id
    names = set(connection.execute(sa.select(application.c.name).where(mine)).scalars())
    if name in names:
        raise ConflictError(f"an application credential {name!r} exists already")
    if len(names) >= MOST:
        raise QuotaError(f"a user has at most {MOST} application credentials: delete one first")
    row = {
        "id": uuid.uuid4().hex,
        "user_id": user_id,
        "project_id": project_id,
        "name": name,
        "secret_hash": secret_hash,
        "description": check_text("application credential's description", description),
        "roles": sorted(roles),
        "unrestricted": unrestricted,
        "expires_at": expires_at,
        "created_at": clock.seconds(connection),
        "access_rules": access_rules,
    }
    connection.execute(sa.insert(application).values(**row))
    return row


def list_application_credentials(connection: sa.Connection, user_id: str, name: str | None = None) -> list[Credential]:
    mine = equal({application.c.user_id: user_id, application.c.name: name})
    query = sa.select(application).where(*mine).order_by(application.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def find_application_credential(connection: sa.Connection, user_id: str, credential_id: str) -> Credential:
    """Return one of the user's own application credentials. Raises NotFoundError."""
    mine = (application.c.user_id == user_id, application.c.id == credential_id)
    row = connection.execute(sa.select(application).where(*mine)).mappings().first()
    if row is None:
        raise NotFoundError(f"Could not find Application Credential: {credential_id[:64]}.")
    return dict(row)


def application_credential_of(
    connection: sa.Connection, *, credential_id: str | None = None, user_id: str | None = None, name: str | None = None
) -> Credential | None:
    """The one that somebody says to have, by its id, or by its user and name."""
    mine = sa.and_(application.c.user_id == user_id, application.c.name == name)
    condition = mine if credential_id is None else application.c.id == credential_id
    row = connection.execute(sa.select(application).where(condition)).mappings().first()
    return None if row is None else dict(row)


def delete_application_credential(connection: sa.Connection, user_id: str, credential_id: str) -> None:
    """Remove one, and with it the tokens that it gave. Raises NotFoundError."""
    mine = (application.c.user_id == user_id, application.c.id == credential_id)
    if connection.execute(sa.delete(application).where(*mine)).rowcount == 0:
        raise NotFoundError(f"Could not find Application Credential: {credential_id[:64]}.")


def create_ec2_credential(
    connection: sa.Connection, seal: Seal, user_id: str, project_id: str, chosen_pair: t.Mapping[str, str] | None = None
) -> Credential:
    """A new pair: access, secret (in the clear, to be shown), user_id, project_id. Raises QuotaError beyond 100.

    `chosen_pair`: the access and secret that the user chose, and the `blob` that has them. Raises ConflictError for an
    access key that is taken.
    """
    if count(connection, ec2.c.user_id == user_id) >= MOST:
        raise QuotaError(f"a user has at most {MOST} EC2 credentials: delete one first")
    access, secret = secrets.token_hex(16), secrets.token_hex(16)
    row = {"user_id": user_id, "project_id": project_id, "created_at": clock.seconds(connection)}
    if chosen_pair is not None:
        access, secret = chosen_pair["access"], chosen_pair["secret"]
        row["blob"] = seal.encrypt(chosen_pair["blob"])
    if is_any(connection, sa.or_(ec2.c.access == access, ec2.c.credential_id == credential_id_of(access))):
        raise ConflictError("Conflict occurred attempting to store credential - Duplicate entry.")
    row |= {"access": access, "secret": seal.encrypt(secret), "credential_id": credential_id_of(access)}
    connection.execute(sa.insert(ec2).values(**row))
    return {**row, "secret": secret}


def credential_id_of(access: str) -> str:
    """Return the id in /v3/credentials of the pair that was made with this access key."""
    return hashlib.sha256(access.encode()).hexdigest()


def ec2_credential_rows(
    connection: sa.Connection, user_id: str | None = None, project_id: str | None = None
) -> list[Credential]:
    """Return the user's pairs (None: everybody's), with their secrets encrypted, the oldest first."""
    mine = equal({ec2.c.user_id: user_id, ec2.c.project_id: project_id})
    query = sa.select(ec2).where(*mine).order_by(ec2.c.created_at, ec2.c.access)
    return [dict(row) for row in connection.execute(query).mappings()]


def list_ec2_credentials(
    connection: sa.Connection, seal: Seal, user_id: str, project_id: str | None = None
) -> list[Credential]:
    """Return the user's pairs, with their secrets in the clear; one that cannot be read has None."""
    rows = ec2_credential_rows(connection, user_id, project_id)
    return [{**row, "secret": seal.read(row["secret"])} for row in rows]


def find_ec2_credential(connection: sa.Connection, seal: Seal, user_id: str, access: str) -> Credential:
    """Return one of the user's pairs, with its secret in the clear. Raises NotFoundError, UnreadableError."""
    mine = (ec2.c.user_id == user_id, ec2.c.access == access)
    row = connection.execute(sa.select(ec2).where(*mine)).mappings().first()
    if row is None:
        raise NotFoundError(f"Could not find credential: {access[:64]}.")
    return _readable(seal, dict(row))


def ec2_credential(connection: sa.Connection, seal: Seal, access: str) -> Credential | None:
    """The pair of `access` with what a request under it is: user_name, project_name, roles, all of it if allowed.

    None for an unknown one, and for one whose user or project is disabled, or whose user has no role there any more.
    """
    project = tables.project
    enabled = sa.select(domain.c.id).where(domain.c.enabled)
    query = (
        sa.select(ec2, user.c.name.label("user_name"), project.c.name.label("project_name"))
        .select_from(ec2.join(user, user.c.id == ec2.c.user_id).join(project, project.c.id == ec2.c.project_id))
        .where(ec2.c.access == access, user.c.enabled, project.c.enabled)
        .where(user.c.domain_id.in_(enabled), project.c.domain_id.in_(enabled))
    )
    row = connection.execute(query).mappings().first()
    if row is None:
        return None
    pair = dict(row)
    roles = roles_in_project(connection, pair["user_id"], pair["project_id"])
    return {**_readable(seal, pair), "roles": sorted(roles)} if roles else None


def delete_ec2_credential(connection: sa.Connection, user_id: str, access: str) -> None:
    """Remove one of the user's pairs. Raises NotFoundError."""
    mine = sa.and_(ec2.c.user_id == user_id, ec2.c.access == access)
    if connection.execute(sa.delete(ec2).where(mine)).rowcount == 0:
        raise NotFoundError(f"Could not find credential: {access[:64]}.")


def _readable(seal: Seal, row: t.Mapping[str, t.Any]) -> Credential:
    secret = seal.read(row["secret"])
    if secret is None:
        raise UnreadableError(
            f"the secret of EC2 credential {row['access']} cannot be read with this ledger's key (credentials.secret): "
            "was that replaced? Delete the credential and make a new one"
        )
    return {**row, "secret": secret}
