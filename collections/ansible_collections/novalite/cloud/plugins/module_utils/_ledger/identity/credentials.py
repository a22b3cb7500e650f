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
from ..db import clock
from ..db.sealing import Seal
from ..db.tables_identity import application_credential as application
from ..db.tables_identity import ec2_credential as ec2
from ..queries.counts import count, is_any
from ..queries.identity.credential_records import Credential

MOST = 100  # of each kind, for one user


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


def delete_ec2_credential(connection: sa.Connection, user_id: str, access: str) -> None:
    """Remove one of the user's pairs. Raises NotFoundError."""
    mine = sa.and_(ec2.c.user_id == user_id, ec2.c.access == access)
    if connection.execute(sa.delete(ec2).where(mine)).rowcount == 0:
        raise NotFoundError(f"Could not find credential: {access[:64]}.")
