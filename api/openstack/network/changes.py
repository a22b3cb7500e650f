# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Projects that changes are made for, and what concerns all of them."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import owners

from ...web.bodies import Record
from ...web.errors import Words
from ...work.calls import calling
from .blueprint import word

OWNER: Words = {owners.UnknownProjectError: word(404, "ProjectNotFound")}


def named(body: Record) -> dict[str, str]:
    """The projects that a request names as the owner of what is made."""
    return {key: body[key] for key in ("project_id", "tenant_id") if body.get(key)}


def check_owner(connection: Connection, body: Record) -> None:
    """Raise ForbiddenError if a new object is to belong to another project than the token's."""
    owners.check_own(calling(connection), named(body))
