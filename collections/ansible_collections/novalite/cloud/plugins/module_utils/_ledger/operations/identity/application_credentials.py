# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on the caller's application credentials and their access rules, for every door."""

from __future__ import annotations

import dataclasses
import typing as t

from ...._errors import NovaliteError
from ...identity import access_rules, credentials
from ...queries.identity.assignments import implied, roles_in_project
from ...queries.identity.credential_records import Credential, Rule
from ..call import Call
from .delegations import refuse_restricted
from .roles import RoleChoice, chosen, names_of


@dataclasses.dataclass(frozen=True)
class CredentialRequest:
    """Values of an application credential. Without `roles` it gives all of the token's. It is for the token's project;
    one that names another cannot be made."""

    name: str
    secret_hash: str
    description: str = ""
    project_id: str | None = None
    roles: t.Sequence[RoleChoice] = ()
    unrestricted: bool = False
    expires_at: float | None = None
    access_rules: t.Sequence[Rule] = ()


def create(call: Call, request: CredentialRequest) -> Credential:
    """Make an application credential. Raises ForbiddenError for a token that is restricted, NovaliteError for another
    project and for a role that the token does not give, ConflictError for a name that is taken, QuotaError beyond 100,
    NotFoundError for an access rule that is not there."""
    if request.project_id not in (None, call.project):
        raise NovaliteError("project_id is not that of the token: have a token for that project first")
    refuse_restricted(call)
    roles = _roles(call, request.roles)
    rules = access_rules.record_access_rules(call.connection, call.user, request.access_rules)
    return credentials.create_application_credential(
        call.connection,
        user_id=call.user,
        project_id=call.project,
        name=request.name,
        secret_hash=request.secret_hash,
        roles=roles,
        description=request.description,
        unrestricted=request.unrestricted,
        expires_at=request.expires_at,
        access_rules=rules or None,
    )


def delete(call: Call, credential_id: str) -> None:
    """Remove an application credential, and with it the tokens that it gave. Raises ForbiddenError for a token that is
    restricted, NotFoundError."""
    refuse_restricted(call)
    credentials.delete_application_credential(call.connection, call.user, credential_id)


def delete_access_rule(call: Call, rule_id: str) -> None:
    """Remove an access rule. Raises ForbiddenError for a token that is restricted, and while an application credential
    is bound to the rule; NotFoundError."""
    refuse_restricted(call)
    access_rules.delete_access_rule(call.connection, call.user, rule_id)


def _roles(call: Call, choices: t.Sequence[RoleChoice]) -> set[str]:
    """Return the roles that a new credential gives: those that were named, else all of the token's, as in Keystone."""
    assigned = roles_in_project(call.connection, call.user, call.project)
    have = names_of(assigned, implied(assigned) & call.authority.roles)
    roles = set() if choices else set(have)
    for choice in choices:
        role_id = chosen(have, choice)
        if role_id is None:
            raise NovaliteError(f"role {choice.text!r} is not among your own")
        roles.add(role_id)
    return roles
