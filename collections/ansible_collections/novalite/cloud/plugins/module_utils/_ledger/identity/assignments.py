# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Assignments of roles: to a user or a group, in a project or a domain, there or (inherited) in the projects below."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import ForbiddenError
from ..db.tables import project
from ..db.tables_identity import role_assignment as table
from ..queries.identity.assignments import Place, find_role


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
