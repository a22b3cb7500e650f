# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users and their groups. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import JsonMapping, JsonObject
from ...db import tables
from ...db.tables_identity import DEFAULT_DOMAIN, domain, role_assignment, user
from ...db.tables_identity import user_group as table
from ...db.tables_identity import user_group_member as member
from ..counts import equal, is_any
from .assignments import ROLES

User = JsonObject  # its row, and `shown_name`: what Identity shows; `name` is the playbooks' handle
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


Group = JsonObject


def find_group(connection: sa.Connection, group_id: str) -> Group:
    """Return the group of this id. Raises NotFoundError."""
    row = connection.execute(sa.select(table).where(table.c.id == group_id)).mappings().first()
    if row is None:
        raise NotFoundError(f"Could not find group: {group_id[:64]}.")
    return dict(row)


def list_groups(
    connection: sa.Connection, name: str | None = None, domain_id: str | None = None, user_id: str | None = None
) -> list[Group]:
    """Return all groups, by name; or those of this name or domain, or that the user is in."""
    query = sa.select(table).where(*equal({table.c.name: name, table.c.domain_id: domain_id}))
    if user_id is not None:
        query = query.join(member, member.c.group_id == table.c.id).where(member.c.user_id == user_id)
    return [dict(row) for row in connection.execute(query.order_by(table.c.name, table.c.id)).mappings()]


def members_of(connection: sa.Connection, group_id: str) -> list[str]:
    """Return the ids of the users in the group."""
    return list(connection.execute(sa.select(member.c.user_id).where(member.c.group_id == group_id)).scalars())


def is_member(connection: sa.Connection, group_id: str, user_id: str) -> bool:
    return is_any(connection, member.c.group_id == group_id, member.c.user_id == user_id)
