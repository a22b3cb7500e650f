# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a server's guest said on its console: its host knows, so a job asks there, and the answer waits for it."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing

from ....jobs.queue import enqueue
from ....web.context import Caller, request_id
from ....web.ledger import reading_ledger, writing_ledger

ACTION = "os-getConsoleOutput"
WAIT = 45.0  # seconds; less than what clients and proxies wait for an answer (60)
PAUSE = 0.1  # seconds between two looks
MAX_LINES = 10**6


def output(server_id: str, value: t.Any, caller: Caller) -> str:
    """The last lines of the console. Raises ConflictError for a server that has none, and when it takes too long."""
    length = (value or {}).get("length")
    # -1, as nothing at all, means everything
    lines = None if length in (None, "", -1, "-1") else min(max(int(length), 0), MAX_LINES)
    with writing_ledger() as connection:
        row = server_listing.one(connection, server_id, caller.reach)
        if row.host is None:
            raise ConflictError(f"Instance {row.uuid} is not ready")
        if lines == 0:
            return ""
        variables = {} if lines is None else {"lines": lines}
        # who asks again because it took too long waits for the same answer
        job_id = server_changes.open_job(connection, row.uuid, "console", variables)
        if job_id is None:
            job_id = enqueue(
                connection,
                "console",
                instances=[row.uuid],
                variables=variables,
                project_id=row.project_id,
                user_id=caller.user_id,
                request_id=request_id(),
            )["id"]
    end = time.monotonic() + WAIT
    while True:
        with reading_ledger() as connection:
            job = server_changes.job_outcome(connection, job_id)
        if job.state == "succeeded":
            said = (job.result or {}).get("console", {})
            text = str(said.get(row.uuid, "")) if isinstance(said, dict) else ""
            # as Nova counts: what follows the last newline is a line, also when nothing does
            return text if lines is None else "\n".join(text.split("\n")[-lines:])
        if job.state in ("failed", "cancelled"):
            raise ConflictError(f"Unable to get the console log of {row.uuid}: {job.message or 'its host did not say'}")
        if time.monotonic() >= end:
            raise ConflictError(f"The console log of {row.uuid} is still being read: ask again")
        time.sleep(PAUSE)
