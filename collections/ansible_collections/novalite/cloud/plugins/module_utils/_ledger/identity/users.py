# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users, and what they are in which project: for the operation `user` and for the API."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import check_text, checked_names
from ..db import clock, tables
from ..db.tables_identity import DEFAULT_DOMAIN, domain, role_assignment, user
from ..queries.counts import equal, is_any
from .assignments import Place, grant, revoke
from .key_owners import remove_keys
from .roles import ROLES
from .tokens import revoke_tokens

User = JsonObject  # its row, and `shown_name`: what Identity shows; `name` is the playbooks' handle

TEXT_LENGTH = 255
EDITABLE = ("name", "enabled", "description", "email", "default_project_id", "password_hash", "extra", "options")

SHOWN: sa.ColumnElement[str] = sa.func.coalesce(user.c.display_name, user.c.name)
_USERS = sa.select(user, SHOWN.label("shown_name"))


def find_user(connection: sa.Connection, user_id: str) -> User:
    """The user's row. Raises NotFoundError."""
    row = user_by_id(connection, user_id)
    if row is None:
        raise NotFoundError(f"Could not find user: {user_id[:64]}.")
    return row


def user_by_id(connection: sa.Connection, user_id: str) -> User | None:
    return _first(connection, user.c.id == user_id)


def user_by_name(connection: sa.Connection, name: str, domain_id: str = DEFAULT_DOMAIN) -> User | None:
    """The user that the domain has under this name; None where there is none."""
    return _first(connection, _is_shown_as(name), user.c.domain_id == domain_id)


def list_users(
    connection: sa.Connection, name: str | None = None, enabled: bool | None = None, domain_id: str | None = None
) -> list[User]:
    """List all users by name, or only those of this name, state or domain."""
    conditions = equal({user.c.enabled: enabled, user.c.domain_id: domain_id})
    conditions += [] if name is None else [_is_shown_as(name)]
    query = _USERS.where(*conditions).order_by(SHOWN, user.c.id)
    return [dict(row) for row in connection.execute(query).mappings()]


def is_in_enabled_domain(connection: sa.Connection, record: JsonMapping) -> bool:
    """Return whether the domain of the user or project `record` is enabled."""
    return is_any(connection, domain.c.id == record["domain_id"], domain.c.enabled)


def insert_user(connection: sa.Connection, values: JsonMapping, domain_id: str = DEFAULT_DOMAIN) -> User:
    """Make a user of `values` (see EDITABLE) in the domain, which must be there.

    Raises ConflictError for a name that is taken.
    """
    checked = _checked(values)
    name = checked["name"]
    if user_by_name(connection, name, domain_id) is not None:
        raise ConflictError(f"a user {name!r} exists already")
    row = {"id": uuid.uuid4().hex, "created_at": clock.seconds(connection), "domain_id": domain_id, **checked}
    if domain_id != DEFAULT_DOMAIN:
        # what playbooks know it by is one over all domains
        row |= {"name": f"{name[:222]}-{row['id']}", "display_name": name}
    connection.execute(sa.insert(user).values(**row))
    return find_user(connection, row["id"])


def update_user(connection: sa.Connection, user_id: str, values: JsonMapping) -> User:
    """Change `values` of a user. A new password, or to disable the user, makes its tokens void."""
    before = find_user(connection, user_id)
    values = _checked(values)
    name = values.pop("name", before["shown_name"])
    changed = {key: value for key, value in values.items() if before[key] != value}
    if name != before["shown_name"]:
        if user_by_name(connection, name, before["domain_id"]) is not None:
            raise ConflictError(f"a user {name!r} exists already")
        changed["name" if before["display_name"] is None else "display_name"] = name
    if not changed:
        return before
    connection.execute(sa.update(user).where(user.c.id == user_id).values(**changed))
    if "password_hash" in changed or changed.get("enabled") is False:
        revoke_tokens(connection, user_id)
    return find_user(connection, user_id)


def delete_user(connection: sa.Connection, user_id: str) -> None:
    """Remove a user with its roles, tokens and credentials. Raises NotFoundError."""
    if connection.execute(sa.delete(user).where(user.c.id == user_id)).rowcount == 0:
        raise NotFoundError(f"Could not find user: {user_id[:64]}.")
    remove_keys(connection, "user_id", [user_id])


def grant_role(connection: sa.Connection, user_id: str, project_id: str, role: str) -> None:
    """Give one of the four roles, unless the user has it already."""
    if role not in ROLES:
        raise NovaliteError(f"role {role!r} is none: there are {', '.join(ROLES)}")
    grant(connection, Place(user_id=user_id, project_id=project_id), role)


def revoke_role(connection: sa.Connection, user_id: str, project_id: str, role: str) -> bool:
    """Take a role away; it counts at once, for tokens that exist too. Returns whether the user had it."""
    return revoke(connection, Place(user_id=user_id, project_id=project_id), role)


def list_roles(connection: sa.Connection, user_id: str) -> list[JsonObject]:
    """List which of the four roles were given to the user in which projects: project_id, project_name, role."""
    assignment, project = role_assignment.c, tables.project
    query = (
        sa.select(assignment.project_id, project.c.name.label("project_name"), assignment.role)
        .join(project, project.c.id == assignment.project_id)
        .where(assignment.user_id == user_id, ~assignment.inherited, assignment.role.in_(ROLES))
        .order_by(project.c.name, assignment.role)
    )
    return [dict(row) for row in connection.execute(query).mappings()]


def _is_shown_as(name: str) -> sa.ColumnElement[bool]:
    return sa.or_(user.c.display_name == name, sa.and_(user.c.display_name.is_(None), user.c.name == name))


def _first(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> User | None:
    row = connection.execute(_USERS.where(*conditions)).mappings().first()
    return None if row is None else dict(row)


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
