# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles that a user has somewhere: given to the user or to a group of it, there, or above and inherited. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db.tables import project
from ..db.tables_identity import domain, role, role_assignment, user_group_member

Names = dict[str, str]  # of roles, by their ids

_USER: sa.ColumnElement[str] = sa.bindparam("user_id")
_PROJECT: sa.ColumnElement[str] = sa.bindparam("project_id")
_DOMAIN: sa.ColumnElement[str] = sa.bindparam("domain_id")
_ONE = role_assignment.c


def held_by(user_id: sa.ColumnElement[t.Any] | str) -> sa.ColumnElement[bool]:
    """Return the condition that an assignment is the user's, or one of its groups'."""
    groups = sa.select(user_group_member.c.group_id).where(user_group_member.c.user_id == user_id)
    return sa.or_(_ONE.user_id == user_id, _ONE.group_id.in_(groups))


def _lineage() -> sa.CTE:
    """Return the project and those above it."""
    columns = (project.c.id, project.c.parent_id, project.c.domain_id)
    lineage = sa.select(*columns).where(project.c.id == _PROJECT).cte("lineage", recursive=True)
    return lineage.union_all(sa.select(*columns).where(project.c.id == lineage.c.parent_id))


_LINEAGE = _lineage()
# a role of one domain alone is for roles that it would imply, and stands in no token
_ROLES = (
    sa.select(role.c.id, role.c.name).join(role_assignment, _ONE.role == role.c.id).where(role.c.domain_id.is_(None))
)
_IN_PROJECT = (  # asked with every request, and made once
    _ROLES.where(
        held_by(_USER),
        sa.or_(
            sa.and_(_ONE.project_id == _PROJECT, ~_ONE.inherited),
            sa.and_(
                _ONE.inherited,
                sa.or_(
                    _ONE.project_id.in_(sa.select(_LINEAGE.c.id).where(_LINEAGE.c.id != _PROJECT)),
                    _ONE.domain_id.in_(sa.select(_LINEAGE.c.domain_id)),
                ),
            ),
        ),
    )
)
_IN_DOMAIN = _ROLES.where(held_by(_USER), _ONE.domain_id == _DOMAIN, ~_ONE.inherited)


def roles_in_project(connection: sa.Connection, user_id: str, project_id: str) -> Names:
    """Return the roles that the user has in the project now, without those that they imply."""
    rows = connection.execute(_IN_PROJECT, {"user_id": user_id, "project_id": project_id})
    return {row.id: row.name for row in rows}


def roles_in_domain(connection: sa.Connection, user_id: str, domain_id: str) -> Names:
    """Return the roles that the user has in the domain itself now, without those that they imply."""
    rows = connection.execute(_IN_DOMAIN, {"user_id": user_id, "domain_id": domain_id})
    return {row.id: row.name for row in rows}


def projects_with_roles(connection: sa.Connection, user_id: str) -> set[str]:
    """Return the ids of the projects in which the user has a role."""
    query = sa.select(_ONE.project_id, _ONE.domain_id, _ONE.inherited).where(held_by(user_id))
    held = connection.execute(query.join(role).where(role.c.domain_id.is_(None))).all()
    direct = {row.project_id for row in held if row.project_id is not None and not row.inherited}
    above = {row.project_id or row.domain_id for row in held if row.inherited}
    if not above:
        return direct
    return direct | {project_id for project_id, over in ancestry(connection).items() if above & set(over)}


def ancestry(connection: sa.Connection) -> dict[str, list[str]]:
    """Return for each project's id those of the projects above it, the nearest first, and of its domain."""
    rows = connection.execute(sa.select(project.c.id, project.c.parent_id, project.c.domain_id)).all()
    parents = {row.id: row.parent_id for row in rows}
    ancestors_by_project = {}
    for row in rows:
        over, parent = [], row.parent_id
        while parent is not None:
            over.append(parent)
            parent = parents.get(parent)
        ancestors_by_project[row.id] = [*over, row.domain_id]
    return ancestors_by_project


def domains_with_roles(connection: sa.Connection, user_id: str) -> list[str]:
    """Return the ids of the enabled domains in which the user has a role."""
    query = (
        sa.select(domain.c.id)
        .join(role_assignment, _ONE.domain_id == domain.c.id)
        .join(role)
        .where(held_by(user_id), ~_ONE.inherited, domain.c.enabled, role.c.domain_id.is_(None))
        .distinct()
    )
    return list(connection.execute(query).scalars())
