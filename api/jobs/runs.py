# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs, from the claim to their end, as the ledger knows them: what they are to do, who has them, how they ended."""

from __future__ import annotations

import dataclasses
import typing as t

import yaml

from ansible_collections.novalite.cloud.plugins.module_utils._errors import NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._json import Json, JsonMapping, JsonObject
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import clock
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.instances import actions
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.jobs import job_outcomes, run_rows
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.identity.projects import project_name
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.jobs import job_records
from ansible_collections.novalite.cloud.plugins.plugin_utils._playbooks import PLAYBOOKS

from . import queue
from .kinds import KINDS, kind_of

SUCCESSFUL, FAILED, TIMEOUT, CANCELLED, LOST = "successful", "failed", "timeout", "cancelled", "lost"
MAX_RESULT = 512 * 1024  # characters of one text in a result
UUID_LENGTH = 36


@dataclasses.dataclass(frozen=True)
class Plan:
    """Work of a run. DBOS keeps it, so that all attempts do the same."""

    run_id: str
    playbook: str
    arguments: list[str]
    variables: JsonObject
    timeout: float


@dataclasses.dataclass(frozen=True)
class Outcome:
    """End of a run's playbook."""

    how: str
    message: str | None = None
    data: JsonObject = dataclasses.field(default_factory=dict)  # of set_stats


def plan_of(connection: Connection, run_id: str) -> Plan:
    """Read what the run is to do. Raises NotFoundError."""
    run = run_rows.row_of(connection, run_id)
    jobs = run_rows.jobs_of(connection, run_id)
    if run is None or not jobs:
        raise NotFoundError(f"there is no run {run_id} with jobs")
    kind = kind_of(run.kind)
    instances = job_records.instances_of(connection, [row.id for row in jobs])
    variables = dict(jobs[0].variables)
    if "project" in variables and (owner := jobs[0].project_id) is not None:
        # it may have another name since the job was asked for; of one that is gone, nobody has the id for a name
        variables["project"] = project_name(connection, owner) or owner
    limit = variables.pop("limit", None)
    uuids = [uuid for row in jobs for uuid in instances[row.id]]
    known = PLAYBOOKS[kind.playbook.removesuffix(".yml")].variables  # what it does not know, it refuses
    if uuids and "uuids" in known:
        variables["uuids"] = uuids
        variables.pop("servers", None)  # they are these: the job was recorded with them
    if "wait_for" in known:
        # ACTIVE is what runs, as in Nova, whatever the inventory says: not every image has an ssh server, not every
        # group lets us in, and others of the run would wait for it
        variables["wait_for"] = "running"
    if run.kind == job_outcomes.LAUNCH and uuids:
        variables.pop("all_or_nothing", None)
        # which of them have to be placed together
        variables["novalite_reservations"] = {
            uuid: uuid if row.variables.get("all_or_nothing") is False else row.id
            for row in jobs
            for uuid in instances[row.id]
        }
        # what fails beside others is tried again by itself, before it counts
        variables["novalite_alone"] = len(jobs) == 1
    elif run.kind == job_outcomes.LAUNCH and jobs[0].user_id:
        variables["novalite_user"] = jobs[0].user_id  # whose key pairs are meant, and whose the servers are
    # the plays of the controller are none of the hosts', and are not to be left out
    limited = ["--limit", f"{limit},localhost"] if limit else []
    return Plan(
        run_id=run_id,
        playbook=kind.playbook,
        arguments=[*limited, *(["--check", "--diff"] if jobs[0].check_mode else [])],
        variables=variables,
        timeout=max(row.timeout_seconds for row in jobs),
    )


def begin_attempt(connection: Connection, run_id: str, worker_id: str, most: int) -> str:
    """Count one more attempt, under the run's lock: "go".

    Or "ended", when that was recorded before; CANCELLED, when all of its jobs are to be; LOST, after enough of them.
    """
    run = run_rows.row_of(connection, run_id)
    if run is None or run.state != "running":
        return "ended"
    if all(job.cancel_requested for job in run_rows.jobs_of(connection, run_id)):
        return CANCELLED
    if run.attempts > most and not kind_of(run.kind).always_retry:
        return LOST
    run_rows.count_attempt(connection, run_id, worker_id)
    return "go"


def end(connection: Connection, run_id: str, outcome: Outcome) -> bool:
    """Record how the run ended, on each of its jobs; False when that was done before.

    A job is judged by what became of its own instances. One that came to no end goes into the queue again, to run
    alone, if it ran beside others; otherwise its instances are given an end.
    """
    now = clock.now(connection)
    if not run_rows.end(connection, run_id, outcome.how, now):
        return False
    jobs = run_rows.jobs_of(connection, run_id)
    instances = job_records.instances_of(connection, [row.id for row in jobs])
    dirty: set[str] = set()
    for row in jobs:
        uuids = instances[row.id]
        state, message, settled = _end_of(connection, row, uuids, outcome, len(jobs) > 1)
        if state == job_records.QUEUED:
            if row.kind == job_outcomes.LAUNCH:
                job_outcomes.forgive(connection, uuids)
            run_rows.queue_again(connection, row.id)
            continue
        # a build that came to an end took back what it had made
        if row.kind == job_outcomes.LAUNCH and (settled or state == job_records.CANCELLED):
            dirty.update(job_outcomes.hosts_tried(connection, uuids))
        result = result_of(outcome.data, uuids, len(jobs) == 1)
        run_rows.end_job(connection, row.id, state, message, result, now)
    queue.enqueue_cleaning(connection, dirty)
    return True


def cancel_in_company(connection: Connection, run_id: str) -> bool:
    """Give an end to the instances of those jobs of a run that are to be cancelled; whether all of them are.

    The run goes on for the others: what it builds for these is refused by the ledger, and removed afterwards.
    """
    jobs = run_rows.jobs_of(connection, run_id)
    to_cancel = [row for row in jobs if row.cancel_requested]
    if to_cancel and len(to_cancel) < len(jobs):
        instances = job_records.instances_of(connection, [row.id for row in to_cancel])
        for row in to_cancel:
            if row.kind == job_outcomes.LAUNCH:
                job_outcomes.settle(connection, row.kind, instances[row.id], "the job was cancelled")
    return bool(jobs) and len(to_cancel) == len(jobs)


def result_of(data: JsonMapping, uuids: t.Collection[str], alone: bool) -> JsonObject | None:
    """Return a job's part of its run's data (set_stats): its own of dictionaries by instance; the rest if alone."""
    own: JsonObject = {}
    for name, value in data.items():
        if isinstance(value, dict) and value and all(isinstance(k, str) and len(k) == UUID_LENGTH for k in value):
            value = {uuid: item for uuid, item in value.items() if uuid in uuids}
            if value:
                own[name] = value
        elif alone:
            own[name] = value
    return _with_texts(own, lambda text: text[-MAX_RESULT:]) or None


def variables_file(variables: JsonMapping) -> str:
    """Extra variables as YAML in which every text is marked as unsafe: none of them is ever taken for a template."""
    return yaml.dump(_with_texts(dict(variables), _Unsafe), Dumper=_Dumper, default_flow_style=True, width=10**6)


class _Unsafe(str):
    pass


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent(dumper: _Dumper, text: _Unsafe) -> yaml.ScalarNode:
    """The text with the tag, or without it where that would make a number of a snapshot called `2024`: what is tagged
    is resolved as if it had no quotes. Nothing of the kind is a template."""
    is_text = dumper.resolve(yaml.ScalarNode, str(text), (True, False)) == dumper.DEFAULT_SCALAR_TAG
    return dumper.represent_scalar("!unsafe" if is_text else dumper.DEFAULT_SCALAR_TAG, str(text), style='"')


_Dumper.add_representer(_Unsafe, _represent)


def _end_of(
    connection: Connection, row: job_records.JobRow, uuids: list[str], outcome: Outcome, merged: bool
) -> tuple[str, str | None, bool]:
    """The state and the message of one job of a run that ended, and whether its instances were given an end here."""
    kind = KINDS[row.kind]
    message = actions.one_line(outcome.message) if outcome.message else None
    reason = message or {
        TIMEOUT: f"it took longer than {row.timeout_seconds} s",
        CANCELLED: "the job was cancelled",
        LOST: "its worker died again and again",
    }.get(outcome.how, "its playbook ended without a result")
    if kind.action is None or kind.read_only or row.check_mode or not uuids:
        done, error = outcome.how == SUCCESSFUL, reason
        is_open = not done
    else:
        verdict = job_outcomes.judge(connection, row.request_id, kind.action, uuids)
        is_open = bool(verdict.open)
        done, error = not is_open and verdict.error is None, verdict.error or reason
    if done:
        return job_records.SUCCEEDED, None, False
    if is_open and merged and not row.cancel_requested:
        return job_records.QUEUED, None, False
    if is_open:
        job_outcomes.settle(connection, row.kind, uuids, reason)
        job_outcomes.settle_volumes(connection, row.kind, row.variables, reason)
    return (job_records.CANCELLED if row.cancel_requested else job_records.FAILED), error, is_open


def _with_texts(value: Json, change: t.Callable[[str], str]) -> Json:
    """A copy of `value` in which each text, but for the keys, is what `change` makes of it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {str(key): _with_texts(item, change) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_texts(item, change) for item in value]
    return value
