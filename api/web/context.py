# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caller of a request. A blueprint calls `authenticate()` before each request; routes read `current()`."""

from __future__ import annotations

import dataclasses
import re
import typing as t
import uuid

from flask import g, request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.counts import project_by
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.assignments import ROLES, implied
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.projects import DEFAULT_DOMAIN
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.token_holders import (
    Holder,
    holder_of,
    token_hash,
)

from . import rates
from .access_rules import is_within
from .bodies import Record
from .errors import UnauthorizedError
from .ledger import reading_ledger

__all__ = ["ROLES", "implied"]  # who asks for callers asks for these

_REQUEST_ID = re.compile(r"req-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
MAX_TOKEN = 255  # characters


@dataclasses.dataclass(frozen=True)
class Caller:
    """The user behind a valid token, and the project or domain that the token is for (None: an unscoped token)."""

    user_id: str
    user_name: str
    project_id: str | None
    project_name: str | None  # the playbooks' handle
    roles: frozenset[str]  # with those that a role implies
    token_hash: str
    method: str
    audit_id: str
    issued_at: float
    expires_at: float
    application_credential_id: str | None = None
    access_rules: t.Sequence[Record] | None = None  # all that the token may do; None: what its roles allow
    trust: Record | None = None
    domain_id: str | None = None
    # names by ids; where a token was read, as Identity shows them
    role_names: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    shown: t.Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def home_domain(self) -> str:
        """The domain that the caller works in: of the token, or of the token's project."""
        return self.domain_id or self.shown.get("project_domain_id") or DEFAULT_DOMAIN

    @property
    def is_admin(self) -> bool:
        return "admin" in self.roles

    @property
    def project(self) -> str:
        """The project's id. Raises UnauthorizedError for an unscoped token."""
        if self.project_id is None:
            raise UnauthorizedError("this needs a token that is scoped to a project")
        return self.project_id

    @property
    def reach(self) -> str | None:
        """The project whose objects the caller may name by id; None: an administrator may name all projects'."""
        return None if self.is_admin else self.project


def authenticate() -> None:
    """Find out who asks, by the header X-Auth-Token. Raises UnauthorizedError without a valid token."""
    token = request.headers.get("X-Auth-Token", "")
    if not 1 <= len(token) <= MAX_TOKEN:
        rates.count_nobody()
        raise UnauthorizedError("The request you have made requires authentication.")
    with reading_ledger() as connection:
        caller = find_caller(connection, token)
    if caller is None:
        rates.count_nobody()
        raise UnauthorizedError("The request you have made requires authentication.")
    rates.count_caller(caller.user_id, caller.project_id)
    if caller.access_rules is not None and not is_within(caller.access_rules, request.method, request.path):
        raise UnauthorizedError("The access rules of the application credential do not allow this request.")
    g.caller = caller


def current() -> Caller:
    """Return the caller. Raises UnauthorizedError where nobody was authenticated."""
    caller = g.get("caller")
    if not isinstance(caller, Caller):
        raise UnauthorizedError("The request you have made requires authentication.")
    return caller


def request_id() -> str:
    """The id of this request, one for all that it does. The client's own, if it is one of OpenStack's form."""
    if "request_id" not in g:
        header = request.headers.get("X-OpenStack-Request-ID", "")
        g.request_id = header if _REQUEST_ID.fullmatch(header) else f"req-{uuid.uuid4()}"
    return str(g.request_id)


def check_project(connection: Connection, project_id: str, word: t.Callable[[str], Exception] = NotFoundError) -> str:
    """Return the id of a project: the caller's own, or for an administrator any, which may go by its name, as quotas do
    in Neutron and Cinder. Raises what `word` makes."""
    caller = current()
    if project_id == caller.project:
        return project_id
    existing_id = project_by(connection, project_id) if caller.is_admin else None
    if existing_id is not None:
        return existing_id
    raise word(f"Project {project_id[:64]} could not be found.")


class Signature(t.TypedDict):
    """The user and the request that did something, as the ledger keeps them with actions and jobs."""

    user_id: str
    request_id: str


def signature() -> Signature:
    return {"user_id": current().user_id, "request_id": request_id()}


def find_caller(connection: Connection, token: str, now: float | None = None) -> Caller | None:
    """Return the caller who has `token`, or None: unknown, expired, revoked, of a user or project that is disabled.

    Roles are read anew each time, so that one which was taken away is gone at once.
    """
    return caller_of(connection, token_hash(token), now)


def caller_of(connection: Connection, hashed: str, now: float | None = None) -> Caller | None:
    """Return the caller who has the token with this hash, or None, as find_caller(). Every request asks, so it is read
    of the ledger here, and by no operation."""
    now = clock.now(connection) if now is None else now
    holder = holder_of(connection, hashed, now)
    return None if holder is None else with_token(holder)


def with_token(holder: Holder) -> Caller:
    """Return the caller who holds a token."""
    row = holder.row
    return Caller(
        user_id=row.user_id,
        user_name=row.user_name,
        project_id=row.project_id,
        project_name=row.project_name,
        roles=implied(holder.roles),
        token_hash=row.hash,
        method=row.method,
        audit_id=row.audit_id,
        issued_at=row.issued_at,
        expires_at=row.expires_at,
        application_credential_id=row.application_credential_id,
        access_rules=row.access_rules,
        trust=holder.trust,
        domain_id=row.domain_id,
        role_names=holder.roles,
        shown={
            "user": row.user_display_name or row.user_name,
            "user_domain_id": row.user_domain_id,
            "user_domain": row.user_domain_name,
            "project": row.project_display_name or row.project_name,
            "project_domain_id": row.project_domain_id,
            "project_domain": row.project_domain_name,
            "domain": row.domain_name,
        },
    )
