# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on the roles that users and groups have in projects and domains, for every door."""

from __future__ import annotations

import typing as t

from ...identity import assignments, users
from ...identity.assignments import Place
from ..call import Call

CREATE: t.Final = "identity:assignments:create"
DELETE: t.Final = "identity:assignments:delete"


class Held(t.NamedTuple):
    """A role that a user has in a project."""

    project_id: str
    role_id: str


def set_roles(call: Call, user_id: str, roles: t.Collection[Held]) -> None:
    """Let a user have of the roles that come with the cloud these, in these projects, and no others. Raises
    ForbiddenError for who may not give or take one."""
    before = {Held(row["project_id"], row["role"]) for row in users.list_roles(call.connection, user_id)}
    for held in sorted(before - set(roles)):
        call.check(DELETE)
        assignments.revoke(call.connection, _place(user_id, held), held.role_id)
    for held in sorted(set(roles) - before):
        call.check(CREATE)
        users.grant_role(call.connection, user_id, held.project_id, held.role_id)


def _place(user_id: str, held: Held) -> Place:
    return Place(user_id=user_id, project_id=held.project_id)
