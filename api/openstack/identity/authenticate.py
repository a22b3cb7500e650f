# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Authentication of users. Whatever part was wrong, the answer is one and the same, after the same work."""

from __future__ import annotations

import typing as t

from flask import current_app, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ForbiddenError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity import attempts, tokens
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.attempts import Attempt, Locks
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.identity.tokens import (
    REFUSED,
    DomainChoice,
    Proof,
    ScopeRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity import (
    credential_records,
    user_records,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.token_holders import Token
from ansible_collections.novalite.cloud.plugins.module_utils._rules.attempts import subject
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import is_password

from ...web.bodies import Record
from ...web.context import MAX_TOKEN, Caller, find_caller, with_token
from ...web.errors import UnauthorizedError
from ...web.ledger import reading_ledger, writing_ledger
from ...work.calls import proving


def prove(identity: Record) -> Proof:
    """Prove who an `identity` is. Raises UnauthorizedError, TooManyRequestsError; NotFoundError for a wrong token."""
    methods = set(identity["methods"])
    if len(methods) != 1:
        raise UnauthorizedError(REFUSED)
    (method,) = methods
    if method not in identity or method not in METHODS:
        raise UnauthorizedError(REFUSED)
    return METHODS[method](identity[method])


def issue(proof: Proof, scope: Record | str | None) -> tuple[Token, Caller, Record | None]:
    """A token for what was proved, with who holds it and its application credential.

    Raises UnauthorizedError for a scope that the user has no role in, or that does not exist.
    """
    settings = current_app.extensions["settings"]
    requested = None if scope is None else _scope(scope)
    with writing_ledger(while_behind=True) as connection:
        issued = tokens.issue(proving(connection), proof, requested, settings.token_seconds)
        caller = with_token(issued.holder)
        return issued.token, caller, credential_of(connection, caller)


def credential_of(connection: Connection, caller: Caller) -> Record | None:
    """The application credential that the caller's token comes from."""
    if caller.application_credential_id is None:
        return None
    return credential_records.application_credential_of(connection, credential_id=caller.application_credential_id)


def check_password(user: Record | None, nobody: str, password: str, enabled: bool) -> Attempt:
    """Raise UnauthorizedError unless it is the password of `user`, who is `enabled`; every failure counts.

    `nobody` is what to count under for a user who does not exist. Returns what is to succeed in the transaction of what
    the password is asked for.
    """
    if user is None:
        return _check(subject("nobody", nobody), None, password, allowed=False)
    return _check(subject("user", user["id"]), user["password_hash"], password, allowed=enabled)


def _check(who: str, hashed: str | None, secret: str, allowed: bool) -> Attempt:
    settings = current_app.extensions["settings"]
    locks = Locks(
        settings.auth_failures, settings.auth_failures_address, settings.auth_lock_seconds, settings.auth_known_days
    )
    address = subject("address", request.remote_addr or "")
    with reading_ledger() as connection:
        attempt = attempts.begin(proving(connection), who, address, locks)
    # outside of any transaction: this is meant to take its time
    if not is_password(hashed, secret) or not allowed:
        with writing_ledger(while_behind=True) as connection:
            attempts.fail(proving(connection), attempt)
        raise UnauthorizedError(REFUSED)
    return attempt


def _by_password(fields: Record) -> Proof:
    user_body = fields["user"]
    with reading_ledger() as connection:
        began = clock.now(connection)
        user = _find_user(connection, user_body)
        enabled = user is not None and is_enabled(connection, user)
        nobody = _nobody(connection, user_body)
    attempt = check_password(user, nobody, user_body["password"], enabled)
    assert user is not None
    return Proof(user["id"], tokens.PASSWORD, began, user["default_project_id"], attempt=attempt)


def is_enabled(connection: Connection, user: Record) -> bool:
    """Return whether the user may log in at all: it is enabled, and so is its domain."""
    return bool(user["enabled"]) and user_records.is_in_enabled_domain(connection, user)


def _by_application_credential(fields: Record) -> Proof:
    user_body = fields.get("user", {})
    credential = None
    with reading_ledger() as connection:
        began = clock.now(connection)
        if "id" in fields:
            key = str(fields["id"])
            credential = credential_records.application_credential_of(connection, credential_id=fields["id"])
        else:
            user = _find_user(connection, user_body)
            key = f"{user['id'] if user else _nobody(connection, user_body)}/{fields.get('name', '')}"
            if user is not None and "name" in fields:
                credential = credential_records.application_credential_of(
                    connection, user_id=user["id"], name=fields["name"]
                )
    attempt = _check(
        subject("credential", credential["id"] if credential else key),
        credential["secret_hash"] if credential else None,
        fields["secret"],
        allowed=credential is not None and (credential["expires_at"] is None or credential["expires_at"] > began),
    )
    assert credential is not None
    return Proof(
        user_id=credential["user_id"],
        method=tokens.APPLICATION_CREDENTIAL,
        began=began,
        default_project_id=credential["project_id"],
        expires_at=credential["expires_at"],
        only_project_id=credential["project_id"],
        application_credential_id=credential["id"],
        attempt=attempt,
    )


def _by_token(fields: Record) -> Proof:
    with reading_ledger() as connection:
        began = clock.now(connection)
        caller = find_caller(connection, fields["id"]) if 1 <= len(fields["id"]) <= MAX_TOKEN else None
        if caller is None:  # Keystone's answer: it tells nobody more than a refusal
            raise NotFoundError("Could not find token.")
        if caller.trust is not None:
            raise ForbiddenError("A token of a trust gives no other one: have another one of the trust.")
        user = user_records.find_user(connection, caller.user_id)
    methods = caller.method.split(",")
    return Proof(
        user_id=caller.user_id,
        method=",".join([*methods, "token"] if "token" not in methods else methods),
        began=began,  # if the password is changed meanwhile, the new token is void as the old one is
        default_project_id=user["default_project_id"],
        expires_at=caller.expires_at,
        only_project_id=caller.project_id if caller.application_credential_id is not None else None,
        application_credential_id=caller.application_credential_id,
    )


METHODS: dict[str, t.Callable[[Record], Proof]] = {
    tokens.PASSWORD: _by_password,
    tokens.APPLICATION_CREDENTIAL: _by_application_credential,
    tokens.TOKEN: _by_token,
}


def _find_user(connection: Connection, user_body: Record) -> Record | None:
    if "id" in user_body:
        return user_records.user_by_id(connection, user_body["id"])
    domain_id = tokens.find_domain(proving(connection), _domain(user_body.get("domain")))
    if "name" not in user_body or domain_id is None:
        return None
    return user_records.user_by_name(connection, user_body["name"], domain_id)


def _nobody(connection: Connection, user_body: Record) -> str:
    """Return what to count under if there is no such user: one text for each user that there could be, however a client
    names the domain. Otherwise a name that shares its failures with another one's would be known to be nobody's."""
    if "id" in user_body:
        return str(user_body["id"])
    domain_id = tokens.find_domain(proving(connection), _domain(user_body.get("domain")))
    return f"{domain_id or user_body['domain']} {user_body.get('name', '')}"


def _domain(domain_body: Record | None) -> DomainChoice | None:
    return None if domain_body is None else DomainChoice(domain_body.get("id"), domain_body.get("name"))


def _scope(scope: Record | str) -> ScopeRequest:
    """Return the scope that a body names. Raises UnauthorizedError for none that there can be."""
    if isinstance(scope, str):  # "unscoped"
        return ScopeRequest()
    if len(scope) == 1:
        ((kind, body),) = scope.items()
        if kind == "project" and "id" in body:
            return ScopeRequest(project_id=body["id"])
        if kind == "project" and "name" in body:
            return ScopeRequest(project_name=body["name"], domain=_domain(body.get("domain")))
        if kind == "domain" and body:
            return ScopeRequest(domain=_domain(body))
        if kind == "OS-TRUST:trust" and "id" in body:
            return ScopeRequest(trust_id=body["id"])
    raise UnauthorizedError(REFUSED)
