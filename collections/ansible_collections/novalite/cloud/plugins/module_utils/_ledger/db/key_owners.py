# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Key pairs of ledgers from before revision 0039, which belonged to projects, become those of their users."""

from __future__ import annotations

import hashlib

import sqlalchemy as sa

_OF_USERS = sa.text("SELECT project_id, name, user_id FROM keypair WHERE user_id <> '' ORDER BY created_at, project_id")
_SHARED = sa.text("UPDATE keypair SET user_id = '' WHERE project_id = :project AND name = :name")
_OWN = [
    sa.text(f"UPDATE {table} SET user_id = :user, project_id = '' WHERE project_id = :project AND name = :name")
    for table in ("keypair", "ec2_keypair")
]
_TAGS = sa.text("UPDATE ec2_tag SET resource = :new WHERE project_id = :project AND resource = :old")


def give_to_users(connection: sa.Connection) -> None:
    """Give each key pair to the user who made it. What nobody could own stays all of the project's, as it was: a key of
    a user who is gone, and the younger of two of one name that a user made in several projects."""
    users = set(connection.execute(sa.text('SELECT id FROM "user"')).scalars())
    owned: set[tuple[str, str]] = set()
    for project, name, user in connection.execute(_OF_USERS).all():
        place = {"project": project, "name": name}
        if user not in users or (user, name) in owned:
            connection.execute(_SHARED, place)
            continue
        owned.add((user, name))
        for statement in _OWN:
            connection.execute(statement, {**place, "user": user})
        old, new = (_ec2_id(owner, name) for owner in (project, user))
        connection.execute(_TAGS, {"project": project, "old": old, "new": new})


def _ec2_id(owner: str, name: str) -> str:
    """The id of a key pair as api/ec2/ids.py makes it."""
    return f"key-{hashlib.sha256(f'{owner}/{name}'.encode()).hexdigest()[:17]}"
