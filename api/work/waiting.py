# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Answers that wait for a job: what a host alone knows, and what clients take for done when they are answered."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_changes

from ..web.ledger import reading_ledger

WAIT = 45.0  # seconds; less than what clients and proxies wait for an answer (60)
PAUSE = 0.1  # seconds between two looks


def ended(job_id: str) -> t.Any:
    """Return how the job ended (see server_changes.job_outcome), or None if it has not within WAIT seconds."""
    end = time.monotonic() + WAIT
    while True:
        with reading_ledger() as connection:
            job = server_changes.job_outcome(connection, job_id)
        if job.state not in ("queued", "running"):
            return job
        if time.monotonic() >= end:
            return None
        time.sleep(PAUSE)
