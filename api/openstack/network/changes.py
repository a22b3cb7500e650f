# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects that changes are made for, and what concerns all of them."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.counts import is_project

from ...web import policy
from ...web.bodies import Record
from ...web.context import current
from .blueprint import NeutronError, refused


def owner_of(connection: Connection, body: Record) -> str:
    """The project that what is made will be of: the caller's, or the one that an administrator names."""
    caller = current()
    named = {body[key] for key in ("project_id", "tenant_id") if body.get(key)}
    if not policy.allowed("network:create:other_project") or named <= {caller.project}:
        check_owner(body)
        return caller.project
    if len(named) > 1 or not all(is_project(connection, project_id) for project_id in named):
        raise NeutronError(404, "ProjectNotFound", f"Project {sorted(named)[0][:64]} could not be found.")
    return str(named.pop())


def check_owner(body: Record) -> None:
    """Raise NeutronError if a new object is to belong to another project than the token's."""
    for key in ("project_id", "tenant_id"):
        if body.get(key) not in (None, "", current().project):
            raise NeutronError(403, "PolicyNotAuthorized", f"{key} is another project's: use a token for that one")


def check_for_all(body: Record, name: str, *attributes: str) -> None:
    """Refuse what concerns all projects, except to administrators."""
    for attribute in attributes:
        if body.get(attribute) and not policy.allowed("network:create:shared"):
            raise refused(f"rule:create_{name}:{attribute} is disallowed by policy: ask an administrator")
