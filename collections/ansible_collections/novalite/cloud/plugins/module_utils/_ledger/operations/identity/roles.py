# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on roles that are made beside those that come with the cloud, for every door."""

from __future__ import annotations

import typing as t

from ...identity import roles
from ...queries.identity import assignments
from ...queries.identity.assignments import Names, Role
from ..call import Call
from .attributes import keep_domain
from .domains import place_for


class RoleRequest(t.TypedDict, total=False):
    """Values of a role; a new role without a domain is for all of them."""

    name: str
    description: str
    domain_id: str | None


class RoleChoice(t.NamedTuple):
    """A role that a client names by its id or, without one, by its name; `text` is what the client wrote."""

    role_id: str | None
    name: str | None
    text: str


def names_of(assigned: Names, role_ids: t.Iterable[str]) -> Names:
    """Return the names of roles that are among those `assigned`, or implied by them."""
    return {role_id: assigned.get(role_id, role_id) for role_id in role_ids}


def chosen(names: Names, choice: RoleChoice) -> str | None:
    """Return which of the roles `names` the client chose; None for another. An id goes before a name, as in
    Keystone."""
    if choice.role_id is not None:
        return choice.role_id if choice.role_id in names else None
    return next((role_id for role_id, name in names.items() if name == choice.name), None)


def create(call: Call, name: str, request: RoleRequest) -> Role:
    """Make a role. Raises NotFoundError for a domain that is not there, ConflictError for a name that is taken."""
    domain_id = request.get("domain_id")
    place = None if domain_id is None else place_for(call, domain_id)
    return roles.create_role(call.connection, name, place, request.get("description", ""))


def update(call: Call, role_id: str, request: RoleRequest) -> Role:
    """Change a role. Raises NotFoundError, ConflictError for a name that is taken, NovaliteError for another domain,
    ForbiddenError for a role that comes with the cloud."""
    domain_id = assignments.find_role(call.connection, role_id)["domain_id"]
    keep_domain(domain_id, request.get("domain_id", domain_id))
    return roles.update_role(call.connection, role_id, request)


def delete(call: Call, role_id: str) -> None:
    """Remove a role, and with it its assignments. Raises NotFoundError, ForbiddenError for a role that comes with the
    cloud."""
    roles.delete_role(call.connection, role_id)
