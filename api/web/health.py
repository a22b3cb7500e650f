# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""`/healthz`: this process answers. `/readyz`: what it needs to do its work is there.

The first asks nothing of the ledger, so that a slow one gets no process killed.
"""

from __future__ import annotations

from flask import Blueprint, Flask, current_app

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.made import is_of_this_version
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs.job_records import last_seen

from ..settings import Settings
from . import policy
from .ledger import reading_ledger

blueprint = Blueprint("health", __name__)

FRESH = 30  # seconds since the last sign of life of some worker


def register(app: Flask, settings: Settings) -> None:
    app.register_blueprint(blueprint)


@blueprint.get("/healthz")
@policy.allows("health")
def healthz() -> dict[str, str]:
    return {"status": "ok"}


@blueprint.get("/readyz")
@policy.allows("health")
def readyz() -> tuple[dict[str, str], int]:
    """Tell whether the ledger can be read and is of this version, and whether a worker carries jobs out."""
    checks = {"ledger": "ok", "worker": "ok"}
    try:
        with reading_ledger() as connection:
            if not is_of_this_version(connection):
                checks["ledger"] = "of another version"
            checks["worker"] = _worker(connection)
    except NovaliteError as error:
        current_app.logger.error("%s", error)
        checks = {"ledger": "unreachable", "worker": "unknown"}
    ready = all(value == "ok" for value in checks.values())
    return {"status": "ok" if ready else "not ready", **checks}, 200 if ready else 503


def _worker(connection: Connection) -> str:
    last = last_seen(connection)
    return "ok" if last is not None and clock.now(connection) - last < FRESH else "none has shown itself lately"
