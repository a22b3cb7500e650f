# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Copies of servers' disks on a second host, as the ledger has them: how often, where, how old, and what is to go."""

from __future__ import annotations

import typing as t
import uuid as uuids

import sqlalchemy as sa

from ..._domain.guest import disk_backend
from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.hardware import hardware_of
from ..._model.instance import Instance
from ..._model.rows import InstanceRow
from ..._rules import replicas as rules
from ..db import clock
from ..db.tables import compute_host, instance
from ..db.tables_images import replica as table
from ..placement import replica_claims, replica_rows
from ..queries.compute.views import instances_by
from ..queries.volumes import volume_views
from ..queries.volumes.replica_records import Replica, replicas_by
from . import ha_disks

REPLICATE = "replicate"  # the action on a server that takes a copy
_AT_REST = ("active", "stopped", "paused", "suspended")  # states in which a copy is taken


def replica_of(connection: sa.Connection, uuid: str) -> Replica | None:
    """The copy of this server's disks; None where none was asked for."""
    return next(iter(replicas_by(connection, servers=[uuid])), None)


def ensure(connection: sa.Connection, server: Instance, every: int, host: str | None = None) -> bool:
    """Have the server's disks copied `every` so many seconds, to `host` or one that the scheduler chooses, where room
    is claimed now. The copy on another host stays until that one has one. Returns whether that changes anything. Raises
    NovaliteError for what cannot be copied, ConflictError where there is no room."""
    uuid, now = server["uuid"], clock.seconds(connection)
    check(connection, server)
    if host is not None and host == server["host"]:
        raise NovaliteError(f"'{server['name']}' is on {host} itself: name another host for the copy of its disks")
    before = replica_of(connection, uuid)
    stays = before is not None and host in (None, before.target)
    if before is not None and stays and before.every == every and host in (None, before.requested_host):
        return False
    connection.execute(
        sa.update(table).where(table.c.instance_uuid == uuid).values(every=every, updated_at=now)
        if _has_row(connection, uuid)
        else sa.insert(table).values(instance_uuid=uuid, every=every, former=[], created_at=now, updated_at=now)
    )
    if host is not None or before is None:
        replica_rows.write(connection, uuid, {"requested_host": host})
    if not stays:
        replica_rows.write(connection, uuid, {"created_at": now})
        _go_to(connection, server, before, host)
    return True


def _go_to(connection: sa.Connection, server: Instance, before: Replica | None, host: str | None) -> None:
    """Have the next copy go to `host`, or one that the scheduler chooses, and keep the complete one until then."""
    if before is not None:
        replica_rows.leave(connection, server["uuid"], before.next_host)
        if before.copy_id is None:
            replica_rows.leave(connection, server["uuid"], before.host)
        elif before.host == host:
            return
    replica_claims.choose(connection, server, host)


def check(connection: sa.Connection, server: Instance) -> None:
    """Raise NovaliteError for a server whose disks cannot be copied, with the reason."""
    flavor, uuid = server["flavor"], server["uuid"]
    owns = flavor["ephemeral_gb"] or flavor["swap_mb"] or not volume_views.from_volumes(connection, [uuid])
    disks = rules.Disks(
        disk_backend(flavor) if owns else None,
        ha_disks.local_volume(connection, uuid),
        server["adopted"] is not None,
        hardware_of(flavor, server["image"]).tpm is not None,
    )
    if reason := rules.refused(disks):
        raise NovaliteError(f"the disks of '{server['name']}' cannot be copied to a second host: {reason}")


def _has_row(connection: sa.Connection, uuid: str) -> bool:
    return connection.scalar(sa.select(sa.exists().where(table.c.instance_uuid == uuid))) or False


def remove(connection: sa.Connection, servers: t.Iterable[str]) -> list[str]:
    """Copy the disks of these servers no more; returns those of which this was done until now."""
    copied = table.c.instance_uuid.in_(sorted(set(servers))), table.c.every.is_not(None)
    stopped = connection.execute(sa.select(table.c.instance_uuid, table.c.host, table.c.next_host).where(*copied)).all()
    for row in stopped:
        for host in (row.next_host, row.host):
            replica_rows.leave(connection, row.instance_uuid, host)
        replica_rows.write(connection, row.instance_uuid, {"every": None, "requested_host": None})
    return [row.instance_uuid for row in stopped]


# --- the action on a server -------------------------------------------------------------------------------------------


def begun(connection: sa.Connection, row: InstanceRow, details: JsonObject) -> JsonObject:
    """Begin a copy, with a host for it: one that the server came to since is no second one."""
    replica = replica_of(connection, row.uuid)
    if replica is None:
        raise ConflictError(f"Instance {row.uuid} has no second host: set how often its disks are copied first")
    (server,) = instances_by(connection, uuids=[row.uuid])
    check(connection, server)
    replica_rows.leave(connection, row.uuid, row.host)
    target = next((host for host in (replica.next_host, replica.host) if host not in (row.host, None)), None)
    if target is None:
        requested = replica.requested_host if replica.requested_host != row.host else None
        replica_claims.choose(connection, server, requested)
    else:
        answered_at = replica.taken_at if target == replica.host else None
        outage = replica_rows.outage_of(connection, target, row.host or "", replica.silent_since, answered_at)
        details["why"] = outage and _replaced(connection, server, replica, target, outage)
    details["copy_id"] = str(uuids.uuid4())
    replica_rows.write(connection, row.uuid, {"tried_at": clock.seconds(connection)})
    return {}


def _replaced(
    connection: sa.Connection, server: Instance, replica: Replica, target: str, outage: replica_rows.Outage
) -> str | None:
    """Have the next copy go to another host than `target`, where the scheduler chose that; returns why, None where it
    is to go there all the same. Raises ConflictError where that makes no sense."""
    if target == replica.requested_host:
        if outage.is_certain:
            raise ConflictError(
                f"the disks of '{server['name']}' are not copied: {outage.reason}, and was asked for; bring it back, "
                "or name another host (novalite replica set)"
            )
        return None
    try:
        with connection.begin_nested():
            if target == replica.next_host or replica.copy_id is None:
                replica_rows.leave(connection, server["uuid"], target)
            chosen = replica_claims.choose(connection, server, None, target)
    except ConflictError as error:
        if outage.is_certain:
            raise ConflictError(f"{outage.reason}, and {error}") from None
        return None
    return f"{outage.reason}: {chosen} gets copies of the disks of '{server['name']}'"


def ended(
    connection: sa.Connection, row: InstanceRow, details: JsonObject, error: str | None, host_result: JsonMapping
) -> JsonObject:
    """`host_result` has the `host` that the copy went to, whether it was `silent`, and the `record` of the copy, once
    it is complete there: one on another host is given up then. One that failed changes nothing but the `fault`: the
    newest complete one is there still."""
    before = replica_of(connection, row.uuid)
    if before is None or host_result.get("host", before.target) != before.target:
        return {}  # copies of it are to go elsewhere by now, or nowhere
    if error is not None:
        silent_since = (before.silent_since or before.tried_at) if host_result.get("silent") else None
        replica_rows.write(connection, row.uuid, {"fault": error, "silent_since": silent_since})
        return {}
    if before.next_host is not None:
        replica_rows.leave(connection, row.uuid, before.host)
    record = {name: host_result["record"].get(name) for name in ("kind", "reason", "moved", "consistency")}
    newest = {"copy_id": details["copy_id"], "taken_at": before.tried_at, "fault": None, "silent_since": None}
    replica_rows.write(connection, row.uuid, {**record, **newest})
    return {}


def failed(connection: sa.Connection, uuid: str, reason: str) -> None:
    """Record why a copy could not even be begun."""
    replica_rows.write(connection, uuid, {"fault": reason, "tried_at": clock.seconds(connection)})


def due(connection: sa.Connection) -> list[str]:
    """Return the servers (UUIDs) of which a copy is due, with whom nothing else is under way."""
    now = clock.seconds(connection)
    query = (
        sa.select(table.c.instance_uuid, table.c.every, table.c.tried_at)
        .join(instance, instance.c.uuid == table.c.instance_uuid)
        .where(instance.c.deleted == 0, instance.c.vm_state.in_(_AT_REST), instance.c.task_state.is_(None))
        .where(instance.c.host.is_not(None), table.c.every.is_not(None))
        .order_by(table.c.taken_at.is_not(None), table.c.taken_at, instance.c.id)
    )
    return [row.instance_uuid for row in connection.execute(query) if rules.is_due(row.every, row.tried_at, now)]


# --- files that are to go ---------------------------------------------------------------------------------------------


def superfluous(connection: sa.Connection) -> dict[str, list[str]]:
    """Return, by host, the servers (UUIDs) whose copies are to be removed from it now. Hosts that are gone keep
    nothing, those that are down keep them until they are back."""
    known = set(connection.execute(sa.select(compute_host.c.name)).scalars())
    hosts: dict[str, list[str]] = {}
    for row in connection.execute(sa.select(table.c.instance_uuid, table.c.former).order_by(table.c.instance_uuid)):
        for host in row.former:
            hosts.setdefault(host, []).append(row.instance_uuid)
    for host in hosts.keys() - known:
        removed(connection, host, hosts.pop(host))
    down = replica_rows.outages(connection, hosts)
    return {host: servers for host, servers in hosts.items() if host not in down}


def belonging(connection: sa.Connection, host: str, uuids: t.Collection[str]) -> set[str]:
    """Return those of the servers whose copy is on `host`, is to come there, or is removed by the next run."""
    rows = connection.execute(sa.select(table).where(table.c.instance_uuid.in_(sorted(uuids))))
    return {row.instance_uuid for row in rows if host in (row.host, row.next_host, *row.former)}


def removed(connection: sa.Connection, host: str, servers: t.Iterable[str]) -> None:
    """Record that a host has nothing more of the copies of these servers."""
    rows = connection.execute(sa.select(table).where(table.c.instance_uuid.in_(sorted(set(servers))))).all()
    for row in rows:
        former = [name for name in row.former if name != host]
        if row.every is None and not former:
            connection.execute(sa.delete(table).where(table.c.instance_uuid == row.instance_uuid))
        else:
            replica_rows.write(connection, row.instance_uuid, {"former": former})


# --- evacuations ------------------------------------------------------------------------------------------------------


def lend(connection: sa.Connection, replica: Replica) -> None:
    """Give back the room of the copy to the server that is to run from it, which claims the same there."""
    held = connection.scalar(sa.select(table.c.disk_gb).where(table.c.instance_uuid == replica.instance_uuid))
    replica_rows.add(connection, replica.host or "", -(held or 0))
    replica_rows.write(connection, replica.instance_uuid, {"disk_gb": 0})


def is_used(replica: Replica | None, host: str | None) -> bool:
    """Tell whether a server that is evacuated to `host` runs from its copy there."""
    return replica is not None and replica.copy_id is not None and replica.host == host


def used(connection: sa.Connection, uuid: str, host: str | None) -> None:
    """Record that the server runs on `host`: from its copy, if that is there, so that it has no second one now."""
    if is_used(replica_of(connection, uuid), host):
        replica_rows.leave(connection, uuid, host)
        replica_rows.write(connection, uuid, {"tried_at": None})  # the next one is due at once


def unused(connection: sa.Connection, uuid: str, host: str | None) -> None:
    """Record that a server did not come to run from its copy on `host`, which takes its room there again."""
    if is_used(replica_of(connection, uuid), host):
        (server,) = instances_by(connection, uuids=[uuid])
        held = connection.scalar(sa.select(table.c.disk_gb).where(table.c.instance_uuid == uuid))
        disk_gb = replica_claims.size_of(connection, server)
        replica_rows.add(connection, host or "", disk_gb - (held or 0))
        replica_rows.write(connection, uuid, {"disk_gb": disk_gb})
