# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `ledger_heal`: put right what runs that were killed, or hands in the database, left behind.

A transaction that was cut off leaves nothing. What does stay are builds and actions between two transactions, whose
instances wait for a run that is gone. Everything else here (claims and addresses without an owner, sums that are not
the sums) should never be found, and is looked for all the same: Nova grew `heal_allocations` and `placement audit` only
later.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._addressing import pools
from ..._json import JsonMapping, JsonObject
from ..._model.rows import InstanceRow
from ..._rules.build_states import BUILD_TIMEOUT, BUILDS, CREATE, build_of
from ..._rules.records import with_diff
from ..._scheduling.rows import AMOUNTS
from ..compute import server_actions
from ..db import clock
from ..db.engine import reading
from ..db.sqlite_engine import check_whole
from ..db.tables import allocation, compute_host, fixed_ip, instance, network, vif
from ..db.tables_addresses import HOLDER, OF_VIF
from ..db.tables_images import replica
from ..db.tables_jobs import worker
from ..db.tables_migrations import OPEN, migration
from ..network.addresses import release_addresses
from ..network.preexisting_ports import KEPT, let_go
from ..queries.compute.instance_rows import being_built, instance_rows, whereabouts
from ..queries.jobs.open_jobs import with_open_job
from ..volumes import volume_heal
from .server_state import server_state

ARGUMENT_SPEC = {
    # After how many seconds without a sign of life a build, or another action, was abandoned. A run gives one every
    # minute, as long as a host works for it; what one built that is taken for dead is refused when it is reported.
    "build_timeout": {"type": "int", "default": BUILD_TIMEOUT}
}

IN_LINE = 5  # how many corrections the message names
_BATCH = 5000  # keys in one query; SQLite takes 32766 variables

Key = t.TypeVar("Key", str, int)


@dataclasses.dataclass(frozen=True)
class Correction:
    """Correction of one thing that was wrong. `kind` is the table, `name` a person's word for the row."""

    kind: str
    name: str
    reason: str
    before: JsonMapping
    after: JsonMapping | None  # None: the row is gone


@dataclasses.dataclass(frozen=True)
class Suspects:
    """Keys of what looked wrong, or unfinished, when everything was read: what is judged is read again, by these."""

    newest: float  # sign of life
    busy: list[str]  # instances
    claims: list[tuple[str, int]]
    sums: list[int]  # hosts
    addresses: list[tuple[int, int]]
    interfaces: list[str]


def prepare_ledger_heal(engine: sa.Engine, params: JsonMapping) -> JsonObject:
    """Look whether the ledger's file is whole, and read all of it, before the transaction: that takes seconds in a
    large cloud, in which nobody else could write on SQLite. What goes wrong meanwhile is for the next run."""
    check_whole(engine)
    with reading(engine) as connection:
        return {**params, "suspects": dataclasses.asdict(_survey(connection))}


def ledger_heal(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Correct the ledger; `build_timeout`: seconds after which a silent build was abandoned. Waits for the runs that
    are claiming hosts, and holds them off until it is done. A run that is alive loses nothing but builds that it was
    silent about for that long, and is told so when it reports them."""
    now = clock.seconds(connection)
    timeout = BUILD_TIMEOUT if params.get("build_timeout") is None else params["build_timeout"]
    suspects = Suspects(**params["suspects"]) if params.get("suspects") else _survey(connection)
    since, warnings = _dead_since(connection, timeout, suspects.newest)
    # In the order in which claims take them. From here on no claim is made or given back, so that sums can be compared.
    hosts = sa.select(compute_host.c.id).order_by(compute_host.c.id)
    connection.execute(hosts.with_for_update(key_share=True)).all()
    corrections = [
        *_abandoned_builds(connection, since, now, suspects.busy),
        *_abandoned_actions(connection, since, now, suspects.busy),
        *(Correction(*volume) for volume in volume_heal.end_abandoned(connection, since, now)),
        *_ownerless_claims(connection, suspects.claims),
        *wrong_sums(connection, {*suspects.sums, *(host for _uuid, host in suspects.claims)}),
        *_ownerless_addresses(connection, now, suspects.addresses),
        *_ownerless_interfaces(connection, suspects.interfaces),
    ]
    # only their hosts can end these, so nothing is written here
    deletions = _silent(connection, since, suspects.busy, instance.c.task_state == "deleting")
    result: JsonObject = {
        "changed": bool(corrections),
        "corrections": [dataclasses.asdict(finding) for finding in corrections],
        "deletions": [
            {"uuid": row.uuid, "name": row.name, "host": row.host, "silent": now - row.updated_at} for row in deletions
        ],
        "msg": _message(corrections),
        "warnings": warnings,
    }
    sides = {f"{finding.kind} {finding.name}": (finding.before, finding.after) for finding in corrections}
    before = {name: dict(side) for name, (side, _after) in sides.items()}
    return with_diff(result, before, {name: dict(side) for name, (_before, side) in sides.items() if side is not None})


def _survey(connection: sa.Connection) -> Suspects:
    i = instance.c
    signs = (sa.func.max(i.updated_at).filter(i.deleted == 0), sa.func.max(worker.c.seen_at))
    columns = [sa.select(sign).scalar_subquery() for sign in (*signs, sa.func.max(compute_host.c.last_seen_at))]
    busy = sa.select(i.uuid).where(i.deleted == 0, sa.or_(i.task_state.is_not(None), *map(being_built, BUILDS)))
    addresses = sa.select(fixed_ip.c.network_id, fixed_ip.c.ip).where(_OF_NOBODY)
    return Suspects(
        newest=max(sign or 0 for sign in connection.execute(sa.select(*columns)).one()),
        busy=list(connection.execute(busy).scalars()),
        claims=[
            (row.instance_uuid, row.compute_host_id)
            for row in connection.execute(
                sa.select(allocation.c.instance_uuid, allocation.c.compute_host_id).where(_is_ownerless())
            )
        ],
        sums=[row.id for row in connection.execute(_wrong_sums())],
        addresses=[(row.network_id, row.ip) for row in connection.execute(addresses)],
        interfaces=list(connection.execute(sa.select(vif.c.id).where(_OF_DELETED)).scalars()),
    )


def _batches(keys: t.Iterable[Key]) -> t.Iterator[list[Key]]:
    sorted_keys = sorted(keys)
    for begin in range(0, len(sorted_keys), _BATCH):
        yield sorted_keys[begin : begin + _BATCH]


def _dead_since(connection: sa.Connection, timeout: int, newest: float) -> tuple[float, list[str]]:
    """The time since when whoever gave no sign of life is dead, and why nobody is taken for dead."""
    now = clock.now(connection)
    if timeout == 0:  # no run is alive: somebody knows that, whatever clocks say
        return max(now, newest), []
    remedy = "nothing is judged by its age. If no run is alive, say build_timeout=0"
    if clock.is_ahead(connection, newest):
        return clock.NEVER, [
            f"the newest sign of life lies {newest - now:.0f} s in the future, so a clock is wrong, and {remedy}"
        ]
    since = clock.before(connection, timeout)
    return since, [f"this machine's clock was set less than {timeout} s ago, so {remedy}"] if since < 0 else []


def _silent(
    connection: sa.Connection, since: float, busy: t.Sequence[str], *conditions: sa.ColumnElement[bool]
) -> list[InstanceRow]:
    """List those of the `busy` instances of which nobody has said anything since the time `since`. The queue looks
    after its own: a job that waits or runs is never forgotten. Whoever holds one of the rows is at work on it."""
    c = instance.c
    query = sa.select(instance).where(c.deleted == 0, c.updated_at <= since, *conditions).order_by(c.id)
    rows: list[InstanceRow] = []
    for uuids in _batches(busy):
        locked = query.where(c.uuid.in_(uuids)).with_for_update(skip_locked=True)
        rows += t.cast("list[InstanceRow]", connection.execute(locked).all())
    waiting = with_open_job(connection, [row.uuid for row in rows])
    return [row for row in rows if row.uuid not in waiting]


def _abandoned_builds(connection: sa.Connection, since: float, now: int, busy: t.Sequence[str]) -> list[Correction]:
    """Make instances whose build nobody goes on with errors. That gives back what they hold. One that was being
    unshelved is shelved again, and keeps its addresses."""
    stale = _silent(connection, since, busy, sa.or_(*map(being_built, BUILDS)))
    reasons = {
        row.uuid: f"its build was abandoned: no sign of life for {now - row.updated_at} s"
        + (f" ({row.task_state}{f' on {row.host}' if row.host else ''})" if row.task_state else "")
        for row in stale
    }
    if not stale:
        return []
    outcomes = [{"uuids": [uuid], "state": "error", "reason": reason} for uuid, reason in reasons.items()]
    after = server_state(connection, {"outcomes": outcomes})["instances"]
    changed = {server["uuid"] for server in after if build_of(server["vm_state"], server["task_state"]) is None}
    return [
        Correction(
            "instance",
            f"{row.name} ({row.uuid})",
            reasons[row.uuid],
            {"vm_state": row.vm_state, "task_state": row.task_state, "host": row.host},
            {"vm_state": (build_of(row.vm_state, row.task_state) or CREATE).failed, "task_state": None, "host": None},
        )
        for row in stale
        if row.uuid in changed
    ]


def _abandoned_actions(connection: sa.Connection, since: float, now: int, busy: t.Sequence[str]) -> list[Correction]:
    """End the actions that nobody goes on with, so that others may begin. What the guest does is not known here."""
    of_actions = [state for name in server_actions.NAMES for state in server_actions.task_states(name)]
    corrections = []
    for row in _silent(connection, since, busy, instance.c.task_state.in_(of_actions)):
        action = server_actions.action_in(row.task_state) or ""
        reason = f"its {action} was abandoned: no sign of life for {now - row.updated_at} s"
        server_actions.interrupt(connection, action, [row.uuid], reason)
        before, after = {"task_state": row.task_state}, {"task_state": None}
        corrections.append(Correction("instance", f"{row.name} ({row.uuid})", reason, before, after))
    return corrections


def _is_ownerless() -> sa.ColumnElement[bool]:
    """The condition of claims of instances that are gone, failed, or on another host."""
    lives_there = (
        sa.select(sa.literal(1))
        .select_from(instance.join(compute_host, compute_host.c.name == instance.c.host))
        .where(
            instance.c.uuid == allocation.c.instance_uuid,
            compute_host.c.id == allocation.c.compute_host_id,
            instance.c.deleted == 0,
            # one that failed on its way to a host is on none; one that broke on its host keeps what it has there
            instance.c.vm_state != "deleted",
        )
        .exists()
    )
    moves_there = (  # an instance that moves has a claim on both hosts
        sa.select(sa.literal(1))
        .select_from(
            migration.join(instance, instance.c.uuid == migration.c.instance_uuid).join(
                compute_host, compute_host.c.name.in_([migration.c.source_host, migration.c.dest_host])
            )
        )
        .where(
            instance.c.uuid == allocation.c.instance_uuid,
            instance.c.deleted == 0,
            migration.c.status.in_(OPEN),
            compute_host.c.id == allocation.c.compute_host_id,
        )
        .exists()
    )
    return sa.and_(~lives_there, ~moves_there)


def _ownerless_claims(connection: sa.Connection, suspects: t.Sequence[tuple[str, int]]) -> list[Correction]:
    """Delete those claims that are ownerless. The sums are put right after that."""
    columns = (
        allocation.c.instance_uuid,
        allocation.c.compute_host_id,
        *(allocation.c[resource] for resource in AMOUNTS),
    )
    gone: list[t.Any] = []
    # the statement itself judges: a claim that another run makes right now is not in what it sees
    for of_these in _batches({uuid for uuid, _host in suspects}):
        mine = sa.and_(allocation.c.instance_uuid.in_(of_these), _is_ownerless())
        gone += connection.execute(sa.delete(allocation).where(mine).returning(*columns)).all()
    if not gone:
        return []
    uuids = sorted({row.instance_uuid for row in gone})
    owners = {row.uuid: row for row in instance_rows(connection, instance.c.uuid.in_(uuids))}
    c = compute_host.c
    hosts = {row.id: row.name for row in connection.execute(sa.select(c.id, c.name))}
    return [
        Correction(
            "allocation",
            f"of {row.instance_uuid} on {hosts[row.compute_host_id]}",
            whereabouts(owner, f"'{owner.name}'") if owner else "there is no such instance",
            {resource: getattr(row, resource) for resource in AMOUNTS},
            None,
        )
        for row in sorted(gone, key=lambda row: (row.compute_host_id, row.instance_uuid))
        for owner in (owners.get(row.instance_uuid),)
    ]


# What a host says of its claims, kept by the transactions that change them
_SUMS = (*(f"{resource}_used" for resource in AMOUNTS), "num_instances")


def _wrong_sums(hosts: t.Collection[int] | None = None) -> sa.Select[t.Any]:
    """The query of the hosts, of all or of these, whose sums are not those of their claims."""
    c = allocation.c
    totals = dict(zip(_SUMS, (*(sa.func.sum(c[resource]) for resource in AMOUNTS), sa.func.count())))
    claimed = (
        sa.select(c.compute_host_id, *(total.label(name) for name, total in totals.items()))
        .where(sa.true() if hosts is None else c.compute_host_id.in_(sorted(hosts)))
        .group_by(c.compute_host_id)
        .subquery()
    )
    sums: dict[str, sa.ColumnElement[t.Any]] = {name: sa.func.coalesce(claimed.c[name], 0) for name in _SUMS}
    for host, disk_gb in ((replica.c.host, replica.c.disk_gb), (replica.c.next_host, replica.c.next_gb)):
        copies = sa.select(sa.func.sum(disk_gb)).where(host == compute_host.c.name).scalar_subquery()
        sums["disk_gb_used"] += sa.func.coalesce(copies, 0)
    return (
        sa.select(
            *(compute_host.c[name] for name in ("id", "name", *_SUMS)),
            *(sums[name].label(f"{name}_sum") for name in _SUMS),
        )
        .select_from(compute_host.outerjoin(claimed, claimed.c.compute_host_id == compute_host.c.id))
        .where(sa.or_(*(compute_host.c[name] != sums[name] for name in _SUMS)))
        .where(sa.true() if hosts is None else compute_host.c.id.in_(sorted(hosts)))
        .order_by(compute_host.c.id)
    )


def wrong_sums(connection: sa.Connection, hosts: t.Collection[int] | None = None) -> list[Correction]:
    """Set what hosts say is used, of all or of these, to the sum of their claims."""
    query = _wrong_sums(hosts)
    wrong = connection.execute(query).all() if hosts is None or hosts else []
    if wrong:
        connection.execute(
            sa.update(compute_host)
            .where(compute_host.c.id == sa.bindparam("host_id"))
            .values(
                **{name: sa.bindparam(f"{name}_sum") for name in _SUMS},
                generation=compute_host.c.generation + 1,  # a choice made on the old sums must be made again
            ),
            [
                {"host_id": row.id} | {f"{name}_sum": int(getattr(row, f"{name}_sum")) for name in _SUMS}
                for row in wrong
            ],
        )
    return [
        Correction(
            "compute_host",
            row.name,
            "what it says is used is not the sum of its claims",
            {name: getattr(row, name) for name in _SUMS},
            {name: int(getattr(row, f"{name}_sum")) for name in _SUMS},
        )
        for row in wrong
    ]


_THERE = (
    sa.select(sa.literal(1))
    .select_from(vif.outerjoin(instance, instance.c.uuid == vif.c.instance_uuid))
    # a port has its address before a server has the port, and afterwards
    .where(vif.c.id == HOLDER, sa.or_(instance.c.deleted == 0, vif.c.id.in_(KEPT)))
    .exists()
)
_OF_NOBODY = sa.and_(fixed_ip.c.owner.startswith(OF_VIF), ~_THERE)
_OF_DELETED = vif.c.instance_uuid.in_(sa.select(instance.c.uuid).where(instance.c.deleted != 0))


def _ownerless_addresses(
    connection: sa.Connection, now: int, suspects: t.Sequence[tuple[int, int]]
) -> list[Correction]:
    """Give back addresses of interfaces that are gone, or whose instance is. A host's own address is no matter here."""
    query = sa.select(fixed_ip.c.ip, fixed_ip.c.owner, network.c.name).join(network)
    gone: list[t.Any] = []
    for number in sorted({network_id for network_id, _ip in suspects}):
        for ips in _batches(ip for network_id, ip in suspects if network_id == number):
            of_these = sa.and_(fixed_ip.c.network_id == number, fixed_ip.c.ip.in_(ips))
            gone += connection.execute(query.where(of_these, _OF_NOBODY).order_by(fixed_ip.c.ip)).all()
    # an interface that is gone does not come back: its address can be given back in a second statement
    release_addresses(connection, [row.owner.partition(":")[2] for row in gone], now)
    return [
        Correction(
            "fixed_ip",
            f"{pools.to_text(row.ip)} in {row.name}",
            "its interface is gone, or the instance that had it",
            {"owner": row.owner},
            {"owner": None},
        )
        for row in gone
    ]


def _ownerless_interfaces(connection: sa.Connection, suspects: t.Sequence[str]) -> list[Correction]:
    """Delete the interfaces of deleted instances: a network cannot go as long as it has one."""
    gone: list[t.Any] = []
    for of_these in _batches(suspects):
        theirs = sa.and_(vif.c.id.in_(of_these), _OF_DELETED)
        let_go(connection, theirs)
        gone += connection.execute(
            sa.delete(vif).where(theirs).returning(vif.c.id, vif.c.mac, vif.c.instance_uuid)
        ).all()
    return [
        Correction("vif", row.id, f"instance {row.instance_uuid} is deleted", {"mac": row.mac}, None)
        for row in sorted(gone, key=lambda row: row.id)
    ]


def _message(corrections: t.Sequence[Correction]) -> str:
    if not corrections:
        return "nothing to repair"
    named = "; ".join(f"{finding.kind} {finding.name}: {finding.reason}" for finding in corrections[:IN_LINE])
    more = f"; and {len(corrections) - IN_LINE} more" if len(corrections) > IN_LINE else ""
    return f"{len(corrections)} correction{'s' if len(corrections) > 1 else ''}: {named}{more}"
