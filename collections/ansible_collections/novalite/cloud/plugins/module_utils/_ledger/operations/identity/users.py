# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on users, for every door."""

from __future__ import annotations

import typing as t

from ...._errors import ForbiddenError, NovaliteError, UnauthorizedError
from ...identity import users
from ...queries.identity import user_records
from ...queries.identity.projects import project_name
from ...queries.identity.user_records import User
from ..call import Call
from . import attempts
from .assignments import Held, set_roles
from .attempts import Attempt
from .attributes import MOST, Attributes, keep_domain, merged
from .domains import place_for
from .tokens import REFUSED


class UserRequest(t.TypedDict, total=False):
    """Values of a user. `extra` and `options` are changes, in which None removes an attribute; a domain is named
    where the user is made in another than the caller's."""

    name: str
    enabled: bool
    description: str
    email: str | None
    default_project_id: str | None
    password_hash: str | None
    extra: Attributes
    options: Attributes
    domain_id: str | None


def create(call: Call, request: UserRequest, roles: t.Collection[Held] = ()) -> User:
    """Make a user, which has these roles. Raises NotFoundError for a domain that is not there, ConflictError for a name
    that is taken, NovaliteError for a default project that is none."""
    domain_id = place_for(call, request.get("domain_id"))
    row = users.insert_user(call.connection, _values(call, request), domain_id)
    set_roles(call, row["id"], roles)
    return row


def update(call: Call, user_id: str, request: UserRequest, roles: t.Collection[Held] | None = None) -> User:
    """Change a user, and the roles that it has in projects if those are said. A new password, or to disable the user,
    makes its tokens void. Raises NotFoundError, ConflictError for a name that is taken, NovaliteError for another
    domain and for a default project that is none."""
    before = user_records.find_user(call.connection, user_id)
    keep_domain(before["domain_id"], request.get("domain_id", before["domain_id"]))
    row = users.update_user(call.connection, user_id, _values(call, request, before))
    if roles is not None:
        set_roles(call, user_id, roles)
    return row


def change_password(call: Call, attempt: Attempt, proved: User, password_hash: str) -> None:
    """Give a user a new password, who proved that of `proved`. Raises UnauthorizedError where it was changed meanwhile,
    ForbiddenError where an administrator alone changes it, TooManyRequestsError."""
    attempts.succeed(call, attempt)
    now = user_records.find_user(call.connection, proved["id"])
    if now["password_hash"] != proved["password_hash"]:
        raise UnauthorizedError(REFUSED)
    if now["options"].get("lock_password"):
        raise ForbiddenError("The password of this user is locked: an administrator alone changes it.")
    users.update_user(call.connection, proved["id"], {"password_hash": password_hash})


def delete(call: Call, user_id: str) -> None:
    """Remove a user with its roles, tokens and credentials. Raises NotFoundError."""
    users.delete_user(call.connection, user_id)


def _values(call: Call, request: UserRequest, before: User | None = None) -> dict[str, object]:
    """Return what of `request` the ledger writes. Raises NovaliteError for a default project that is none."""
    project_id = request.get("default_project_id")
    if project_id is not None and project_name(call.connection, project_id) is None:
        raise NovaliteError(f"default_project_id {project_id!r} is not a project's")
    values: dict[str, object] = {name: value for name, value in request.items() if name != "domain_id"}
    if "extra" in request:
        values["extra"] = merged(before["extra"] if before else {}, request["extra"], MOST)
    if "options" in request:
        values["options"] = merged(before["options"] if before else {}, request["options"])
    return values
