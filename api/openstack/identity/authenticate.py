# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Authentication of users. Whatever part was wrong, the answer is one and the same, after the same work."""

from __future__ import annotations

import dataclasses
import math
import typing as t

from flask import current_app, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ForbiddenError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity import (
    auth_failures,
    credentials,
    domains,
    trusts,
    users,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.auth_failures import Limit, subject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.domains import DEFAULT_DOMAIN
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.identity.tokens import (
    Token,
    issue_token,
    revoke_token,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import projects
from ansible_collections.novalite.cloud.plugins.module_utils._rules.passwords import is_password

from ...web.bodies import Record
from ...web.context import MAX_TOKEN, Caller, find_caller
from ...web.errors import TooManyRequestsError, UnauthorizedError
from ...web.ledger import reading_ledger, writing_ledger

REFUSED = "The request you have made requires authentication."
DELAY = 60.0  # seconds between two guesses of a user's password from addresses where it is not known, at most
KNOWN_DELAY = 15.0  # and from one where it is


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Somebody who says to be a user, from some address, and whether that user is known there."""

    who: str  # user:<name> or credential:<id>
    address: str
    known: bool

    @property
    def login(self) -> str:
        return subject("login", f"{self.address} {self.who}")

    @property
    def good(self) -> str:
        return _good(self.who, self.address)

    def limits(self) -> dict[str, Limit]:
        """Return the limits that a failure counts for, by subject.

        The guesser is locked: that user from that address, and an address that guesses over many users. The user alone
        is only slowed down, and where it is known, by guesses from there alone: a lock would serve those who want to
        lock somebody out.
        """
        settings = current_app.extensions["settings"]
        lock = settings.auth_lock_seconds
        by_address = {self.address: Limit(settings.auth_failures_address, lock)}
        if self.known:
            return {**by_address, self.login: Limit(settings.auth_failures, KNOWN_DELAY, grows=True, calm=lock)}
        slowed = Limit(settings.auth_failures, DELAY, grows=True, calm=lock)
        return {**by_address, self.login: Limit(settings.auth_failures, lock), self.who: slowed}

    def refuse_locked(self, connection: Connection, hold: bool = False) -> None:
        """Raise TooManyRequestsError while there were too many failures of this kind."""
        _refuse(auth_failures.locked_for(connection, self._refusing(), clock.now(connection), hold))

    # Of guesses that come at once, no more are answered than of those that come in turn

    def succeed(self, connection: Connection) -> None:
        """Forget the failures, and know the user at this address. Raises TooManyRequestsError after too many."""
        self.refuse_locked(connection, hold=True)
        auth_failures.forget_failures(connection, self.login, *([] if self.known else [self.who]))
        days = current_app.extensions["settings"].auth_known_days
        auth_failures.remember(connection, self.good, clock.now(connection) + days * 86400)

    def fail(self, connection: Connection) -> None:
        """Count a failure. Raises TooManyRequestsError as `succeed` does."""
        locked = auth_failures.count_failure(connection, self.limits(), clock.now(connection))
        _refuse(max(locked[name] for name in self._refusing()))

    def _refusing(self) -> list[str]:
        """List the subjects whose locks hold for this attempt."""
        return [self.login] if self.known else list(self.limits())


def _refuse(seconds: float) -> None:
    if seconds > 0:
        raise TooManyRequestsError("Too many failed attempts: try again later.", retry_after=math.ceil(seconds))


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
    with writing_ledger(while_behind=True) as connection:
        if proof.attempt is not None:
            proof.attempt.succeed(connection)
        user = users.user_by_id(connection, proof.user_id)
        if user is None:  # removed meanwhile
            raise UnauthorizedError(REFUSED)
        _check_methods(user, proof)
        requested_scope = _scope(connection, proof, scope)
        for place in (requested_scope,) if requested_scope.is_requested else (requested_scope, Scope()):
            ends = [end for end in (proof.expires_at, place.expires_at) if end is not None]
            token = issue_token(
                connection,
                place.user_id or proof.user_id,
                place.project_id,
                method=proof.method,
                issued_at=proof.began,
                expires_at=min(ends, default=None),
                lifetime=settings.token_seconds,
                application_credential_id=proof.application_credential_id,
                domain_id=place.domain_id,
                trust_id=place.trust_id,
            )
            caller = find_caller(connection, token.text)
            if caller is not None and (place.trust_id is None or trusts.take_use(connection, place.trust_id)):
                return token, caller, credential_of(connection, caller)
            revoke_token(connection, token.text)
        raise UnauthorizedError(REFUSED)


def _check_methods(user: Record, proof: Proof) -> None:
    """Raise UnauthorizedError unless the methods are enough for one of the user's rules, as Keystone reads them.

    What a rule asks for besides the methods that there are is left out of it.
    """
    options = user["options"]
    rules = [set(rule) & set(METHODS) for rule in options.get("multi_factor_auth_rules") or ()]
    used = set(proof.method.split(","))
    counts = options.get("multi_factor_auth_enabled") is not False and any(rules)
    if counts and not any(rule and rule <= used for rule in rules):
        raise UnauthorizedError(REFUSED)


def credential_of(connection: Connection, caller: Caller) -> Record | None:
    """The application credential that the caller's token comes from."""
    if caller.application_credential_id is None:
        return None
    return credentials.application_credential_of(connection, credential_id=caller.application_credential_id)


def check_password(user: Record | None, name: str, password: str, enabled: bool) -> Attempt:
    """Raise UnauthorizedError unless it is the password of `user`, who is `enabled`; every failure counts.

    `name` is what to count under for a user who does not exist. Returns what is to succeed in the transaction of what
    the password is asked for.
    """
    if user is None:
        return _check(subject("user", name), None, password, allowed=False)
    return _check(subject("user", user["name"]), user["password_hash"], password, allowed=enabled)


def _check(who: str, hashed: str | None, secret: str, allowed: bool) -> Attempt:
    address = subject("address", request.remote_addr or "")
    with reading_ledger() as connection:
        known = auth_failures.is_known(connection, _good(who, address), clock.now(connection))
        attempt = Attempt(who, address, known)
        attempt.refuse_locked(connection)
    # outside of any transaction: this is meant to take its time
    if not is_password(hashed, secret) or not allowed:
        with writing_ledger(while_behind=True) as connection:
            attempt.fail(connection)
        raise UnauthorizedError(REFUSED)
    return attempt


def _good(who: str, address: str) -> str:
    """Return the subject that remembers an address from which this user gave the right password."""
    return subject("good", f"{address} {who}")


def _by_password(fields: Record) -> Proof:
    user_body = fields["user"]
    with reading_ledger() as connection:
        began = clock.now(connection)
        user = _find_user(connection, user_body)
        enabled = user is not None and is_enabled(connection, user)
    name = str(user_body.get("name") or user_body.get("id") or "")
    if "name" in user_body and user_body.get("domain", {}).get("id", DEFAULT_DOMAIN) != DEFAULT_DOMAIN:
        name = f"{name}-{user_body['domain']['id']}"
    attempt = check_password(user, name, user_body["password"], enabled)
    assert user is not None
    return Proof(user["id"], "password", began, user["default_project_id"], attempt=attempt)


def is_enabled(connection: Connection, user: Record) -> bool:
    """Return whether the user may log in at all: it is enabled, and so is its domain."""
    return bool(user["enabled"]) and users.is_in_enabled_domain(connection, user)


def _by_application_credential(fields: Record) -> Proof:
    user_body = fields.get("user", {})
    credential = None
    with reading_ledger() as connection:
        began = clock.now(connection)
        if "id" in fields:
            credential = credentials.application_credential_of(connection, credential_id=fields["id"])
        elif "name" in fields and (user := _find_user(connection, user_body)) is not None:
            credential = credentials.application_credential_of(connection, user_id=user["id"], name=fields["name"])
    name = fields.get("id") or f"{user_body.get('id') or user_body.get('name', '')}/{fields.get('name', '')}"
    attempt = _check(
        subject("credential", credential["id"] if credential else str(name)),
        credential["secret_hash"] if credential else None,
        fields["secret"],
        allowed=credential is not None and (credential["expires_at"] is None or credential["expires_at"] > began),
    )
    assert credential is not None
    return Proof(
        user_id=credential["user_id"],
        method="application_credential",
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
        user = users.find_user(connection, caller.user_id)
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
    "password": _by_password,
    "application_credential": _by_application_credential,
    "token": _by_token,
}


def _find_user(connection: Connection, user_body: Record) -> Record | None:
    if "id" in user_body:
        return users.user_by_id(connection, user_body["id"])
    domain_id = _domain_id(connection, user_body.get("domain"))
    if "name" not in user_body or domain_id is None:
        return None
    return users.user_by_name(connection, user_body["name"], domain_id)


def _domain_id(connection: Connection, domain_body: Record | None) -> str | None:
    """Return the id of the domain that is named by its id, its name or both (None: the first one); None for none."""
    if domain_body is None:
        return DEFAULT_DOMAIN
    name = domain_body.get("name")
    if isinstance(domain_body.get("id"), str):
        record = domains.domain_by_id(connection, domain_body["id"])
    else:
        record = domains.domain_by_name(connection, str(name))
    if record is None or (isinstance(name, str) and not domains.is_name_of(record, name)):
        return None
    return str(record["id"])


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


def _scope(connection: Connection, proof: Proof, scope: Record | str | None) -> Scope:
    """Return the scope that was asked for. Raises UnauthorizedError for one that is not there, or out of bounds."""
    only = proof.only_project_id
    if scope is None:
        return Scope(proof.default_project_id, is_requested=only is not None)
    if isinstance(scope, str) and only is None:  # "unscoped"
        return Scope()
    if isinstance(scope, str) or len(scope) != 1:
        raise UnauthorizedError(REFUSED)
    ((kind, scope_body),) = scope.items()
    project_id = None
    if kind == "project" and "id" in scope_body:
        project_id = scope_body["id"] if projects.project_by_id(connection, scope_body["id"]) else None
    elif kind == "project" and "name" in scope_body:
        domain_id = _domain_id(connection, scope_body.get("domain"))
        project_id = domain_id and projects.project_id_of(connection, scope_body["name"], domain_id)
    elif kind == "domain" and scope_body and only is None:
        domain_id = _domain_id(connection, scope_body)
        if domain_id is not None:
            return Scope(domain_id=domain_id)
    elif kind == "OS-TRUST:trust" and only is None:
        return _trusted(connection, proof, scope_body)
    if project_id is None or project_id != (only or project_id):
        raise UnauthorizedError(REFUSED)
    return Scope(str(project_id))


def _trusted(connection: Connection, proof: Proof, trust_body: Record) -> Scope:
    """Return the scope of a trust, which its trustee alone has."""
    trust = trusts.trust_by_id(connection, trust_body["id"]) if isinstance(trust_body.get("id"), str) else None
    if trust is None or trust["trustee_user_id"] != proof.user_id:
        raise UnauthorizedError(REFUSED)
    return Scope(
        trust["project_id"],
        trust_id=trust["id"],
        user_id=trust["trustor_user_id"] if trust["impersonation"] else trust["trustee_user_id"],
        expires_at=trust["expires_at"],
    )
