# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles. Four come with the ledger, cannot be changed, and have rights; those that are made besides give none."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, ForbiddenError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import check_text, checked_names
from ..db.tables_identity import role as table
from ..queries.counts import count
from ..queries.identity.assignments import ROLES, Role, find_role, list_roles

MOST = 1000  # in the ledger


def create_role(connection: sa.Connection, name: str, domain_id: str | None, description: str = "") -> Role:
    """Make a role. Raises ConflictError for a name that is taken."""
    row = {"id": uuid.uuid4().hex, "domain_id": domain_id, **_checked(name, description)}
    if count(connection, table.c.id.is_not(None)) >= MOST:
        raise NovaliteError(f"there are {MOST} roles, and no more can be made: delete some that nobody has")
    _refuse_taken(connection, row["name"], domain_id)
    connection.execute(sa.insert(table).values(**row))
    return find_role(connection, row["id"])


def update_role(connection: sa.Connection, role_id: str, values: JsonMapping) -> Role:
    """Change the name or the description of a role of one's own. Raises ForbiddenError for one of the four."""
    before = find_role(connection, role_id)
    _refuse_ours(before)
    after = _checked(values.get("name", before["name"]), values.get("description", before["description"]))
    if after["name"] != before["name"]:
        _refuse_taken(connection, after["name"], before["domain_id"])
    connection.execute(sa.update(table).where(table.c.id == role_id).values(**after))
    return find_role(connection, role_id)


def delete_role(connection: sa.Connection, role_id: str) -> None:
    """Remove a role of one's own, and with it all of its assignments. Raises ForbiddenError for one of the four."""
    _refuse_ours(find_role(connection, role_id))
    connection.execute(sa.delete(table).where(table.c.id == role_id))


def _refuse_ours(record: JsonMapping) -> None:
    if record["id"] in ROLES:
        raise ForbiddenError(f"role {record['name']!r} comes with the cloud: it can be neither changed nor removed")


def _refuse_taken(connection: sa.Connection, name: str, domain_id: str | None) -> None:
    if list_roles(connection, domain_id, name):
        raise ConflictError(f"Conflict occurred attempting to store role - a role {name!r} exists.")


def _checked(name: str, description: str) -> JsonObject:
    (name,) = checked_names("role", [{"name": name}])
    return {"name": name, "description": check_text("role's description", description)}
