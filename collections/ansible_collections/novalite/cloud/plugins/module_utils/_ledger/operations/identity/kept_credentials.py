# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on the credentials that users keep, for every door: one's own, and those of all for an administrator."""

from __future__ import annotations

import typing as t

from ...._errors import NotFoundError, NovaliteError
from ...db.sealing import Seal
from ...identity import kept_credentials
from ...identity.kept_credentials import Credential, Sealed
from ...queries.identity import user_records
from ...queries.identity.assignments import roles_in_project
from ...queries.identity.projects import project_name
from ..call import Call
from .delegations import refuse_delegated

OTHERS: t.Final = "identity:credentials:others"


class CredentialChange(t.TypedDict, total=False):
    """Values of a credential that is there: its `id` and `user_id` stay."""

    id: str
    type: str
    blob: str
    user_id: str
    project_id: str | None


class CredentialRequest(t.TypedDict):
    """Values of a credential. Without a user it is the caller's."""

    type: str
    blob: str
    user_id: t.NotRequired[str]
    project_id: t.NotRequired[str | None]


def list_credentials(call: Call, seal: Seal, user_id: str | None, kind: str | None) -> list[Credential]:
    """Return the credentials of this user and type (None: of any) that the caller may see. Raises ForbiddenError for a
    delegated token."""
    refuse_delegated(call, "credentials")
    own = _own(call)
    if own is not None and user_id not in (None, own):
        return []
    return kept_credentials.list_credentials(call.connection, seal, own if user_id is None else user_id, kind)


def find(call: Call, seal: Seal, credential_id: str) -> Credential:
    """Return a credential that the caller may see. Raises ForbiddenError for a delegated token, NotFoundError,
    UnreadableError."""
    return kept_credentials.opened(seal, _sealed(call, credential_id))


def create(call: Call, seal: Seal, request: CredentialRequest) -> Credential:
    """Keep a credential. Raises ForbiddenError for a delegated token, NotFoundError for a user or a project that it
    cannot be of, and as kept_credentials.create_credential()."""
    refuse_delegated(call, "credentials")
    user_id, project_id = request.get("user_id", call.user), request.get("project_id")
    if _own(call) not in (None, user_id):
        raise NotFoundError(f"Could not find user: {user_id[:64]}.")
    user_records.find_user(call.connection, user_id)
    _check_project(call, user_id, project_id)
    values = {**request, "user_id": user_id, "project_id": project_id}
    return kept_credentials.create_credential(call.connection, seal, values)


def update(call: Call, seal: Seal, credential_id: str, change: CredentialChange) -> Credential:
    """Change a credential; a new blob mends one that cannot be read. Raises ForbiddenError for a delegated token,
    NotFoundError for one that is not there and for a project that it cannot be of, NovaliteError for another user or
    id, and as kept_credentials.update_credential()."""
    before = _sealed(call, credential_id)
    stays = {"id": change.get("id", credential_id), "user_id": change.get("user_id", before.user_id)}
    if stays != {"id": credential_id, "user_id": before.user_id}:
        raise NovaliteError("a credential stays its user's, and keeps its id: make a new one")
    _check_project(call, before.user_id, change.get("project_id", before.project_id))
    return kept_credentials.update_credential(call.connection, seal, before, change)


def delete(call: Call, credential_id: str) -> None:
    """Remove a credential, which need not be readable. Raises ForbiddenError for a delegated token, NotFoundError."""
    kept_credentials.delete_credential(call.connection, _sealed(call, credential_id))


def _sealed(call: Call, credential_id: str) -> Sealed:
    """Return a credential that the caller may see, as it is kept. Raises ForbiddenError for a delegated token,
    NotFoundError."""
    refuse_delegated(call, "credentials")
    return kept_credentials.find_sealed(call.connection, credential_id, _own(call))


def _own(call: Call) -> str | None:
    """Return whose credentials the caller may name: None for those of all."""
    return None if call.permits(OTHERS) else call.user


def _check_project(call: Call, user_id: str, project_id: str | None) -> None:
    """Raise NotFoundError for a project that is not there, or in which the credential's user has no role."""
    if project_id is None:
        return
    there = project_name(call.connection, project_id) is not None
    if not there or not (call.permits(OTHERS) or roles_in_project(call.connection, user_id, project_id)):
        raise NotFoundError(f"Could not find project: {project_id[:64]}.")
