# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs about servers, in the transaction of what they carry out."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow

from ...jobs import queue
from ...web.bodies import Record
from ...web.context import current, request_id


def enqueue(connection: Connection, kind: str, row: InstanceRow, variables: Record | None = None) -> str:
    """Have a job of `kind` carried out on the server, in the name of who asks. Returns the job's id."""
    job = queue.enqueue(
        connection,
        kind,
        instances=[row.uuid],
        variables=variables,
        project_id=row.project_id,
        user_id=current().user_id,
        request_id=request_id(),
    )
    return job["id"]
