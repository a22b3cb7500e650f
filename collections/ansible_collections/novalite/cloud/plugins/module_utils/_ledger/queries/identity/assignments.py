# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Roles, and who has them: they are given to a user or to a group of it, there, or above and inherited. Reads only."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...._json import JsonObject
from ...db.tables import project
from ...db.tables_identity import domain, role, role_assignment, user, user_group, user_group_member
from ...db.tables_identity import role_assignment as table
from ..counts import equal

Role = JsonObject
ROLES = ("reader", "member", "manager", "admin")  # each has the rights of those before it; their ids are these names
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


Assignment = JsonObject


@dataclasses.dataclass(frozen=True)
class Place:
    """The side of an assignment that is no role: one actor, one target."""

    user_id: str | None = None
    group_id: str | None = None
    project_id: str | None = None
    domain_id: str | None = None
    inherited: bool = False

    @property
    def columns(self) -> dict[str, t.Any]:
        return {key: value for key, value in dataclasses.asdict(self).items() if value is not None}

    @property
    def conditions(self) -> list[sa.ColumnElement[bool]]:
        return [table.c[name] == value for name, value in self.columns.items()]


def roles_at(connection: sa.Connection, place: Place) -> list[JsonObject]:
    """Return the roles that were given right there, by name."""
    query = sa.select(role).join(table, table.c.role == role.c.id).where(*place.conditions).order_by(role.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def list_assignments(
    connection: sa.Connection,
    *,
    user_id: str | None = None,
    group_id: str | None = None,
    role_id: str | None = None,
    project_ids: t.Collection[str] | None = None,
    domain_id: str | None = None,
    inherited: bool | None = None,
    effective: bool = False,
) -> list[Assignment]:
    """List assignments as they were given; or, `effective`, as they work: to users, without groups and inheritance,
    and with the roles that a role implies.

    Each has the columns of its row and, where they apply, {user,group,project,domain,role}_name, _domain_id and
    _domain_name; an effective one has in `through` the assignment that it comes from.
    """
    conditions = equal({table.c.group_id: group_id, table.c.inherited: inherited})
    if not effective:
        conditions += equal({table.c.user_id: user_id, table.c.role: role_id, table.c.domain_id: domain_id})
        conditions += [] if project_ids is None else [table.c.project_id.in_(project_ids)]
    query = sa.select(table).where(*conditions).order_by(table.c.id)
    if effective:  # a role of one domain alone stands in no token
        query = query.join(role).where(role.c.domain_id.is_(None))
    rows = [dict(row) for row in connection.execute(query).mappings()]
    if effective:
        rows = _worked_out(connection, rows)
        rows = [
            row
            for row in rows
            if user_id in (None, row["user_id"])
            and role_id in (None, row["role"])
            and domain_id in (None, row["domain_id"])
            and (project_ids is None or row["project_id"] in project_ids)
        ]
    return _named(connection, rows)


def _worked_out(connection: sa.Connection, rows: t.Sequence[Assignment]) -> list[Assignment]:
    members: dict[str, list[str]] = {}
    for member in connection.execute(sa.select(user_group_member)):
        members.setdefault(member.group_id, []).append(member.user_id)
    below: dict[str, list[str]] = {}
    for number, over in ancestry(connection).items():
        for above in over:
            below.setdefault(above, []).append(number)
    assignments: dict[tuple[t.Any, ...], Assignment] = {}
    for row in rows:
        users = [row["user_id"]] if row["group_id"] is None else members.get(row["group_id"], [])
        targets = [(row["project_id"], row["domain_id"])]
        if row["inherited"]:
            targets = [(number, None) for number in below.get(row["project_id"] or row["domain_id"], [])]
        for user_id in users:
            for project_id, domain_id in targets:
                for role_id in implied_ids(row["role"]):
                    assignments.setdefault(
                        (user_id, project_id, domain_id, role_id),
                        {
                            **row,
                            "user_id": user_id,
                            "group_id": None,
                            "project_id": project_id,
                            "domain_id": domain_id,
                            "role": role_id,
                            "inherited": False,
                            "through": row,
                        },
                    )
    return list(assignments.values())


def _named(connection: sa.Connection, rows: list[Assignment]) -> list[Assignment]:
    domains = {row.id: row.name for row in connection.execute(sa.select(domain.c.id, domain.c.name))}
    for key, of in (("user_id", user), ("group_id", user_group), ("project_id", project), ("role", role)):
        name = sa.func.coalesce(of.c.display_name, of.c.name) if "display_name" in of.c else of.c.name
        query = sa.select(of.c.id, name.label("name"), of.c.domain_id)
        if len(rows) < 100:  # of a few, only these are read
            query = query.where(of.c.id.in_({row[key] for row in rows if row[key] is not None}))
        records = {record.id: record for record in connection.execute(query)}
        for row in rows:
            record = records.get(row[key])
            word = key.removesuffix("_id")
            if record is not None:
                row[f"{word}_name"], row[f"{word}_domain_id"] = record.name, record.domain_id
                row[f"{word}_domain_name"] = domains.get(record.domain_id)
    return [{**row, "domain_name": domains.get(row["domain_id"])} for row in rows]


def implied_ids(role_id: str) -> tuple[str, ...]:
    """Return the role's own id with those that it implies."""
    return ROLES[: ROLES.index(role_id) + 1] if role_id in ROLES else (role_id,)


def implied(roles: t.Iterable[str]) -> frozenset[str]:
    """Return `roles` with those that each implies."""
    return frozenset(number for role_id in roles for number in implied_ids(role_id))


def find_role(connection: sa.Connection, role_id: str) -> Role:
    """Return the role of this id. Raises NotFoundError."""
    row = connection.execute(sa.select(role).where(role.c.id == role_id)).mappings().first()
    if row is None:
        raise NotFoundError(f"Could not find role: {role_id[:64]}.")
    return dict(row)


def list_roles(connection: sa.Connection, domain_id: str | None = None, name: str | None = None) -> list[Role]:
    """Return the roles of a domain alone, or (None) those for all domains; by name."""
    mine = role.c.domain_id.is_(None) if domain_id is None else role.c.domain_id == domain_id
    query = sa.select(role).where(mine, *equal({role.c.name: name})).order_by(role.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]


def named_roles(connection: sa.Connection, ids: t.Collection[str]) -> dict[str, str]:
    """Return the names of those of the roles that are there, by their ids."""
    query = sa.select(role.c.id, role.c.name).where(role.c.id.in_(list(ids)))
    return {row.id: row.name for row in connection.execute(query)}
