# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Calls: who asks for an operation, what they may do, in which transaction, and who carries out the hosts' part."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import ForbiddenError, UnauthorizedError
from ..._json import JsonMapping
from ..db.tables_identity import DEFAULT_DOMAIN
from ..instances import actions

OVERRIDE_LOCK: t.Final = "compute:servers:override_lock"


class Enqueue(t.Protocol):
    """Has hosts do, after the transaction, what was begun in it: a job's kind, its instances (UUIDs) and variables, and
    the project that it acts for. Returns the job's id, "" where whoever calls goes on by themselves."""

    def __call__(
        self, kind: str, instances: t.Sequence[str], project_id: str | None, variables: JsonMapping | None = None, /
    ) -> str: ...


class Signature(t.TypedDict):
    """The user and the request that did something, as the ledger keeps them with actions and jobs."""

    user_id: str | None
    request_id: str


class Asker(Signature):
    by_admin: bool  # passes locks


@dataclasses.dataclass(frozen=True)
class Authority:
    """Authority of a caller's token: its roles, with those that they imply, and the domain that the caller works in. Of
    a token that may give less than its user has, what it was made with."""

    roles: frozenset[str] = frozenset()
    domain_id: str = DEFAULT_DOMAIN
    application_credential_id: str | None = None
    trust_id: str | None = None


@dataclasses.dataclass(frozen=True)
class Call:
    """A request to the cloud, by whichever door it came.

    `project_id` is the project that the caller acts for, `user_id` the user; None: whoever runs a playbook, or has yet
    to prove who it is. `permits` tells of an entry of the policy (api/web/operations.py) whether the caller may do it.
    """

    connection: sa.Connection
    request_id: str
    user_id: str | None
    project_id: str | None
    permits: t.Callable[[str], bool]
    enqueue: Enqueue
    authority: Authority = Authority()

    def check(self, entry: str) -> None:
        """Raise ForbiddenError unless the caller may do what this entry of the policy names."""
        if not self.permits(entry):
            raise ForbiddenError(f"Policy doesn't allow {entry} to be performed.")

    @property
    def project(self) -> str:
        """The project's id. Raises UnauthorizedError for a call that is for none."""
        if self.project_id is None:
            raise UnauthorizedError("this needs a token that is scoped to a project")
        return self.project_id

    @property
    def user(self) -> str:
        """The user's id. Raises UnauthorizedError for a call that is nobody's."""
        if self.user_id is None:
            raise UnauthorizedError("this needs a user who asks")
        return self.user_id

    @property
    def signature(self) -> Signature:
        return {"user_id": self.user_id, "request_id": self.request_id}

    @property
    def asker(self) -> Asker:
        return {**self.signature, "by_admin": self.permits(OVERRIDE_LOCK)}


def by_playbook(connection: sa.Connection, request_id: str | None = None) -> Call:
    """Return the call of a playbook: it may do everything but pass a lock, which unlock.yml takes off, and carries out
    by itself what is begun."""

    def permits(entry: str) -> bool:
        return entry != OVERRIDE_LOCK

    def enqueue(
        _kind: str, _instances: t.Sequence[str], _project_id: str | None, _variables: JsonMapping | None = None, /
    ) -> str:
        return ""

    return Call(connection, request_id or actions.new_request_id(), None, None, permits, enqueue)
