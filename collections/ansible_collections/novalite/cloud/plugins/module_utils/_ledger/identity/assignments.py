# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Assignments of roles: to a user or a group, in a project or a domain, there or (inherited) in the projects below."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import ForbiddenError
from ..._json import JsonObject
from ..db.tables import project
from ..db.tables_identity import domain, role, user, user_group, user_group_member
from ..db.tables_identity import role_assignment as table
from ..queries.assignments import ancestry
from ..queries.counts import equal
from .roles import find_role, implied_ids

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


def grant(connection: sa.Connection, place: Place, role_id: str) -> None:
    """Give a role, unless it was given already. Raises ForbiddenError for a role of another domain than the project's.

    The actor and the target must be there; so must the role (NotFoundError).
    """
    record = find_role(connection, role_id)
    if place.project_id is not None and record["domain_id"] is not None:
        of = connection.execute(sa.select(project.c.domain_id).where(project.c.id == place.project_id)).scalar_one()
        if of != record["domain_id"]:
            raise ForbiddenError(
                f"role {record['name']!r} is of another domain than the project: it cannot be had there"
            )
    values = {**place.columns, "role": role_id}
    insert = f"INSERT INTO role_assignment ({', '.join(values)}) VALUES ({', '.join(f':{name}' for name in values)})"
    connection.execute(sa.text(f"{insert} ON CONFLICT DO NOTHING"), values)


def revoke(connection: sa.Connection, place: Place, role_id: str) -> bool:
    """Take a role away; it counts at once, for tokens that exist too. Returns whether it was there."""
    taken = sa.delete(table).where(*place.conditions, table.c.role == role_id)
    return connection.execute(taken).rowcount > 0


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
