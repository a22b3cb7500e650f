# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The durable part: each run is a DBOS workflow, its id the run's, its steps prepare, play and record.

What a step returned is kept; a workflow that was cut off goes on with the step that was under way, in whatever worker.
DBOS's own tables lie beside the ledger: <home>/jobs/dbos.sqlite, or the schema `dbos` of the ledger's PostgreSQL.
"""

from __future__ import annotations

import dataclasses
import datetime
import logging
import typing as t

from dbos import DBOS, SetWorkflowID
from dbos import error as dbos_error

from ansible_collections.novalite.cloud.plugins.module_utils._json import JsonObject

from .options import Options
from .runs import FAILED, Outcome, Plan

log = logging.getLogger(__name__)

# Workflows are taken up by workers of the same version only. Theirs is the shape of the steps, not the code's.
VERSION = "1"


class Steps(t.Protocol):
    """Work of the steps; a worker."""

    def prepare(self, run_id: str) -> Plan: ...
    def play(self, plan: Plan) -> Outcome: ...
    def record(self, run_id: str, outcome: Outcome) -> None: ...


_steps: Steps  # this process's, from launch() on


def launch(options: Options, executor_id: str, steps: Steps) -> None:
    """Start DBOS in this process. From here on it may call `steps`."""
    global _steps
    _steps = steps
    DBOS(
        config={
            "name": "novalite",
            "system_database_url": options.place.libpq_url or f"sqlite:///{options.directory}/dbos.sqlite",
            "executor_id": executor_id,
            "application_version": VERSION,
            "log_level": "WARNING",
            "enable_otlp": False,
        }
    )
    DBOS.launch()


def start(run_id: str) -> None:
    """Start the run's workflow in this process; nothing happens when it was started before."""
    with SetWorkflowID(run_id):
        DBOS.start_workflow(_carry_out, run_id)


def resume(run_id: str) -> bool:
    """Let the workflow of a run whose worker is gone go on, in any worker; False when it came to its end."""
    try:
        status = DBOS.get_workflow_status(run_id)
        if status is not None and status.status in ("SUCCESS", "ERROR", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"):
            return False
        DBOS.resume_workflow(run_id)
    except dbos_error.DBOSNonExistentWorkflowError:
        start(run_id)  # it died between the claim and the start
    return True


def forget(before: float) -> None:
    """Remove what DBOS knows of workflows that ended before this time (epoch, seconds)."""
    ended = ["SUCCESS", "ERROR"]
    limit = datetime.datetime.fromtimestamp(before, datetime.timezone.utc).isoformat()
    old = DBOS.list_workflows(status=ended, end_time=limit, limit=1000, load_input=False, load_output=False)
    if old:
        DBOS.delete_workflows([workflow.workflow_id for workflow in old])


@DBOS.workflow(name="run", max_recovery_attempts=None)
def _carry_out(run_id: str) -> None:
    try:
        outcome = _play(_prepare(run_id))
    except Exception as error:  # a mistake of ours: the jobs must not hang on it
        log.exception("run %s", run_id)
        outcome = dataclasses.asdict(Outcome(FAILED, f"internal error: {type(error).__name__}"))
    _record(run_id, outcome)


@DBOS.step(name="prepare")
def _prepare(run_id: str) -> JsonObject:
    return dataclasses.asdict(_steps.prepare(run_id))


@DBOS.step(name="play")
def _play(plan: JsonObject) -> JsonObject:
    return dataclasses.asdict(_steps.play(Plan(**plan)))


@DBOS.step(name="record")
def _record(run_id: str, outcome: JsonObject) -> None:
    _steps.record(run_id, Outcome(**outcome))
