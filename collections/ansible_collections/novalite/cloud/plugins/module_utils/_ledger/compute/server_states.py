# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outcomes of builds and deletions, recorded by compare-and-swap.

Each transition names the state that it expects in its UPDATE. An outcome that comes twice changes nothing the second
time; one that comes too late (the server was deleted meanwhile, or another run took the build over) is refused for
that server alone, so that the others of the same call are recorded.
"""

from __future__ import annotations

import collections
import typing as t
from dataclasses import dataclass, field

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.rows import InstanceRow
from ..._rules.build_states import BUILDS, CREATE, UNSHELVE, Build, build_of
from ..._rules.records import with_diff
from ..catalog import image_snapshots
from ..db import clock
from ..db.tables import compute_host, instance, instance_security_group, vif
from ..instances import actions
from ..instances.actions import swap
from ..network.addresses import release_addresses, release_host_address
from ..network.preexisting_ports import interfaces_to_release, let_go
from ..placement import departures
from ..placement.claims import release_claims
from ..placement.server_groups import leave
from ..queries.compute.instance_rows import being_built, check_known, instance_rows
from ..queries.compute.views import instances_by
from ..volumes import replicas, server_volumes, volume_attachments
from . import migrations, server_snapshots, shelving

MAX_ATTEMPTS = 3  # Nova's: one build and two alternates
RUNNING = 1  # Nova's power states
NO_STATE = 0
_LONGEST_AFTER = 100  # characters of what follows a cause
STATES = ("active", "error", "retry", "deleted")
_BUILDING = sa.or_(*map(being_built, BUILDS))

End = tuple[str, t.Optional[str], t.Optional[str]]  # UUID, host, error


class Outcome(t.TypedDict, total=False):
    """Outcome of a server, or (`uuids`) of several; `state` is one of STATES."""

    state: str
    uuids: list[str]
    host: str | None
    reason: str | None
    power_state: int | None


@dataclass
class _Report:
    """Results of the transitions of one call."""

    changed: set[str] = field(default_factory=set)  # UUIDs
    retry: list[str] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)
    unshelving: frozenset[str] = frozenset()  # UUIDs of those whose build is no new server's

    def error(self, row: InstanceRow, message: str) -> None:
        self.errors.append({"name": row.name, "uuid": row.uuid, "message": message})


def record_outcomes(
    connection: sa.Connection, outcomes: t.Mapping[str, Outcome], max_attempts: int = MAX_ATTEMPTS
) -> JsonObject:
    """Record each server's own outcome, by UUID: a `state` of STATES, with `host`, `reason` and `power_state`. Returns
    what the module does. All that is wrong with one server is in `errors`, beside those whose outcome was an error.
    Raises NotFoundError for servers that there never were."""
    check_known(connection, outcomes)
    now = clock.seconds(connection)
    report = _Report()
    before = instances_by(connection, uuids=outcomes, deleted=True)
    of_these = instance.c.uuid.in_(sorted(outcomes))
    hosts = connection.execute(sa.select(instance.c.host).where(of_these)).scalars()
    _lock_hosts(connection, [*hosts, *(outcome.get("host") for outcome in outcomes.values())])
    # only now: nobody who holds to the order of these locks changes them from here on
    rows = {row.uuid: row for row in instance_rows(connection, of_these)}
    report.unshelving = frozenset(uuid for uuid, row in rows.items() if _build(row) is UNSHELVE)
    by_state: dict[str, list[tuple[InstanceRow, Outcome]]] = {state: [] for state in STATES}
    for uuid, outcome in outcomes.items():
        by_state[outcome["state"]].append((rows[uuid], outcome))
    _active(connection, by_state["active"], report, now)
    exhausted = _retry(connection, by_state["retry"], report, max_attempts, now)
    _failed(connection, by_state["error"] + exhausted, report, now)
    _deleted(connection, by_state["deleted"], report, now)

    after = instances_by(connection, uuids=outcomes, deleted=True)
    waiting = set(report.retry)
    result: JsonObject = {
        "changed": bool(report.changed),
        "instances": after,
        "retry": [server for server in after if server["uuid"] in waiting],
        "errors": report.errors,
        "failures": list(dict.fromkeys(error["message"] for error in report.errors)),
    }
    sides = (
        {server["name"]: _summary(server) for server in servers if server["uuid"] in report.changed}
        for servers in (before, after)
    )
    return with_diff(result, *sides)


def _active(connection: sa.Connection, pairs: list[tuple[InstanceRow, Outcome]], report: _Report, now: int) -> None:
    """The guest runs. Expected: it is being built, on the host that says so."""
    done: list[End] = []
    for row, outcome in pairs:
        host = outcome.get("host") or row.host
        power_state = RUNNING if outcome.get("power_state") is None else outcome["power_state"]
        if (row.vm_state, row.task_state, row.host) == ("active", None, host):
            continue  # said before
        if host is None:
            report.error(row, f"'{row.name}' cannot be active without a host: name it")
            continue
        moved = _swap(
            connection,
            row,
            (_BUILDING, instance.c.host == host),
            {
                "vm_state": "active",
                "task_state": None,
                "power_state": power_state,
                "launched_at": now,
                "fault": None,
                "updated_at": now,
            },
        )
        if moved:
            report.changed.add(row.uuid)
            done.append((row.uuid, host, None))
        else:
            report.error(row, _too_late(row, "active", host))
    server_volumes.running(connection, [uuid for uuid, _host, _error in done])
    shelving.forget(connection, [row for row, _outcome in pairs if row.uuid in report.unshelving & report.changed])
    _count_builds(connection, dict.fromkeys((host for _uuid, host, _error in done if host), 0))
    _log(connection, report, done, now)


def _retry(
    connection: sa.Connection, pairs: list[tuple[InstanceRow, Outcome]], report: _Report, max_attempts: int, now: int
) -> list[tuple[InstanceRow, Outcome]]:
    """A host failed to build it: the next one may. Returns, with their outcomes, those that had attempts enough."""
    exhausted: list[tuple[InstanceRow, Outcome]] = []
    done: list[End] = []
    for row, outcome in pairs:
        host = outcome.get("host") or row.host
        build = _build(row)
        if build is not None and row.host is None and row.task_state == build.waiting:
            report.retry.append(row.uuid)  # said before, or it never got as far as a host
            continue
        if row.vm_state == "error":
            report.error(row, _fault_of(row))  # said before, and it was the last attempt
            continue
        if build is not None and row.host != host and host in row.attempts:
            continue  # said before, and it is on its next host already
        if row.task_state == "deleting":
            report.error(row, _too_late(row, "to be tried again", host))
            continue
        attempts = [*row.attempts, host]
        message = actions.one_line(outcome.get("reason")) or f"host {host} could not build it"
        if len(attempts) >= max_attempts:
            after = f" (the last of {len(attempts)} attempts: {', '.join(map(str, attempts))})"
            if len(after) > _LONGEST_AFTER:
                after = f" (the last of {len(attempts)} attempts)"
            cause = actions.one_line(message, actions.MAX_MESSAGE - len(after))
            exhausted.append((row, {"state": "error", "host": host, "reason": f"{cause}{after}"}))
            continue
        moved = _swap(
            connection,
            row,
            (_BUILDING, instance.c.host == host),
            {"task_state": (build or CREATE).waiting, "host": None, "attempts": attempts, "updated_at": now},
        )
        if moved:
            report.changed.add(row.uuid)
            report.retry.append(row.uuid)
            done.append((row.uuid, host, message))
        else:
            report.error(row, _too_late(row, "to be tried again", host))
    release_claims(connection, [uuid for uuid, _host, _message in done])
    _count_builds(connection, collections.Counter(host for _uuid, host, _error in done if host))
    _leave_hosts(connection, {uuid: host for uuid, host, _message in done}, departures.RETRIED, now)
    _log(connection, report, done, now, ended=False)
    return exhausted


def _failed(connection: sa.Connection, pairs: list[tuple[InstanceRow, Outcome]], report: _Report, now: int) -> None:
    """Record why a server will not be built, or could not be deleted, and give back what a failed build held."""
    built: list[End] = []
    undeleted: list[End] = []
    blamed: list[str] = []
    for row, outcome in pairs:
        host = outcome.get("host") or row.host
        message = actions.one_line(outcome.get("reason")) or "no reason was given"
        fault = {"code": 500, "message": message, "created": now}
        deleting = row.task_state == "deleting"
        if (row.vm_state == "error" and not deleting) or (deleting and _fault_of(row) == message):
            report.error(row, _fault_of(row))  # said before; the first reason stays
            continue
        values: JsonObject = {"fault": fault, "updated_at": now}
        guard: sa.ColumnElement[bool]
        if deleting:
            # The guest may still run there: it keeps host, claim and address until a deletion succeeds.
            guard = instance.c.task_state == "deleting"
        else:
            guard = sa.and_(_BUILDING, sa.or_(instance.c.host.is_(None), instance.c.host == host))
            attempts = [*row.attempts, host] if host and host not in row.attempts else row.attempts
            values |= {"vm_state": "error", "task_state": None, "power_state": NO_STATE, "host": None}
            values["attempts"] = attempts
            if row.uuid in report.unshelving:  # its image is there, and what it had besides stays its own
                values |= {"vm_state": UNSHELVE.failed, "power_state": row.power_state, "fault": None}
        if not _swap(connection, row, (guard,), values):
            report.error(row, _too_late(row, "failed", host))
            continue
        report.changed.add(row.uuid)
        report.error(row, message)
        (undeleted if deleting else built).append((row.uuid, host, message))
        named = outcome.get("host")
        if named and not deleting:  # otherwise it failed on the controller, before its host was asked
            blamed.append(named)
    _give_back(connection, [uuid for uuid, _host, _message in built if uuid not in report.unshelving], now)
    release_claims(connection, report.unshelving & {uuid for uuid, _host, _message in built})
    _count_builds(connection, collections.Counter(blamed))
    _leave_hosts(connection, {uuid: host for uuid, host, _message in built}, departures.RETRIED, now)
    _log(connection, report, built, now)
    actions.finish(connection, "delete", undeleted, ended=False, now=now)


def _deleted(connection: sa.Connection, pairs: list[tuple[InstanceRow, Outcome]], report: _Report, now: int) -> None:
    """Nothing of it is left on its host. Expected: it was being deleted."""
    gone = []
    for row, _outcome in pairs:
        if row.deleted:
            continue
        moved = _swap(
            connection,
            row,
            (instance.c.task_state == "deleting",),
            {
                "vm_state": "deleted",
                "task_state": None,
                "power_state": NO_STATE,
                "deleted": instance.c.id,
                "terminated_at": now,
                "updated_at": now,
            },
        )
        if moved:
            report.changed.add(row.uuid)
            gone.append(row)
        else:
            message = f"'{row.name}' is {row.vm_state} and not being deleted: run server with state=absent first"
            report.error(row, message)
    networks = _networks_of(connection, [row.uuid for row in gone])
    migrations.end_with(connection, [row.uuid for row in gone])
    _forget(connection, gone, now)
    _leave_hosts(connection, {row.uuid: row.host for row in gone}, departures.DELETED, now, networks)
    actions.finish(connection, "delete", [(row.uuid, row.host, None) for row in gone], now=now)


def spawning(connection: sa.Connection, uuids: t.Iterable[str]) -> None:
    """Their hosts have begun to build these; what is not waiting for that (any more) is left alone."""
    waiting = sa.and_(
        instance.c.uuid.in_(sorted(uuids)),
        instance.c.deleted == 0,
        instance.c.vm_state == "building",
        instance.c.task_state == "networking",
    )
    _lock_hosts(connection, connection.execute(sa.select(instance.c.host).where(waiting)).scalars())
    connection.execute(
        sa.update(instance).where(waiting).values(task_state="spawning", updated_at=clock.seconds(connection))
    )


def record_deleted(connection: sa.Connection, rows: t.Sequence[InstanceRow], now: int) -> None:
    """Delete the records of servers that never got as far as a host, so that their names are free again."""
    for row in rows:
        values = {"vm_state": "deleted", "deleted": row.id, "terminated_at": now, "updated_at": now}
        if not _swap(connection, row, (instance.c.vm_state == "error", instance.c.host.is_(None)), values):
            raise ConflictError(f"'{row.name}' was changed by another run just now: run again")
    _forget(connection, rows, now)


def _forget(connection: sa.Connection, rows: t.Sequence[InstanceRow], now: int) -> None:
    """Take from deleted servers all that they held."""
    uuids = [row.uuid for row in rows]
    _give_back(connection, uuids, now)
    volume_attachments.release(connection, uuids)
    image_snapshots.forget(connection, uuids)
    server_snapshots.forget(connection, uuids)
    replicas.remove(connection, uuids)
    shelving.forget(connection, rows)
    leave(connection, uuids)
    let_go(connection, vif.c.instance_uuid.in_(uuids))
    connection.execute(sa.delete(vif).where(vif.c.instance_uuid.in_(uuids)))
    connection.execute(
        sa.delete(instance_security_group).where(instance_security_group.c.instance_id.in_([row.id for row in rows]))
    )


def _build(row: InstanceRow) -> Build | None:
    return build_of(row.vm_state, row.task_state)


def _log(connection: sa.Connection, report: _Report, ends: t.Sequence[End], now: int, ended: bool = True) -> None:
    """Record how builds went on the action that each belongs to."""
    for build in BUILDS:
        theirs = [end for end in ends if (end[0] in report.unshelving) == (build is UNSHELVE)]
        actions.finish(connection, build.action, theirs, ended=ended, now=now)


def _networks_of(connection: sa.Connection, uuids: t.Collection[str]) -> list[tuple[str, int]]:
    query = sa.select(vif.c.instance_uuid, vif.c.network_id).where(vif.c.instance_uuid.in_(list(uuids)))
    return [(row.instance_uuid, row.network_id) for row in connection.execute(query)]


def _leave_hosts(
    connection: sa.Connection,
    hosts: t.Mapping[str, str | None],
    reason: str,
    now: int,
    networks: list[tuple[str, int]] | None = None,
) -> None:
    """The servers (UUIDs) are on these `hosts` no more: a host gives back its own address where it was the last."""
    departures.leave_all(connection, hosts, reason, now)
    server_networks = _networks_of(connection, hosts) if networks is None else networks
    for network_id, host in sorted({(network_id, hosts[uuid] or "") for uuid, network_id in server_networks}):
        if host:
            release_host_address(connection, network_id, host, now)


def _give_back(connection: sa.Connection, uuids: list[str], now: int) -> None:
    """Release the claims and the addresses of these instances."""
    release_claims(connection, uuids)
    release_addresses(connection, interfaces_to_release(connection, uuids), now)


def _lock_hosts(connection: sa.Connection, names: t.Iterable[str | None]) -> None:
    """Take the rows of these hosts in the order of their ids, as every writer does, and at once: two calls that each
    wrote some and waited for others would stop each other (PostgreSQL; SQLite's transactions exclude each other)."""
    c = compute_host.c
    host_names = sorted({name for name in names if name})
    connection.execute(
        sa.select(c.id).where(c.name.in_(host_names)).order_by(c.id).with_for_update(key_share=True)
    ).all()


def _count_builds(connection: sa.Connection, failed: t.Mapping[str, int]) -> None:
    """Add to the hosts' counts of failed builds; 0 says that one succeeded, and the count begins anew (Nova's rule)."""
    c = compute_host.c
    for host, count in sorted(failed.items()):
        connection.execute(
            sa.update(compute_host)
            .where(c.name == host, sa.true() if count else c.failed_builds != 0)
            .values(failed_builds=c.failed_builds + count if count else 0)
        )


def _swap(
    connection: sa.Connection, row: InstanceRow, expected: t.Sequence[sa.ColumnElement[bool]], values: JsonMapping
) -> bool:
    """Write `values` if the row is not deleted, its task is still the one that was read, and `expected` holds."""
    return swap(connection, row.uuid, values, instance.c.task_state.is_not_distinct_from(row.task_state), *expected)


def _fault_of(row: InstanceRow) -> str:
    return row.fault["message"] if row.fault else ""


def _too_late(row: InstanceRow, new_state: str, host: str | None) -> str:
    if row.deleted:
        state = "is deleted"
    elif row.task_state == "deleting":
        state = "is being deleted"
    elif row.host != host:
        state = f"is {row.vm_state} on host {row.host}, not on {host}"
    else:
        state = f"is {row.vm_state}"
    return f"'{row.name}' cannot be recorded as {new_state}: it {state}"


def _summary(server: Instance) -> JsonObject:
    return {
        **{name: server[name] for name in ("vm_state", "task_state", "power_state", "host", "attempts")},
        "fault": None if server["fault"] is None else server["fault"]["message"],
    }
