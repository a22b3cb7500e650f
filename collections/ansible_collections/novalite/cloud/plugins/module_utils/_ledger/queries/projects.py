# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects: which there are, and whose. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonObject
from ..db.tables import project
from ..db.tables_identity import role_assignment

Record = JsonObject


def projects(connection: sa.Connection) -> list[Record]:
    """Return all projects, by name."""
    return _rows(connection, sa.true())


def project_by_id(connection: sa.Connection, project_id: str) -> Record | None:
    """Return the project's record; None where there is none of this id."""
    rows = _rows(connection, project.c.id == project_id)
    return rows[0] if rows else None


def project_name(connection: sa.Connection, project_id: str) -> str | None:
    """Return the name of the project of this id; None where there is none."""
    return connection.execute(sa.select(project.c.name).where(project.c.id == project_id)).scalar()


def project_id_of(connection: sa.Connection, name: str) -> str | None:
    """Return the id of the project of this name; None where there is none."""
    return connection.execute(sa.select(project.c.id).where(project.c.name == name)).scalar()


def projects_of_user(connection: sa.Connection, user_id: str) -> list[Record]:
    """Return the enabled projects that the user has a role in, by name."""
    held = sa.select(role_assignment.c.project_id).where(role_assignment.c.user_id == user_id)
    return _rows(connection, sa.and_(project.c.id.in_(held), project.c.enabled))


def _rows(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[Record]:
    query = sa.select(project).where(condition).order_by(project.c.name)
    return [dict(row) for row in connection.execute(query).mappings()]
