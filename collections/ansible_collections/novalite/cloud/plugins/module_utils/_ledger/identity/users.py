# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users, and what they are in which project: for the operation `user` and for the API."""

from __future__ import annotations

import time
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import check_text, checked_names
from ..db import tables
from ..db.tables_identity import role_assignment, user
from ..queries.counts import equal
from .tokens import revoke_tokens

User = JsonObject

ROLES = ("reader", "member", "manager", "admin")  # each has the rights of those before it
TEXT_LENGTH = 255
EDITABLE = ("name", "enabled", "description", "email", "default_project_id", "password_hash")


def find_user(connection: sa.Connection, user_id: str) -> User:
    """The user's row. Raises NotFoundError."""
    row = user_by_id(connection, user_id)
    if row is None:
        raise NotFoundError(f"Could not find user: {user_id[:64]}.")
    return row


def user_by_id(connection: sa.Connection, user_id: str) -> User | None:
    row = connection.execute(sa.select(user).where(user.c.id == user_id)).mappings().first()
    return None if row is None else dict(row)


def user_by_name(connection: sa.Connection, name: str) -> User | None:
    row = connection.execute(sa.select(user).where(user.c.name == name)).mappings().first()
    return None if row is None else dict(row)


def list_users(connection: sa.Connection, name: str | None = None, enabled: bool | None = None) -> list[User]:
    """All users, by name."""
    query = sa.select(user).where(*equal({user.c.name: name, user.c.enabled: enabled})).order_by(user.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def insert_user(connection: sa.Connection, values: JsonMapping) -> User:
    """Make a user of `values` (see EDITABLE). Raises ConflictError for a name that is taken."""
    checked = _checked(values)
    if user_by_name(connection, checked["name"]) is not None:
        raise ConflictError(f"a user {checked['name']!r} exists already")
    row = {"id": uuid.uuid4().hex, "created_at": int(time.time()), **checked}
    connection.execute(sa.insert(user).values(**row))
    return find_user(connection, row["id"])


def update_user(connection: sa.Connection, user_id: str, values: JsonMapping) -> User:
    """Change `values` of a user. A new password, or to disable the user, makes its tokens void."""
    before = find_user(connection, user_id)
    changed = {key: value for key, value in _checked(values).items() if before[key] != value}
    if not changed:
        return before
    if "name" in changed and user_by_name(connection, changed["name"]) is not None:
        raise ConflictError(f"a user {changed['name']!r} exists already")
    connection.execute(sa.update(user).where(user.c.id == user_id).values(**changed))
    if "password_hash" in changed or changed.get("enabled") is False:
        revoke_tokens(connection, user_id)
    return find_user(connection, user_id)


def delete_user(connection: sa.Connection, user_id: str) -> None:
    """Remove a user with its roles, tokens and credentials. Raises NotFoundError."""
    if connection.execute(sa.delete(user).where(user.c.id == user_id)).rowcount == 0:
        raise NotFoundError(f"Could not find user: {user_id[:64]}.")


def grant_role(connection: sa.Connection, user_id: str, project_id: str, role: str) -> None:
    """Give a role, unless the user has it already."""
    if role not in ROLES:
        raise NovaliteError(f"role {role!r} is none: there are {', '.join(ROLES)}")
    insert = "INSERT INTO role_assignment (user_id, project_id, role) VALUES (:user, :project, :role)"
    mine = {"user": user_id, "project": project_id, "role": role}
    connection.execute(sa.text(f"{insert} ON CONFLICT DO NOTHING"), mine)


def revoke_role(connection: sa.Connection, user_id: str, project_id: str, role: str) -> bool:
    """Take a role away; it counts at once, for tokens that exist too. Returns whether the user had it."""
    mine = _assigned(user_id, project_id, role)
    return connection.execute(sa.delete(role_assignment).where(*mine)).rowcount > 0


def list_roles(
    connection: sa.Connection, user_id: str | None = None, project_id: str | None = None, role: str | None = None
) -> list[JsonObject]:
    """List role assignments: user_id, user_name, project_id, project_name, role."""
    one = role_assignment
    query = (
        sa.select(one, user.c.name.label("user_name"), tables.project.c.name.label("project_name"))
        .select_from(one.join(user).join(tables.project, tables.project.c.id == one.c.project_id))
        .where(*_assigned(user_id, project_id, role))
        .order_by(tables.project.c.name, user.c.name, one.c.role)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def roles_in(connection: sa.Connection, user_id: str, project_id: str) -> set[str]:
    return {row["role"] for row in list_roles(connection, user_id, project_id)}


def _assigned(user_id: str | None, project_id: str | None, role: str | None) -> list[sa.ColumnElement[bool]]:
    one = role_assignment.c
    return equal({one.user_id: user_id, one.project_id: project_id, one.role: role})


def _checked(values: JsonMapping) -> JsonObject:
    unknown = set(values) - set(EDITABLE)
    if unknown:
        raise ValueError(f"{sorted(unknown)} cannot be set")
    checked = dict(values)
    if "name" in checked:
        checked_names("user", [checked])
    for key in ("description", "email"):
        if checked.get(key) is not None:
            check_text(f"user's {key}", checked[key], TEXT_LENGTH)
    return checked
