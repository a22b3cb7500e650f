# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The queue, as the application's requests see it: rows of the ledger, written with what they are about."""

from __future__ import annotations

import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tables_jobs import job, job_instance

Job = dict[str, t.Any]

DEFAULT_TIMEOUT = 3600  # seconds


def enqueue(
    connection: sa.Connection,
    kind: str,
    *,
    instances: t.Collection[str] = (),
    variables: t.Mapping[str, t.Any] | None = None,
    project_id: str | None = None,
    user_id: str | None = None,
    request_id: str | None = None,
    check_mode: bool = False,
) -> Job:
    """Record a job of `kind` about `instances` (UUIDs), in the transaction of what it will carry out."""
    row = {
        "id": str(uuid.uuid4()),
        "kind": kind,
        "project_id": project_id,
        "user_id": user_id,
        "request_id": request_id,
        "variables": dict(variables or {}),
        "check_mode": check_mode,
        "state": "queued",
        "timeout_seconds": DEFAULT_TIMEOUT,
        "created_at": time.time(),
    }
    connection.execute(sa.insert(job), [row])
    links = [{"job_id": row["id"], "instance_uuid": one} for one in sorted(set(instances))]
    if links:
        connection.execute(sa.insert(job_instance), links)
    return row
