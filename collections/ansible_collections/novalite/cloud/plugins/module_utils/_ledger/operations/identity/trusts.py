# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on trusts, for every door: those that one gave or was given, and all of them for an administrator."""

from __future__ import annotations

import dataclasses
import typing as t

from ...._errors import ForbiddenError, NotFoundError, NovaliteError
from ...identity import trusts
from ...identity.trusts import Trust
from ...queries.identity import projects, user_records
from ...queries.identity.assignments import Names, implied, roles_in_project
from ..call import Call
from .delegations import refuse_delegated
from .roles import RoleChoice, chosen, names_of

OTHERS: t.Final = "identity:trusts:others"


@dataclasses.dataclass(frozen=True)
class TrustRequest:
    """Values of a trust."""

    trustor_user_id: str
    trustee_user_id: str
    project_id: str | None
    roles: t.Sequence[RoleChoice]
    impersonation: bool
    expires_at: float | None = None
    remaining_uses: int | None = None


def list_trusts(call: Call, trustor: str | None, trustee: str | None) -> list[Trust]:
    """Return the trusts that this user gave, or was given. Raises ForbiddenError for a delegated token, and for those
    of others."""
    refuse_delegated(call, "trusts")
    if call.user not in (trustor, trustee) and not call.permits(OTHERS):
        raise ForbiddenError("You may list the trusts that you gave or were given: name yourself as one of the two.")
    return trusts.list_trusts(call.connection, trustor, trustee)


def find(call: Call, trust_id: str) -> Trust:
    """Return a trust that the caller may see. Raises ForbiddenError for a delegated token, NotFoundError."""
    refuse_delegated(call, "trusts")
    row = trusts.find_trust(call.connection, trust_id)
    if call.user not in (row["trustor_user_id"], row["trustee_user_id"]) and not call.permits(OTHERS):
        raise NotFoundError(f"Could not find trust: {trust_id[:64]}.")
    return row


def create(call: Call, request: TrustRequest) -> Trust:
    """Record a trust. Raises ForbiddenError for a delegated token, for another trustor than the caller and without a
    role; NovaliteError without a project; NotFoundError for a trustee or a project that is not there, and for a role
    that the trustor has not; QuotaError beyond 100."""
    refuse_delegated(call, "trusts")
    if request.trustor_user_id != call.user:
        raise ForbiddenError("The authenticated user should match the trustor")
    if request.project_id is None:
        raise NovaliteError("project_id: a trust is for roles in a project; give one")
    if not request.roles:
        raise ForbiddenError("At least one role should be specified")
    user_records.find_user(call.connection, request.trustee_user_id)
    projects.find_project(call.connection, request.project_id)
    held = roles_in_project(call.connection, call.user, request.project_id)
    names = names_of(held, implied(held))
    return trusts.create_trust(
        call.connection,
        trustor_user_id=call.user,
        trustee_user_id=request.trustee_user_id,
        project_id=request.project_id,
        roles={_among(names, choice) for choice in request.roles},
        impersonation=request.impersonation,
        expires_at=request.expires_at,
        remaining_uses=request.remaining_uses,
    )


def delete(call: Call, trust_id: str) -> None:
    """Remove a trust, and with it the tokens that it gave. Raises as find(), ForbiddenError for its trustee."""
    row = find(call, trust_id)
    if row["trustor_user_id"] != call.user and not call.permits(OTHERS):
        raise ForbiddenError("Only admin or trustor can delete a trust")
    trusts.delete_trust(call.connection, trust_id)


def _among(names: Names, choice: RoleChoice) -> str:
    role_id = chosen(names, choice)
    if role_id is None:
        raise NotFoundError(f"Could not find role: {choice.text[:64]}.")
    return role_id
