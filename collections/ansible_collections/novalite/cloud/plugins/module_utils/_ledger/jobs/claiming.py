# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Choice of the jobs that go next, and together: the one transaction that makes a run of waiting jobs."""

from __future__ import annotations

import collections
import dataclasses
import json
import typing as t
import uuid

import sqlalchemy as sa

from ..._json import JsonMapping
from ..db import clock
from ..db.engine import take_turns
from ..db.tables import instance
from ..db.tables_jobs import job, job_instance, run, run_job
from ..queries.counts import is_any

CLAIM_LOCK = 0x6E6F766A  # PostgreSQL advisory lock: workers claim one after the other
LOOKED_AT = 1000  # jobs that wait
LOOKED_AT_EACH = 500  # of them, of one project
MAX_INSTANCES = 1000  # of one run
# in the words of the index of open jobs: SQLite knows it by them alone, and else reads all jobs of 90 days
OPEN: sa.ColumnElement[bool] = sa.literal_column("job.state IN ('queued', 'running')")


class Kind(t.Protocol):
    """Properties of a kind of jobs that matter here."""

    @property
    def runs(self) -> int: ...  # at once
    @property
    def merge(self) -> bool: ...  # whether jobs that wait at the same time share a run
    @property
    def read_only(self) -> bool: ...
    @property
    def awaited(self) -> bool: ...  # whether a request's answer waits for it


class Limits(t.Protocol):
    """Limits of the runs at once: in all, and at the instances of one host."""

    @property
    def runs(self) -> int: ...
    @property
    def runs_per_host(self) -> int: ...


Kinds = t.Mapping[str, Kind]  # by name; all that there are


@dataclasses.dataclass(frozen=True)
class Waiting:
    """A job that waits."""

    id: str
    kind: str
    project_id: str | None
    check_mode: bool
    instances: t.Sequence[str]
    hosts: t.AbstractSet[str]  # where these are
    behind: bool  # an earlier job that waits changes one of these instances
    alone: bool  # it was in a run before: what failed beside others goes alone


@dataclasses.dataclass(frozen=True)
class _Load:
    """Current runs. Those that a request waits for count on nothing but their kind."""

    runs: collections.Counter[str]  # kind -> runs
    projects: collections.Counter[str | None]  # project -> runs
    kinds: collections.Counter[tuple[str | None, str]]  # project and kind -> runs
    busy: set[str]  # instances
    hosts: collections.Counter[str]  # host -> runs


def waiting(connection: sa.Connection, kinds: Kinds, full: bool = False) -> bool:
    """Return whether any job waits that a worker, which may be `full`, could take. Cheap, and takes no lock."""
    return is_any(connection, *_queued(kinds, full))


def _queued(kinds: Kinds, full: bool) -> list[sa.ColumnElement[bool]]:
    return [job.c.state == "queued", OPEN, *([job.c.kind.in_(_awaited(kinds))] if full else [])]


def _awaited(kinds: Kinds) -> list[str]:
    return sorted(name for name, kind in kinds.items() if kind.awaited)


def claim(connection: sa.Connection, worker_id: str, kinds: Kinds, limits: Limits, full: bool = False) -> str | None:
    """Make a run of the jobs that are to go next and return its id, or None when none may go now. A worker that is
    `full` takes only what a request waits for.

    Such jobs go first. The others go by turns: first those of the project that has the fewest runs at work, and that
    was not served for longest; of one project in the order in which they came. Jobs pass those that have to wait: for
    a run or an earlier job that has one of their instances, for a limit. Jobs of a kind that can share a run do so,
    whosever they are, unless they were in a run before: what failed beside others goes alone.

    No single project takes the last slot, of all runs or of a kind that has several: whoever comes next finds one.
    """
    take_turns(connection, CLAIM_LOCK)
    _drop_overtaken(connection)
    load = _load(connection, kinds)
    awaited = _awaited(kinds)
    full = full or sum(count for name, count in load.runs.items() if name not in awaited) >= limits.runs
    chosen = _choose(connection, _waiting(connection, kinds, full, load), load, kinds, limits)
    if not chosen:
        return None
    now, run_id = clock.now(connection), str(uuid.uuid4())
    first = chosen[0]
    projects = {waiter.project_id for waiter in chosen}
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
    ids = [waiter.id for waiter in chosen]
    taken = connection.execute(
        sa.update(job)
        .where(job.c.id.in_(ids), job.c.state == "queued")
        .values(state="running", run_id=run_id, started_at=now)
        .returning(job.c.id)
    ).scalars()
    connection.execute(sa.insert(run_job), [{"run_id": run_id, "job_id": job_id} for job_id in taken])
    return run_id


def _choose(
    connection: sa.Connection, queue: t.Sequence[Waiting], load: _Load, kinds: Kinds, limits: Limits
) -> list[Waiting]:
    chosen: list[Waiting] = []
    alike: t.Collection[str] = ()  # jobs whose variables are those of the first one
    added: set[str] = set()  # hosts that the new run counts on already
    count = 0
    for waiter in queue:
        kind = kinds.get(waiter.kind)
        if kind is None or load.runs[waiter.kind] >= kind.runs:
            continue
        if not kind.read_only and (waiter.behind or not load.busy.isdisjoint(waiter.instances)):
            continue
        where = set() if kind.awaited else waiter.hosts
        if any(load.hosts[host] >= limits.runs_per_host for host in where - added):
            continue
        if not chosen and not _may_take_a_slot(waiter, kind, load, limits):
            continue
        if chosen and (waiter.id not in alike or waiter.alone or count + len(waiter.instances) > MAX_INSTANCES):
            continue
        chosen.append(waiter)
        added |= where
        count += len(waiter.instances)
        if not kind.merge or not waiter.instances or waiter.alone:
            break
        if not alike:
            alike = _alike(connection, waiter, queue)
    return chosen


def _may_take_a_slot(waiter: Waiting, kind: Kind, load: _Load, limits: Limits) -> bool:
    """Return whether a run for this job leaves others a slot. What no project asked for is the operator's."""
    if waiter.project_id is None:
        return True
    if load.kinds[waiter.project_id, waiter.kind] >= _share(kind.runs):
        return False
    return kind.awaited or load.projects[waiter.project_id] < _share(limits.runs)


def _share(slots: int) -> int:
    """Return the number of these slots that one project may have."""
    return max(1, slots - 1)


def _drop_overtaken(connection: sa.Connection) -> None:
    """End launches that wait for instances which are all being deleted by now: nothing is left to build."""
    remaining_instance = (
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
        .where(job.c.kind == "launch", job.c.state == "queued", any_instance, ~remaining_instance)
        .values(state="failed", message="ended by a request to delete", finished_at=clock.now(connection))
    )


def _alike(connection: sa.Connection, first: Waiting, queue: t.Sequence[Waiting]) -> set[str]:
    """Return jobs of `queue` that can share a run with `first`. Variables can be long: only its kind's are read."""
    like = (first.kind, first.check_mode)
    ids = [waiter.id for waiter in queue if (waiter.kind, waiter.check_mode) == like]
    rows = connection.execute(sa.select(job.c.id, job.c.variables).where(job.c.id.in_(ids)))
    texts = {number: _shared(variables) for number, variables in rows}
    return {number for number, text in texts.items() if text == texts[first.id]}


def _shared(variables: JsonMapping) -> str:
    """The variables in which jobs of one run must not differ. All-or-nothing holds for each job of a run by itself."""
    return json.dumps({name: variables[name] for name in variables if name != "all_or_nothing"}, sort_keys=True)


def _load(connection: sa.Connection, kinds: Kinds) -> _Load:
    awaited = _awaited(kinds)
    at_work = connection.execute(sa.select(run.c.kind, run.c.project_id).where(run.c.state == "running")).all()
    query = (
        sa.select(job_instance.c.instance_uuid, job.c.run_id, job.c.kind, instance.c.host)
        .join(job, job.c.id == job_instance.c.job_id)
        .outerjoin(instance, instance.c.uuid == job_instance.c.instance_uuid)
        .where(job.c.state == "running")
    )
    rows = connection.execute(query).all()
    # a worker of a newer version may have one of a kind that is not known here: nobody knows that it only looks
    looking = {name for name, kind in kinds.items() if kind.read_only}
    on_hosts = {(row.run_id, row.host) for row in rows if row.host and row.kind not in awaited}
    return _Load(
        runs=collections.Counter(row.kind for row in at_work),
        projects=collections.Counter(row.project_id for row in at_work if row.kind not in awaited),
        kinds=collections.Counter((row.project_id, row.kind) for row in at_work),
        busy={row.instance_uuid for row in rows if row.kind not in looking},
        hosts=collections.Counter(host for _run, host in on_hosts),
    )


def _waiting(connection: sa.Connection, kinds: Kinds, full: bool, load: _Load) -> list[Waiting]:
    """Jobs that wait, in the order in which they go. However many one project has, no more than its share is read."""
    awaited = sa.case((job.c.kind.in_(_awaited(kinds)), 0), else_=1)
    turn = (
        sa.func.row_number()
        .over(partition_by=(job.c.project_id, awaited), order_by=(job.c.created_at, job.c.id))
        .label("turn")
    )
    columns = (job.c.id, job.c.kind, job.c.project_id, job.c.check_mode, job.c.created_at)
    queue = sa.select(*columns, awaited.label("awaited"), turn).where(*_queued(kinds, full)).subquery()
    rows = connection.execute(
        sa.select(queue)
        .where(queue.c.turn <= LOOKED_AT_EACH)
        .order_by(queue.c.awaited, queue.c.turn, queue.c.created_at, queue.c.id)
        .limit(LOOKED_AT)
    ).all()
    served = _served(connection, {row.project_id for row in rows})

    def place(row: sa.Row[t.Any]) -> tuple[int, int, float, float, str]:
        at_work = 0 if row.awaited == 0 else load.projects[row.project_id]
        return row.awaited, at_work + row.turn, served.get(row.project_id, 0.0), row.created_at, row.id

    ids = [row.id for row in rows]
    instances: dict[str, list[str]] = collections.defaultdict(list)
    hosts: dict[str, set[str]] = collections.defaultdict(set)
    for row in connection.execute(
        sa.select(job_instance.c.job_id, job_instance.c.instance_uuid, instance.c.host)
        .outerjoin(instance, instance.c.uuid == job_instance.c.instance_uuid)
        .where(job_instance.c.job_id.in_(ids))
        .order_by(job_instance.c.instance_uuid)
    ):
        instances[row.job_id].append(row.instance_uuid)
        if row.host is not None:
            hosts[row.job_id].add(row.host)
    behind = _behind(connection, kinds, ids)
    before = set(connection.execute(sa.select(run_job.c.job_id).where(run_job.c.job_id.in_(ids))).scalars())
    return [
        Waiting(
            id=row.id,
            kind=row.kind,
            project_id=row.project_id,
            check_mode=row.check_mode,
            instances=instances[row.id],
            hosts=hosts[row.id],
            behind=row.id in behind,
            alone=row.id in before,
        )
        for row in sorted(rows, key=place)
    ]


def _served(connection: sa.Connection, projects: t.Collection[str | None]) -> dict[str | None, float]:
    """Return the time at which each project's last job began. The operator's own jobs wait for no turn of theirs."""
    if len(projects) < 2:
        return {}
    query = (
        sa.select(job.c.project_id, sa.func.max(job.c.started_at).label("began"))
        .where(job.c.project_id.in_([project for project in projects if project is not None]), job.c.started_at > 0)
        .group_by(job.c.project_id)
    )
    return {row.project_id: row.began for row in connection.execute(query)}


def _behind(connection: sa.Connection, kinds: Kinds, ids: t.Sequence[str]) -> set[str]:
    """Return those of the jobs `ids` that come after another one that waits and changes one of their instances.

    Whosever that is: an administrator acts on instances of others, and turns go by projects.
    """
    earlier, of_earlier = job.alias("earlier"), job_instance.alias("of_earlier")
    query = (
        sa.select(job.c.id)
        .join(job_instance, job_instance.c.job_id == job.c.id)
        .join(of_earlier, of_earlier.c.instance_uuid == job_instance.c.instance_uuid)
        .join(earlier, earlier.c.id == of_earlier.c.job_id)
        .where(
            job.c.id.in_(ids),
            earlier.c.state == "queued",
            # one of a newer worker's kinds may change what it likes
            earlier.c.kind.not_in(sorted(name for name, kind in kinds.items() if kind.read_only)),
            sa.tuple_(earlier.c.created_at, earlier.c.id) < sa.tuple_(job.c.created_at, job.c.id),
        )
        .distinct()
    )
    return set(connection.execute(query).scalars())
