# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Users, and what they are in which project: for the operation `user` and for the API."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules.records import check_text, checked_names
from ..db import clock
from ..db.tables_identity import DEFAULT_DOMAIN, user
from ..queries.identity.assignments import ROLES, Place
from ..queries.identity.user_records import User, find_user, user_by_name
from .assignments import grant, revoke
from .key_owners import remove_keys
from .tokens import revoke_tokens

TEXT_LENGTH = 255
EDITABLE = ("name", "enabled", "description", "email", "default_project_id", "password_hash", "extra", "options")


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
