# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles, and those that they imply. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import JsonObject
from ...db.tables_identity import role as table
from ..counts import equal

Role = JsonObject
ROLES = ("reader", "member", "manager", "admin")  # each has the rights of those before it; their ids are these names


def implied_ids(role_id: str) -> tuple[str, ...]:
    """Return the role's own id with those that it implies."""
    return ROLES[: ROLES.index(role_id) + 1] if role_id in ROLES else (role_id,)


def implied(roles: t.Iterable[str]) -> frozenset[str]:
    """Return `roles` with those that each implies."""
    return frozenset(number for role_id in roles for number in implied_ids(role_id))


def find_role(connection: sa.Connection, role_id: str) -> Role:
    """Return the role of this id. Raises NotFoundError."""
    row = connection.execute(sa.select(table).where(table.c.id == role_id)).mappings().first()
    if row is None:
        raise NotFoundError(f"Could not find role: {role_id[:64]}.")
    return dict(row)


def list_roles(connection: sa.Connection, domain_id: str | None = None, name: str | None = None) -> list[Role]:
    """Return the roles of a domain alone, or (None) those for all domains; by name."""
    mine = table.c.domain_id.is_(None) if domain_id is None else table.c.domain_id == domain_id
    query = sa.select(table).where(mine, *equal({table.c.name: name})).order_by(table.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def named_roles(connection: sa.Connection, ids: t.Collection[str]) -> dict[str, str]:
    """Return the names of those of the roles that are there, by their ids."""
    query = sa.select(table.c.id, table.c.name).where(table.c.id.in_(list(ids)))
    return {row.id: row.name for row in connection.execute(query)}
