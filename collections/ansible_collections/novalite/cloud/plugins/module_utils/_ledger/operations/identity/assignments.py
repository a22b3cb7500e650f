# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on the roles that users and groups have in projects and domains, for every door."""

from __future__ import annotations

import typing as t

from ...identity import assignments, users
from ...queries.identity import projects, user_records
from ...queries.identity.assignments import Place
from ..call import Call


class Held(t.NamedTuple):
    """A role that a user has in a project."""

    project_id: str
    role_id: str


def grant(call: Call, place: Place, role_id: str) -> None:
    """Give a role, unless it was given already. Raises NotFoundError, ForbiddenError for a role of another domain than
    the project's."""
    check_place(call, place)
    assignments.grant(call.connection, place, role_id)


def revoke(call: Call, place: Place, role_id: str) -> bool:
    """Take a role away; return whether it was given. Raises NotFoundError for who or what is not there."""
    check_place(call, place)
    return assignments.revoke(call.connection, place, role_id)


def check_place(call: Call, place: Place) -> None:
    """Raise NotFoundError unless there are the user or the group, and the project or the domain, of `place`."""
    for find, number in (
        (projects.find_project, place.project_id),
        (projects.find_domain, place.domain_id),
        (user_records.find_user, place.user_id),
        (user_records.find_group, place.group_id),
    ):
        if number is not None:
            find(call.connection, number)


def set_roles(call: Call, user_id: str, roles: t.Collection[Held]) -> None:
    """Let a user have of the roles that come with the cloud these, in these projects, and no others. Raises
    ForbiddenError for who may not give or take them."""
    before = {Held(row["project_id"], row["role"]) for row in user_records.list_roles(call.connection, user_id)}
    for held in sorted(before - set(roles)):
        call.check("identity:assignments:delete")
        users.revoke_role(call.connection, user_id, *held)
    for held in sorted(set(roles) - before):
        call.check("identity:assignments:create")
        users.grant_role(call.connection, user_id, *held)
