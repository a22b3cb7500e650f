# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Trusts: a user (the trustor) lets another one (the trustee) have some of its roles in a project, as itself or not."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._errors import NotFoundError, QuotaError
from ..._json import JsonObject
from ..db import clock
from ..db.tables_identity import trust as table
from ..queries.counts import count, equal

Trust = JsonObject

MOST = 100  # of one trustor


def create_trust(
    connection: sa.Connection,
    *,
    trustor_user_id: str,
    trustee_user_id: str,
    project_id: str,
    roles: t.Collection[str],
    impersonation: bool,
    expires_at: float | None = None,
    remaining_uses: int | None = None,
) -> Trust:
    """Record a trust; its users, project and roles must be there. Raises QuotaError beyond 100 of a trustor."""
    connection.execute(sa.delete(table).where(table.c.expires_at <= clock.now(connection)))
    if count(connection, table.c.trustor_user_id == trustor_user_id) >= MOST:
        raise QuotaError(f"a user gives at most {MOST} trusts: delete one first")
    row = {
        "id": uuid.uuid4().hex,
        "trustor_user_id": trustor_user_id,
        "trustee_user_id": trustee_user_id,
        "project_id": project_id,
        "roles": sorted(roles),
        "impersonation": impersonation,
        "expires_at": expires_at,
        "remaining_uses": remaining_uses,
        "created_at": clock.seconds(connection),
    }
    connection.execute(sa.insert(table).values(**row))
    return row


def trust_by_id(connection: sa.Connection, trust_id: str) -> Trust | None:
    """Return the trust of this id; None where there is none, or it has ended."""
    valid = sa.or_(table.c.expires_at.is_(None), table.c.expires_at > clock.now(connection))
    row = connection.execute(sa.select(table).where(table.c.id == trust_id, valid)).mappings().first()
    return None if row is None else dict(row)


def find_trust(connection: sa.Connection, trust_id: str) -> Trust:
    """Return the trust of this id. Raises NotFoundError."""
    row = trust_by_id(connection, trust_id)
    if row is None:
        raise NotFoundError(f"Could not find trust: {trust_id[:64]}.")
    return row


def list_trusts(connection: sa.Connection, trustor: str | None = None, trustee: str | None = None) -> list[Trust]:
    """Return all trusts that have not ended, the oldest first; or those that this user gave, or was given."""
    conditions = equal({table.c.trustor_user_id: trustor, table.c.trustee_user_id: trustee})
    valid = sa.or_(table.c.expires_at.is_(None), table.c.expires_at > clock.now(connection))
    query = sa.select(table).where(*conditions, valid).order_by(table.c.created_at, table.c.id)
    return [dict(row) for row in connection.execute(query).mappings()]


def take_use(connection: sa.Connection, trust_id: str) -> bool:
    """Count a token of the trust; return False where all that it may give were had."""
    left = sa.or_(table.c.remaining_uses.is_(None), table.c.remaining_uses > 0)
    taken = sa.update(table).where(table.c.id == trust_id, left).values(remaining_uses=table.c.remaining_uses - 1)
    return connection.execute(taken).rowcount > 0


def delete_trust(connection: sa.Connection, trust_id: str) -> None:
    """Remove a trust, and with it the tokens that it gave. Raises NotFoundError."""
    if connection.execute(sa.delete(table).where(table.c.id == trust_id)).rowcount == 0:
        raise NotFoundError(f"Could not find trust: {trust_id[:64]}.")
