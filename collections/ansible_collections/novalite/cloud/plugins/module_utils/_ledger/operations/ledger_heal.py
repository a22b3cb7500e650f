# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `ledger_heal`: put right what runs that were killed, or hands in the database, left behind.

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
from ..._rules.build_states import BUILDS, CREATE, build_of
from ..._rules.records import with_diff
from ..._scheduling.rows import AMOUNTS
from ..compute import server_actions
from ..compute.create import BUILD_TIMEOUT
from ..db import clock
from ..db.sqlite_engine import check_whole
from ..db.tables import allocation, compute_host, fixed_ip, instance, network, vif
from ..db.tables_addresses import HOLDER
from ..db.tables_jobs import worker
from ..db.tables_migrations import OPEN, migration
from ..network.addresses import release_addresses
from ..network.preexisting_ports import KEPT, let_go
from ..queries.instance_rows import being_built, instance_rows, whereabouts
from ..volumes import volume_heal
from .server_state import server_state

IN_LINE = 5  # how many corrections the message names


@dataclasses.dataclass(frozen=True)
class Correction:
    """One thing that was wrong. `kind` is the table, `name` a person's word for the row."""

    kind: str
    name: str
    reason: str
    before: JsonMapping
    after: JsonMapping | None  # None: the row is gone


def prepare_ledger_heal(ledger: sa.Engine, params: JsonMapping) -> JsonMapping:
    """Look whether the ledger's file is whole, before ledger_heal() keeps others from writing."""
    check_whole(ledger)
    return params


def ledger_heal(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Correct the ledger; `build_timeout`: seconds after which a silent build was abandoned. Waits for the runs that
    are claiming hosts, and holds them off until it is done. A run that is alive loses nothing but builds that it was
    silent about for that long, and is told so when it reports them."""
    now = clock.seconds(connection)
    timeout = BUILD_TIMEOUT if params.get("build_timeout") is None else params["build_timeout"]
    since, warnings = _dead_since(connection, timeout)
    # In the order in which claims take them. From here on no claim is made or given back, so that sums can be compared.
    hosts = sa.select(compute_host.c.id).order_by(compute_host.c.id)
    connection.execute(hosts.with_for_update(key_share=True)).all()
    corrections = [
        *_abandoned_builds(connection, since, now),
        *_abandoned_actions(connection, since, now),
        *(Correction(*volume) for volume in volume_heal.end_abandoned(connection, since, now)),
        *_ownerless_claims(connection),
        *wrong_sums(connection),
        *_ownerless_addresses(connection, now),
        *_ownerless_interfaces(connection),
    ]
    # only their hosts can end these, so nothing is written here
    deletions = _silent(connection, since, instance.c.task_state == "deleting")
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


def _dead_since(connection: sa.Connection, timeout: int) -> tuple[float, list[str]]:
    """The time since when whoever gave no sign of life is dead, and why nobody is taken for dead."""
    signs = (sa.func.max(instance.c.updated_at).filter(instance.c.deleted == 0), sa.func.max(worker.c.seen_at))
    columns = [sa.select(sign).scalar_subquery() for sign in (*signs, sa.func.max(compute_host.c.last_seen_at))]
    now, newest = clock.now(connection), max(sign or 0 for sign in connection.execute(sa.select(*columns)).one())
    if timeout == 0:  # no run is alive: somebody knows that, whatever clocks say
        return max(now, newest), []
    remedy = "nothing is judged by its age. If no run is alive, say build_timeout=0"
    if clock.is_ahead(connection, newest):
        return clock.NEVER, [
            f"the newest sign of life lies {newest - now:.0f} s in the future, so a clock is wrong, and {remedy}"
        ]
    since = clock.before(connection, timeout)
    return since, [f"this machine's clock was set less than {timeout} s ago, so {remedy}"] if since < 0 else []


def _silent(connection: sa.Connection, since: float, *conditions: sa.ColumnElement[bool]) -> list[InstanceRow]:
    """Instances of which nobody has said anything `since` then. The queue looks after its own: a job that waits or
    runs is never forgotten. Whoever holds one of the rows is at work on it."""
    c = instance.c
    query = sa.select(instance).where(c.deleted == 0, c.updated_at <= since, *conditions).order_by(c.id)
    rows = t.cast("list[InstanceRow]", connection.execute(query.with_for_update(skip_locked=True)).all())
    waiting = server_actions.with_open_job(connection, [row.uuid for row in rows])
    return [row for row in rows if row.uuid not in waiting]


def _abandoned_builds(connection: sa.Connection, since: float, now: int) -> list[Correction]:
    """Make instances whose build nobody goes on with errors. That gives back what they hold. One that was being
    unshelved is shelved again, and keeps its addresses."""
    stale = _silent(connection, since, sa.or_(*map(being_built, BUILDS)))
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


def _abandoned_actions(connection: sa.Connection, since: float, now: int) -> list[Correction]:
    """End the actions that nobody goes on with, so that others may begin. What the guest does is not known here."""
    of_actions = [state for name in server_actions.NAMES for state in server_actions.task_states(name)]
    corrections = []
    for row in _silent(connection, since, instance.c.task_state.in_(of_actions)):
        action = server_actions.action_in(row.task_state) or ""
        reason = f"its {action} was abandoned: no sign of life for {now - row.updated_at} s"
        server_actions.interrupt(connection, action, [row.uuid], reason)
        before, after = {"task_state": row.task_state}, {"task_state": None}
        corrections.append(Correction("instance", f"{row.name} ({row.uuid})", reason, before, after))
    return corrections


def _ownerless_claims(connection: sa.Connection) -> list[Correction]:
    """Delete claims of instances that are gone, failed, or on another host. The sums are put right after that."""
    columns = (
        allocation.c.instance_uuid,
        allocation.c.compute_host_id,
        *(allocation.c[resource] for resource in AMOUNTS),
    )
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
    # no look before: a claim that another run makes right now is not in what this one statement sees
    gone = connection.execute(sa.delete(allocation).where(~lives_there, ~moves_there).returning(*columns)).all()
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


def wrong_sums(connection: sa.Connection) -> list[Correction]:
    """Set what hosts say is used to the sum of their claims."""
    claimed = (
        sa.select(
            allocation.c.compute_host_id, *(sa.func.sum(allocation.c[resource]).label(resource) for resource in AMOUNTS)
        )
        .group_by(allocation.c.compute_host_id)
        .subquery()
    )
    used = {resource: compute_host.c[f"{resource}_used"] for resource in AMOUNTS}
    sums = {resource: sa.func.coalesce(claimed.c[resource], 0) for resource in AMOUNTS}
    wrong = connection.execute(
        sa.select(
            compute_host.c.id,
            compute_host.c.name,
            *used.values(),
            *(sums[resource].label(f"{resource}_sum") for resource in AMOUNTS),
        )
        .select_from(compute_host.outerjoin(claimed, claimed.c.compute_host_id == compute_host.c.id))
        .where(sa.or_(*(used[resource] != sums[resource] for resource in AMOUNTS)))
        .order_by(compute_host.c.id)
    ).all()
    if wrong:
        connection.execute(
            sa.update(compute_host)
            .where(compute_host.c.id == sa.bindparam("host_id"))
            .values(
                **{f"{resource}_used": sa.bindparam(f"{resource}_sum") for resource in AMOUNTS},
                generation=compute_host.c.generation + 1,  # a choice made on the old sums must be made again
            ),
            [
                {"host_id": row.id} | {f"{resource}_sum": int(getattr(row, f"{resource}_sum")) for resource in AMOUNTS}
                for row in wrong
            ],
        )
    return [
        Correction(
            "compute_host",
            row.name,
            "what it says is used is not the sum of its claims",
            {f"{resource}_used": getattr(row, f"{resource}_used") for resource in AMOUNTS},
            {f"{resource}_used": int(getattr(row, f"{resource}_sum")) for resource in AMOUNTS},
        )
        for row in wrong
    ]


def _ownerless_addresses(connection: sa.Connection, now: int) -> list[Correction]:
    """Give back addresses of interfaces that are gone, or whose instance is. A host's own address is no matter here."""
    there = (
        sa.select(sa.literal(1))
        .select_from(vif.outerjoin(instance, instance.c.uuid == vif.c.instance_uuid))
        # a port has its address before a server has the port, and afterwards
        .where(vif.c.id == HOLDER, sa.or_(instance.c.deleted == 0, vif.c.id.in_(KEPT)))
        .exists()
    )
    gone = connection.execute(
        sa.select(fixed_ip.c.ip, fixed_ip.c.owner, network.c.name)
        .join(network, network.c.id == fixed_ip.c.network_id)
        .where(fixed_ip.c.owner.like("vif:%"), ~there)
        .order_by(fixed_ip.c.network_id, fixed_ip.c.ip)
    ).all()
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


def _ownerless_interfaces(connection: sa.Connection) -> list[Correction]:
    """Delete the interfaces of deleted instances: a network cannot go as long as it has one."""
    deleted = sa.select(instance.c.uuid).where(instance.c.deleted != 0)
    let_go(connection, vif.c.instance_uuid.in_(deleted))
    gone = connection.execute(
        sa.delete(vif).where(vif.c.instance_uuid.in_(deleted)).returning(vif.c.id, vif.c.mac, vif.c.instance_uuid)
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
