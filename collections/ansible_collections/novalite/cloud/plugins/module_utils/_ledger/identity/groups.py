# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Groups of users, which have roles as users have."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import check_text, checked_names
from ..db.tables_identity import user_group as table
from ..db.tables_identity import user_group_member as member
from ..queries.counts import count
from ..queries.identity.user_records import Group, find_group, list_groups

NAME_LENGTH = 64  # Keystone's
MOST = 1000  # in a domain


def create_group(connection: sa.Connection, values: JsonMapping) -> Group:
    """Make a group of `name`, `domain_id`, `description` and `extra`. The domain must be there.

    Raises ConflictError for a name that the domain has already.
    """
    row = {"id": uuid.uuid4().hex, "domain_id": values["domain_id"], **_checked(values)}
    if count(connection, table.c.domain_id == row["domain_id"]) >= MOST:
        raise NovaliteError(f"the domain has {MOST} groups, and no more can be made: delete one first")
    _refuse_taken(connection, row["name"], row["domain_id"])
    connection.execute(sa.insert(table).values(**row))
    return find_group(connection, row["id"])


def update_group(connection: sa.Connection, group_id: str, values: JsonMapping) -> Group:
    """Change `name`, `description` or `extra` of a group. Raises ConflictError for a name that is taken."""
    before = find_group(connection, group_id)
    changed = {key: value for key, value in _checked(values).items() if before[key] != value}
    if "name" in changed:
        _refuse_taken(connection, changed["name"], before["domain_id"])
    if changed:
        connection.execute(sa.update(table).where(table.c.id == group_id).values(**changed))
    return find_group(connection, group_id)


def delete_group(connection: sa.Connection, group_id: str) -> None:
    """Remove a group with its roles. Raises NotFoundError."""
    if connection.execute(sa.delete(table).where(table.c.id == group_id)).rowcount == 0:
        raise NotFoundError(f"Could not find group: {group_id[:64]}.")


def add_member(connection: sa.Connection, group_id: str, user_id: str) -> None:
    """Put the user into the group, unless it is there already. Both must exist."""
    insert = "INSERT INTO user_group_member (group_id, user_id) VALUES (:group, :user) ON CONFLICT DO NOTHING"
    connection.execute(sa.text(insert), {"group": group_id, "user": user_id})


def remove_member(connection: sa.Connection, group_id: str, user_id: str) -> bool:
    """Take the user out of the group; return whether it was there. What it had by the group is gone at once."""
    mine = (member.c.group_id == group_id, member.c.user_id == user_id)
    return connection.execute(sa.delete(member).where(*mine)).rowcount > 0


def _refuse_taken(connection: sa.Connection, name: str, domain_id: str) -> None:
    if list_groups(connection, name, domain_id):
        raise ConflictError(f"Conflict occurred attempting to store group - Duplicate entry found with name {name}.")


def _checked(values: JsonMapping) -> JsonObject:
    checked = {key: values[key] for key in ("extra",) if key in values}
    if "name" in values:
        (checked["name"],) = checked_names("group", [values], NAME_LENGTH)
    if "description" in values:
        checked["description"] = check_text("group's description", values["description"])
    return checked
