# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects that changes are made for, and what concerns all of them."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import owners

from ...web import policy
from ...web.bodies import Record
from ...web.errors import Words, in_words
from ...work.calls import calling
from .blueprint import refused, word

OWNER: Words = {owners.UnknownProjectError: word(404, "ProjectNotFound")}


def named(body: Record) -> dict[str, str]:
    """The projects that a request names as the owner of what is made."""
    return {key: body[key] for key in ("project_id", "tenant_id") if body.get(key)}


def owner_of(connection: Connection, body: Record) -> str:
    """The project that what is made will be of: the caller's, or the one that an administrator names."""
    with in_words(OWNER):
        return owners.owner_of(calling(connection), named(body))


def check_owner(connection: Connection, body: Record) -> None:
    """Raise ForbiddenError if a new object is to belong to another project than the token's."""
    owners.check_own(calling(connection), named(body))


def check_for_all(body: Record, name: str, *attributes: str) -> None:
    """Refuse what concerns all projects, except to administrators."""
    for attribute in attributes:
        if body.get(attribute) and not policy.allowed("network:create:shared"):
            raise refused(f"rule:create_{name}:{attribute} is disallowed by policy: ask an administrator")
