# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on key pairs, for every door."""

from __future__ import annotations

import re

from ...._errors import NotFoundError, NovaliteError
from ...catalog.keypairs import remove_keypairs, write_keypairs
from ...ec2 import ec2_records
from ...queries.catalog.keypair_records import KeyPair, keypairs_of
from ...queries.identity import projects
from ..call import Call

SAFE = re.compile(r"[A-Za-z0-9 @._-]+")  # Nova's


def check_name(name: str) -> None:
    """Raise NovaliteError for a name that a key pair cannot have."""
    if SAFE.fullmatch(name) is None or name != name.strip():
        raise NovaliteError(
            "Keypair data is invalid: Keypair name contains unsafe characters: use letters, digits, '@', '.', '_', '-' "
            "and blanks in between"
        )


def create(call: Call, user_id: str, name: str, public_key: str, *, fingerprint: str | None = None) -> KeyPair:
    """Record a new key pair of a user. `fingerprint` is EC2's of a pair that was made here, of its private part. Raises
    ConflictError for a name that the user has, NovaliteError for another that cannot be, and as write_keypairs()."""
    check_name(name)
    item = {"name": name, "public_key": public_key}
    write_keypairs(call.connection, _project(call), [item], user_id, refuse_there=True)
    if fingerprint is not None:
        ec2_records.keep_fingerprint(call.connection, user_id, name, fingerprint)
    return next(row for row in keypairs_of(call.connection, "", user_id) if row["name"] == name)


def delete(call: Call, user_id: str, name: str) -> None:
    """Remove a user's key pair; of the caller's also the project's shared one, where there is none of their own. Raises
    NotFoundError, and ForbiddenError for a shared one that only managers remove."""
    own = user_id == call.user_id
    if not any(row["name"] == name for row in keypairs_of(call.connection, call.project if own else "", user_id)):
        raise NotFoundError(f"Keypair {name[:255]} not found for user {user_id}")
    by_manager = own and call.permits("compute:keypairs:manage")
    remove_keypairs(call.connection, _project(call), [{"name": name}], user_id, by_manager)


def _project(call: Call) -> str:
    return str(projects.project_name(call.connection, call.project))
