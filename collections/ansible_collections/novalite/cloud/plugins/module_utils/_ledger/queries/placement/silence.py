# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances to which something is done, and of which nothing is heard: reconcile.yml takes their runs for dead."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._json import JsonMapping, JsonObject
from ...._rules.build_states import BUILD_TIMEOUT, may_be_silent
from ...db import clock
from ..jobs.open_jobs import with_open_job


def with_silence(connection: sa.Connection, records: t.Iterable[JsonMapping]) -> list[JsonObject]:
    """Return the records of instances with `silent_for`: for how many seconds there was no sign of life of the run that
    is at it, where that run is dead; None for the others.

    The rule is ledger_heal's: a build or another action, as long as BUILD_TIMEOUT without a sign of life, for which no
    job waits or runs. Nothing is judged for a while after this machine's clock was set.
    """
    copies = [dict(record) for record in records]
    now, dead_since = clock.seconds(connection), clock.before(connection, BUILD_TIMEOUT)
    suspects = {record["uuid"] for record in copies if may_be_silent(record, dead_since)}
    suspects -= with_open_job(connection, suspects) if suspects else set()
    for record in copies:
        record["silent_for"] = now - record["updated_at"] if record["uuid"] in suspects else None
    return copies
