# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs about servers, in the transaction of what they carry out; and who asks for them."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ...jobs import queue
from ...web.bodies import Record
from ...web.context import current, request_id


class Who(t.TypedDict):
    request_id: str
    user_id: str


class Asker(Who):
    ignore_lock: bool


def who() -> Who:
    """Return the ids of the request and its user, as the ledger keeps them with what was asked for."""
    return {"request_id": request_id(), "user_id": current().user_id}


def asker() -> Asker:
    """As who(), for what a locked server refuses to all but administrators."""
    return {**who(), "ignore_lock": current().is_admin}


def tell(
    connection: Connection, kind: str, instances: t.Sequence[str], project_id: str, variables: Record | None = None
) -> str:
    """Have a job of `kind` do what was begun with these instances, or with what `variables` name. Returns its id."""
    job = queue.enqueue(connection, kind, instances=instances, variables=variables, project_id=project_id, **who())
    return job["id"]


def enqueue(connection: Connection, kind: str, row: InstanceRow, variables: Record | None = None) -> str:
    """As tell(), about one server."""
    return tell(connection, kind, [row.uuid], row.project_id, variables)
