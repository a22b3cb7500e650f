# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on pairs of keys that sign requests to EC2, for every door."""

from __future__ import annotations

from ...._errors import NotFoundError
from ...db.sealing import Seal
from ...identity import credentials
from ...queries.identity import credential_records
from ...queries.identity.assignments import roles_in_project
from ...queries.identity.credential_records import Credential
from ..call import Call
from .delegations import refuse_delegated


def list_pairs(call: Call, seal: Seal, user_id: str, project_id: str | None = None) -> list[Credential]:
    """Return a user's pairs, with their secrets in the clear; one that cannot be read has None. Raises ForbiddenError
    for a delegated token."""
    refuse_delegated(call, "EC2 credentials")
    return credential_records.list_ec2_credentials(call.connection, seal, user_id, project_id)


def find(call: Call, seal: Seal, user_id: str, access: str) -> Credential:
    """Return a user's pair, with its secret in the clear. Raises ForbiddenError for a delegated token, NotFoundError,
    UnreadableError."""
    refuse_delegated(call, "EC2 credentials")
    return credential_records.find_ec2_credential(call.connection, seal, user_id, access)


def create(call: Call, seal: Seal, user_id: str, project_id: str) -> Credential:
    """Make a pair for a user in a project. Raises ForbiddenError for a delegated token, NotFoundError for a project in
    which the user has no role, and could do nothing with the pair; QuotaError beyond 100."""
    refuse_delegated(call, "EC2 credentials")
    if not roles_in_project(call.connection, user_id, project_id):
        raise NotFoundError(f"Could not find project: {project_id[:64]}.")
    return credentials.create_ec2_credential(call.connection, seal, user_id, project_id)


def ensure(call: Call, seal: Seal, user_id: str, project_id: str) -> Credential:
    """Return the oldest pair of a user in a project that can be read, or a new pair. Raises as create()."""
    pairs = [pair for pair in list_pairs(call, seal, user_id, project_id) if pair["secret"] is not None]
    return pairs[0] if pairs else create(call, seal, user_id, project_id)


def delete(call: Call, user_id: str, access: str) -> None:
    """Remove a pair of a user. Raises ForbiddenError for a delegated token, NotFoundError."""
    refuse_delegated(call, "EC2 credentials")
    credentials.delete_ec2_credential(call.connection, user_id, access)
