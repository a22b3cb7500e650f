# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on tokens, for every door: a token for what was proved, and its end."""

from __future__ import annotations

import dataclasses
import typing as t

from ...._errors import NotFoundError, UnauthorizedError
from ...db import clock
from ...identity import domains, tokens, trusts
from ...queries.identity import projects, user_records
from ...queries.identity.projects import DEFAULT_DOMAIN
from ...queries.identity.token_holders import Holder, Token
from ...queries.identity.user_records import User
from ..call import Call
from . import attempts
from .attempts import Attempt

OTHERS: t.Final = "identity:tokens:others"
REFUSED = "The request you have made requires authentication."
PASSWORD, APPLICATION_CREDENTIAL, TOKEN = "password", "application_credential", "token"
METHODS = frozenset({PASSWORD, APPLICATION_CREDENTIAL, TOKEN})


@dataclasses.dataclass(frozen=True)
class Proof:
    """A proven user, and the bounds of a token for them."""

    user_id: str
    method: str
    began: float  # when it was looked at
    default_project_id: str | None = None
    expires_at: float | None = None
    only_project_id: str | None = None
    application_credential_id: str | None = None
    attempt: Attempt | None = None  # what comes to its good end with it


@dataclasses.dataclass(frozen=True)
class DomainChoice:
    """A domain that a client names by its id, its name or both."""

    domain_id: str | None = None
    name: str | None = None


@dataclasses.dataclass(frozen=True)
class ScopeRequest:
    """A scope that a client names, of one kind: a project, by its id or by its name in a domain (None: the first one);
    a domain; a trust. None of them: no scope at all."""

    project_id: str | None = None
    project_name: str | None = None
    domain: DomainChoice | None = None
    trust_id: str | None = None


@dataclasses.dataclass(frozen=True)
class Scope:
    """The scope of a token. A default that cannot be had is left out, unlike one that was asked for."""

    project_id: str | None = None
    domain_id: str | None = None
    is_requested: bool = True
    # of a trust
    trust_id: str | None = None
    user_id: str | None = None
    expires_at: float | None = None


@dataclasses.dataclass(frozen=True)
class Issued:
    """A new token, and who holds it."""

    token: Token
    holder: Holder


def issue(call: Call, proof: Proof, scope: ScopeRequest | None, lifetime: float) -> Issued:
    """Make a token for what was proved, which lasts at most `lifetime` (seconds). Raises UnauthorizedError for a scope
    that is not there or that the user has no role in, and for proofs that are not enough; TooManyRequestsError."""
    if proof.attempt is not None:
        attempts.succeed(call, proof.attempt)
    user = user_records.user_by_id(call.connection, proof.user_id)
    if user is None:  # removed meanwhile
        raise UnauthorizedError(REFUSED)
    _check_methods(user, proof)
    requested_scope = _scope(call, proof, scope)
    for place in (requested_scope,) if requested_scope.is_requested else (requested_scope, Scope()):
        ends = [end for end in (proof.expires_at, place.expires_at) if end is not None]
        token = tokens.issue_token(
            call.connection,
            place.user_id or proof.user_id,
            place.project_id,
            method=proof.method,
            issued_at=proof.began,
            expires_at=min(ends, default=None),
            lifetime=lifetime,
            application_credential_id=proof.application_credential_id,
            domain_id=place.domain_id,
            trust_id=place.trust_id,
        )
        holder = tokens.token_holder(call.connection, token.text, clock.now(call.connection))
        if holder is not None and (place.trust_id is None or trusts.take_use(call.connection, place.trust_id)):
            return Issued(token, holder)
        tokens.revoke_token(call.connection, token.text)
    raise UnauthorizedError(REFUSED)


def revoke(call: Call, text: str) -> None:
    """Make a token void. Raises NotFoundError for one that is void already, and for others' tokens."""
    holder = tokens.token_holder(call.connection, text, clock.now(call.connection))
    if holder is None or not (holder.row.user_id == call.user or call.permits(OTHERS)):
        raise NotFoundError("Could not find token.")
    tokens.revoke_token(call.connection, text)


def find_domain(call: Call, choice: DomainChoice | None) -> str | None:
    """Return the id of the domain that a client chose (None: the first one); None where there is none."""
    if choice is None:
        return DEFAULT_DOMAIN
    record = domains.domain_named(call.connection, choice.domain_id, choice.name)
    return None if record is None else str(record["id"])


def _check_methods(user: User, proof: Proof) -> None:
    """Raise UnauthorizedError unless the methods are enough for one of the user's rules, as Keystone reads them.

    What a rule asks for besides the methods that there are is left out of it.
    """
    options = user["options"]
    rules = [set(rule) & METHODS for rule in options.get("multi_factor_auth_rules") or ()]
    used = set(proof.method.split(","))
    counts = options.get("multi_factor_auth_enabled") is not False and any(rules)
    if counts and not any(rule and rule <= used for rule in rules):
        raise UnauthorizedError(REFUSED)


def _scope(call: Call, proof: Proof, scope: ScopeRequest | None) -> Scope:
    """Return the scope that was asked for. Raises UnauthorizedError for one that is not there, or out of bounds."""
    only = proof.only_project_id
    if scope is None:
        return Scope(proof.default_project_id, is_requested=only is not None)
    project_id = None
    if scope.project_id is not None:
        project_id = scope.project_id if projects.project_by_id(call.connection, scope.project_id) else None
    elif scope.project_name is not None:
        domain_id = find_domain(call, scope.domain)
        project_id = domain_id and projects.project_id_of(call.connection, scope.project_name, domain_id)
    elif only is not None:
        pass  # neither unscoped, nor for a domain, nor with a trust
    elif scope.trust_id is not None:
        return _trusted(call, proof, scope.trust_id)
    elif scope.domain is None:
        return Scope()
    elif (domain_id := find_domain(call, scope.domain)) is not None:
        return Scope(domain_id=domain_id)
    if project_id is None or project_id != (only or project_id):
        raise UnauthorizedError(REFUSED)
    return Scope(project_id)


def _trusted(call: Call, proof: Proof, trust_id: str) -> Scope:
    """Return the scope of a trust, which its trustee alone has."""
    trust = trusts.trust_by_id(call.connection, trust_id)
    if trust is None or trust["trustee_user_id"] != proof.user_id:
        raise UnauthorizedError(REFUSED)
    return Scope(
        trust["project_id"],
        trust_id=trust["id"],
        user_id=trust["trustor_user_id"] if trust["impersonation"] else trust["trustee_user_id"],
        expires_at=trust["expires_at"],
    )
