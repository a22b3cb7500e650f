# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs about servers, in the transaction of what they carry out; and who asks for them."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ...jobs import queue
from ...web import policy
from ...web.bodies import Record
from ...web.context import Signature, signature


class Asker(Signature):
    by_admin: bool


def asker() -> Asker:
    """Return signature() and more, for what a locked server refuses to all but administrators."""
    return {**signature(), "by_admin": policy.allowed("compute:servers:override_lock")}


def tell(
    connection: Connection, kind: str, instances: t.Sequence[str], project_id: str, variables: Record | None = None
) -> str:
    """Have a job of `kind` do what was begun with these instances, or with what `variables` name. Returns its id."""
    job = queue.enqueue(
        connection, kind, instances=instances, variables=variables, project_id=project_id, **signature()
    )
    return job["id"]


def enqueue(connection: Connection, kind: str, row: InstanceRow, variables: Record | None = None) -> str:
    """Queue a job about one server, as tell() does about several. Returns its id."""
    return tell(connection, kind, [row.uuid], row.project_id, variables)
