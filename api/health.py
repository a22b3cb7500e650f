# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""`/healthz`: this process answers. `/readyz`: what it needs to do its work is there.

The first asks nothing of the ledger, so that a slow one gets no process killed.
"""

from __future__ import annotations

import time

import sqlalchemy as sa
from flask import Blueprint, Flask, current_app

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NovaliteError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables_jobs
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import HEAD

from . import policy
from .ledger import reading_ledger
from .settings import Settings

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
    """Whether the ledger can be read and is of this version, and whether somebody carries jobs out."""
    checks = {"ledger": "ok", "worker": "ok"}
    try:
        with reading_ledger() as connection:
            revision = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
            if revision != HEAD:
                checks["ledger"] = "of another version"
            checks["worker"] = _worker(connection)
    except NovaliteError as error:
        current_app.logger.error("%s", error)
        checks = {"ledger": "unreachable", "worker": "unknown"}
    ready = all(value == "ok" for value in checks.values())
    return {"status": "ok" if ready else "not ready", **checks}, 200 if ready else 503


def _worker(connection: sa.Connection) -> str:
    worker = getattr(tables_jobs, "worker", None)
    if worker is None:
        return "ok"
    seen = sa.select(sa.func.max(worker.c.seen_at)).where(worker.c.stopped_at.is_(None))
    last = connection.execute(seen).scalar()
    return "ok" if last is not None and time.time() - last < FRESH else "none has shown itself lately"
