# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which jobs go next, and together: the one transaction that makes a run of jobs that wait."""

from __future__ import annotations

import collections
import dataclasses
import json
import time
import typing as t
import uuid

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tables import instance
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.tables_jobs import job, job_instance, run, run_job

from .kinds import KINDS
from .options import Options

CLAIM_LOCK = 0x6E6F766A  # PostgreSQL advisory lock: workers claim one after the other
LOOKED_AT = 1000  # jobs that wait
MAX_INSTANCES = 1000  # of one run
AWAITED = sorted(kind.name for kind in KINDS.values() if kind.awaited)

Waiting = tuple[t.Any, list[str]]  # a job's row and its instances


@dataclasses.dataclass
class _Load:
    """What runs now. Runs that a request waits for count on nothing but their kind."""

    runs: collections.Counter[str]  # kind -> runs
    busy: set[str]  # instances
    hosts: collections.Counter[str]  # host -> runs


def waiting(connection: sa.Connection, full: bool = False) -> bool:
    """Whether any job waits that a worker, which may be `full`, could take. Cheap, and takes no lock."""
    query = sa.select(job.c.id).where(*_queued(full)).limit(1)
    return connection.execute(query).first() is not None


def _queued(full: bool) -> list[sa.ColumnElement[bool]]:
    return [job.c.state == "queued", *([job.c.kind.in_(AWAITED)] if full else [])]


def claim(connection: sa.Connection, worker_id: str, options: Options, full: bool = False) -> str | None:
    """Make a run of the jobs that are to go next and return its id, or None when none may go now. A worker that is
    `full` takes only what a request waits for.

    Such jobs go first. The others go in the order in which they came, except past those that have to wait: for a run
    or an earlier job that has one of their instances, for a limit. Jobs of a kind that can share a run do so, unless
    they were in a run before: what failed beside others goes alone.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(CLAIM_LOCK)))
    _drop_overtaken(connection)
    load = _load(connection)
    full = full or sum(count for kind, count in load.runs.items() if kind not in AWAITED) >= options.runs
    queue = _waiting(connection, full)
    if not queue:
        return None
    chosen = _choose(queue, load, _hosts(connection), _seen_before(connection), options)
    if not chosen:
        return None
    now, run_id = time.time(), str(uuid.uuid4())
    first = chosen[0][0]
    projects = {row.project_id for row, _instances in chosen}
    connection.execute(
        sa.insert(run).values(
            id=run_id,
            kind=first.kind,
            project_id=projects.pop() if len(projects) == 1 else None,
            state="running",
            worker_id=worker_id,
            attempts=0,
            created_at=now,
        )
    )
    ids = [row.id for row, _instances in chosen]
    taken = connection.execute(
        sa.update(job)
        .where(job.c.id.in_(ids), job.c.state == "queued")
        .values(state="running", run_id=run_id, started_at=now)
        .returning(job.c.id)
    ).scalars()
    connection.execute(sa.insert(run_job), [{"run_id": run_id, "job_id": one} for one in taken])
    return run_id


def _choose(
    queue: t.Sequence[Waiting], load: _Load, hosts: t.Mapping[str, str], before: set[str], options: Options
) -> list[Waiting]:
    chosen: list[Waiting] = []
    blocked = set(load.busy)
    added: set[str] = set()  # hosts that the new run counts on already
    count = 0
    for row, instances in queue:
        kind = KINDS.get(row.kind)
        if kind is None:
            continue
        fits = kind.read_only or not blocked.intersection(instances)
        if not kind.read_only:  # whoever comes later for the same instances has to wait for this one
            blocked.update(instances)
        if not fits or load.runs[row.kind] >= kind.runs:
            continue
        where = set() if kind.awaited else {hosts[one] for one in instances if one in hosts}
        if any(load.hosts[host] >= options.runs_per_host for host in where - added):
            continue
        if chosen and (
            not _goes_with(chosen[0][0], row) or row.id in before or count + len(instances) > MAX_INSTANCES
        ):
            continue
        chosen.append((row, instances))
        added |= where
        count += len(instances)
        if not kind.merge or not instances or row.id in before:
            break
    return chosen


def _drop_overtaken(connection: sa.Connection) -> None:
    """End launches that wait for instances which are all being deleted by now: nothing is left to build."""
    wanted = (
        sa.select(sa.literal(1))
        .select_from(job_instance.join(instance, instance.c.uuid == job_instance.c.instance_uuid))
        .where(
            job_instance.c.job_id == job.c.id,
            instance.c.deleted == 0,
            instance.c.task_state.is_distinct_from("deleting"),
        )
        .exists()
    )
    any_instance = sa.select(sa.literal(1)).where(job_instance.c.job_id == job.c.id).exists()
    connection.execute(
        sa.update(job)
        .where(job.c.kind == "launch", job.c.state == "queued", any_instance, ~wanted)
        .values(state="failed", message="ended by a request to delete", finished_at=time.time())
    )


def _goes_with(first: t.Any, row: t.Any) -> bool:
    return bool(first.kind == row.kind and first.check_mode == row.check_mode and shared(first) == shared(row))


def shared(row: t.Any) -> str:
    """The variables in which jobs of one run must not differ. All-or-nothing holds for each job of a run by itself."""
    return json.dumps({name: row.variables[name] for name in row.variables if name != "all_or_nothing"}, sort_keys=True)


def _load(connection: sa.Connection) -> _Load:
    kinds = connection.execute(sa.select(run.c.kind).where(run.c.state == "running")).scalars().all()
    query = (
        sa.select(job_instance.c.instance_uuid, job.c.run_id, job.c.kind, instance.c.host)
        .join(job, job.c.id == job_instance.c.job_id)
        .outerjoin(instance, instance.c.uuid == job_instance.c.instance_uuid)
        .where(job.c.state == "running")
    )
    rows = connection.execute(query).all()
    on_hosts = {(row.run_id, row.host) for row in rows if row.host and row.kind not in AWAITED}
    return _Load(
        runs=collections.Counter(kinds),
        busy={row.instance_uuid for row in rows if not KINDS[row.kind].read_only},
        hosts=collections.Counter(host for _run, host in on_hosts),
    )


def _waiting(connection: sa.Connection, full: bool) -> list[Waiting]:
    """Jobs that wait, in the order in which they go."""
    first = sa.case((job.c.kind.in_(AWAITED), 0), else_=1)
    rows = connection.execute(
        sa.select(job).where(*_queued(full)).order_by(first, job.c.created_at, job.c.id).limit(LOOKED_AT)
    ).all()
    if not rows:
        return []
    instances: dict[str, list[str]] = collections.defaultdict(list)
    query = (
        sa.select(job_instance.c.job_id, job_instance.c.instance_uuid)
        .join(job, job.c.id == job_instance.c.job_id)
        .where(job.c.state == "queued")
        .order_by(job_instance.c.instance_uuid)
    )
    for row in connection.execute(query):
        instances[row.job_id].append(row.instance_uuid)
    return [(row, instances[row.id]) for row in rows]


def _hosts(connection: sa.Connection) -> dict[str, str]:
    query = (
        sa.select(instance.c.uuid, instance.c.host)
        .join(job_instance, job_instance.c.instance_uuid == instance.c.uuid)
        .join(job, job.c.id == job_instance.c.job_id)
        .where(job.c.state == "queued", instance.c.host.is_not(None))
    )
    return {row.uuid: row.host for row in connection.execute(query)}


def _seen_before(connection: sa.Connection) -> set[str]:
    query = sa.select(run_job.c.job_id).join(job, job.c.id == run_job.c.job_id).where(job.c.state == "queued")
    return set(connection.execute(query).scalars())
