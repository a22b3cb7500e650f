# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conditions that must hold after the chaos, and after everything was deleted. Each function returns what does not."""

from __future__ import annotations

import subprocess
import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db import tables
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.tables_jobs import job, run
from api.jobs import supervisor
from tests.api.chaos.client import Accepted
from tests.api.jobs.clouds import ROOT, JobCloud

REST = ("active", "error", "stopped")  # vm_states of instances that nobody is at


def names(cloud: JobCloud) -> set[str]:
    """Of all servers that there ever were."""
    return {row[0].get("chaos", "") for row in cloud.rows(sa.select(tables.instance.c.metadata))}


def requests_ended(cloud: JobCloud, accepted: t.Collection[Accepted], earlier: t.Collection[str]) -> list[str]:
    """Every request that was accepted was carried out once, and came to an end. `earlier`: servers of others."""
    instance, action = tables.instance, tables.instance_action
    shown = sa.func.coalesce(instance.c.display_name, instance.c.name).label("shown")
    made: dict[str, int] = {}
    gone: dict[str, bool] = {}
    for row in cloud.rows(sa.select(instance.c.uuid, instance.c.deleted, instance.c.metadata)):
        name = row.metadata.get("chaos", "")
        made[name] = made.get(name, 0) + 1
        gone[row.uuid] = bool(row.deleted)
    actions = {(row.instance_uuid, row.request_id): row for row in cloud.rows(sa.select(action))}
    wrong = []
    for request in accepted:
        if request.what == "create":
            if made.get(request.server, 0) != request.count:
                wrong.append(f"{request.server}: {made.get(request.server, 0)} instances instead of {request.count}")
        elif request.what == "delete":
            if not gone.get(request.server, True):
                wrong.append(f"{request.server} was to be deleted and is there")
        elif (request.server, request.request_id) not in actions:
            wrong.append(f"{request.what} of {request.server} left no trace")
    unasked = set(made) - {request.server for request in accepted} - set(earlier)
    wrong += [f"{name}: nobody was told of it" for name in unasked]
    for row in cloud.rows(sa.select(instance, shown).where(instance.c.deleted == 0)):
        if row.vm_state not in REST or row.task_state:
            wrong.append(f"instance {row.uuid} ({row.shown}) is {row.vm_state}/{row.task_state} on {row.host}")
    wrong += [
        f"action {row.action} of {row.instance_uuid} has no end" for row in actions.values() if row.finished_at is None
    ]
    return wrong


def at_rest(cloud: JobCloud) -> list[str]:
    """No job waits, no run is at work, and the ledger's sums are right."""
    wrong = [
        f"job {row.id} ({row.kind}) is {row.state}"
        for row in cloud.rows(sa.select(job).where(job.c.state.in_(["queued", "running"])))
    ]
    for row in cloud.rows(sa.select(run)):
        if row.state == "running":
            wrong.append(f"run {row.id} is still running")
        if left := supervisor.processes_of(row.id):
            wrong.append(f"processes {left} of run {row.id} are left")
    wrong += cloud.leaks()
    return wrong + [f"{path} is left" for path in supervisor.left_in(str(cloud.home / "jobs/runs"))]


def nothing_left(cloud: JobCloud) -> list[str]:
    """After everything was deleted: no claim, no interface, no address of one."""
    owned = sa.select(tables.fixed_ip.c.owner).where(tables.fixed_ip.c.owner.like("vif:%"))
    there = sa.select(tables.instance.c.uuid).where(tables.instance.c.deleted == 0)
    rows_by_table = {
        "allocation": cloud.rows(sa.select(tables.allocation.c.instance_uuid)),
        "vif": cloud.rows(sa.select(tables.vif.c.instance_uuid)),
        "fixed_ip": cloud.rows(owned),
        "instance": cloud.rows(there),
    }
    return [f"{name} of {row[0]} is left" for name, rows in rows_by_table.items() for row in rows]


def overlaps(trace: t.Iterable[t.Mapping[str, t.Any]], killed: t.Mapping[int, float]) -> list[str]:
    """Runs that were at work twice at once: begun again before the one before had ended, or had been killed."""
    at_work: dict[str, int] = {}
    wrong = []
    for note in trace:
        if note["what"] != "start":
            at_work.pop(note["run"], None)
            continue
        before = at_work.get(note["run"])
        if before is not None and killed.get(before, note["at"] + 1) > note["at"]:
            wrong.append(f"run {note['run']} began in {note['pid']} while {before} was at it")
        at_work[note["run"]] = note["pid"]
    return wrong


def hosts(cloud: JobCloud, environment: t.Mapping[str, str]) -> list[str]:
    """On every host run the guests that the ledger says, and nothing else of ours is there."""
    done = subprocess.run(
        ["ansible-playbook", "-i", "inventories/lab", "tests/api/chaos/verify.yml"],
        env=dict(environment),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return [] if done.returncode == 0 else [f"hosts: {done.stdout[-3000:]}"]
