# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers that wait for a job: what a host alone knows, and what clients take for done when they are answered."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations import servers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.compute import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import open_jobs

from ..web.context import current
from ..web.ledger import reading_ledger, writing_ledger
from .calls import calling

WAIT = 45.0  # seconds; less than what clients and proxies wait for an answer (60)
PAUSE = 0.1  # seconds between two looks


def ended(job_id: str) -> t.Any:
    """Return how the job ended (see open_jobs.job_outcome), or None if it has not within WAIT seconds."""
    end = time.monotonic() + WAIT
    while True:
        with reading_ledger() as connection:
            job = open_jobs.job_outcome(connection, job_id)
        if job.state not in ("queued", "running"):
            return job
        if time.monotonic() >= end:
            return None
        time.sleep(PAUSE)


def console_output(server_id: str, lines: int | None = None) -> str:
    """The last `lines` of the console, or all of it: a job asks the host, and the answer waits for it. Raises
    ConflictError where there is none, or it takes too long."""
    with writing_ledger() as connection:
        row = server_listing.instance_row(connection, server_id, current().reach)
        if row.host is not None and lines == 0:
            return ""
        job_id = servers.console_job(calling(connection), row, lines)
    job = ended(job_id)
    if job is None:
        raise ConflictError(f"The console log of {row.uuid} is still being read: ask again")
    if job.state != "succeeded":
        raise ConflictError(f"Unable to get the console log of {row.uuid}: {job.message or 'its host did not say'}")
    console_texts = (job.result or {}).get("console", {})
    text = str(console_texts.get(row.uuid, "")) if isinstance(console_texts, dict) else ""
    # as Nova counts: what follows the last newline is a line, also when nothing does
    return text if lines is None else "\n".join(text.split("\n")[-lines:])
