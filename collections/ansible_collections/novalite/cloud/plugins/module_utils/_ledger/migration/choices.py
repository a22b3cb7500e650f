# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Choice of the instances that move, and of their destinations."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping
from ..._model import cpu_mode
from ..._model.instance import Instance, Move
from ..._model.rows import MoveRow
from ..compute import migrations
from ..db import clock
from ..db.tables import compute_host
from ..db.tables_migrations import migration
from ..placement import migration_claims
from ..queries.compute.views import instances_by
from ..volumes import replicas
from ..volumes.ha_disks import local_volume


def away_from(connection: sa.Connection, host: str) -> list[Instance]:
    """List the instances that left `host` for its maintenance, and have not moved since."""
    last: dict[str, MoveRow] = {}
    for row in connection.execute(sa.select(migration).order_by(migration.c.id)):
        if row.status not in (migrations.ERROR, migrations.REVERTED, "cancelled"):
            last[row.instance_uuid] = t.cast(MoveRow, row)
    gone = {
        uuid: row.dest_host
        for uuid, row in last.items()
        if (row.reason, row.source_host) == (migrations.MAINTENANCE, host)
        and row.status in (migrations.COMPLETED, migrations.CONFIRMED)
    }
    return [server for server in instances_by(connection, uuids=gone) if server["host"] == gone[server["uuid"]]]


def is_settled(connection: sa.Connection, action: str, server: Instance, flavor: str | None, host: str | None) -> bool:
    """Tell whether the instance is already what `action` would make it."""
    if server["task_state"] is not None:
        return False
    move = migrations.open_moves(connection, [server["uuid"]]).get(server["uuid"])
    waits = server["vm_state"] == "resized" and move is not None
    if action == "resize":
        return server["flavor"]["name"] == flavor and (waits or server["vm_state"] in ("active", "stopped"))
    if action == "migrate":
        return bool(waits and host in (None, server["host"])) or (host is not None and server["host"] == host)
    if action in ("live-migration", "evacuate"):
        return host is not None and server["host"] == host
    last = connection.execute(
        sa.select(migration.c.status)
        .where(migration.c.instance_uuid == server["uuid"], migration.c.type.in_(["resize", "migration"]))
        .order_by(migration.c.id.desc())
    ).scalar()
    return not waits and last == (migrations.CONFIRMED if action == "confirmResize" else migrations.REVERTED)


def place(connection: sa.Connection, server: Instance, move: MoveRow, params: JsonMapping) -> migration_claims.Place:
    """Find a host for it and claim it there; its reasons where there is none. One that is evacuated goes to the copy of
    its disks, if it has one, and nowhere else with `only_copy`."""
    same_host = params.get("same_host") or ("allowed" if move.type == "resize" else "never")
    if move.type == "resize" and local_volume(connection, server["uuid"]) is not None:
        same_host = "only"
    limit_to = params.get("limit_to")
    from_copy = _place_at_copy(connection, server, move, params) if move.type == "evacuation" else None
    if from_copy is not None and (from_copy.host is not None or params.get("only_copy")):
        return from_copy
    try:
        if move.type == "live-migration":
            limit_to = _live_destinations(connection, server["host"] or "", move.dest_host, limit_to)
        chosen = {**params, "limit_to": limit_to, "same_host": same_host}
        destination = _chosen(connection, server, move, chosen, move.dest_host)
    except NovaliteError as error:
        destination = migration_claims.Place(None, str(error), ())
    anew = None
    if from_copy is not None and destination.host is not None:
        anew = f"its disks are made anew from its image: {from_copy.message}"
        destination = dataclasses.replace(destination, lines=(anew, *destination.lines))
    _record(connection, move, destination, anew)
    return destination


def _record(
    connection: sa.Connection, move: MoveRow, destination: migration_claims.Place, message: str | None = None
) -> None:
    """Record where the server is to go."""
    if destination.host is not None:
        status = migrations.RUNNING if move.type == "live-migration" else migrations.MIGRATING
        migrations.set_status(connection, [move.id], status, message)
        connection.execute(sa.update(migration).where(migration.c.id == move.id).values(dest_host=destination.host))


def _place_at_copy(
    connection: sa.Connection, server: Instance, move: MoveRow, params: JsonMapping
) -> migration_claims.Place | None:
    """Claim a place for an evacuated server where the copy of its disks is, whose room it gets; None without a copy.
    Where that cannot be, the message says why."""
    replica = replicas.replica_of(connection, server["uuid"])
    if replica is None:
        return None
    if replica.copy_id is None or replica.host is None:
        return migration_claims.Place(None, "no copy of its disks was completed", ())
    where = replica.in_words(clock.seconds(connection))
    if move.dest_host not in (None, replica.host):
        return migration_claims.Place(None, f"{where}, is not used: {move.dest_host} was asked for", ())
    try:
        with connection.begin_nested() as attempt:
            replicas.lend(connection, replica)
            at = {**params, "limit_to": sorted({replica.host} & set(params.get("limit_to") or [replica.host]))}
            place_there = _chosen(connection, server, move, at, replica.host)
            if place_there.host is None:
                attempt.rollback()
    except NovaliteError as error:
        place_there = migration_claims.Place(None, str(error), ())
    if place_there.host is None:
        return migration_claims.Place(None, f"{where}, cannot be used: {place_there.message}", ())
    place_there = dataclasses.replace(place_there, message=f"it runs from {where}")
    place_there = dataclasses.replace(place_there, lines=(place_there.message, *place_there.lines))
    _record(connection, move, place_there, place_there.message)
    return place_there


def _chosen(
    connection: sa.Connection, server: Instance, move: MoveRow, params: JsonMapping, host: str | None
) -> migration_claims.Place:
    return migration_claims.place(
        connection,
        server,
        move.new_flavor,
        host=host,
        same_host=params.get("same_host") or "never",
        options=params.get("options"),
        down_time=params.get("service_down_time"),
        limit_to=params.get("limit_to"),
        live=move.type == "live-migration",
        dead=move.type == "evacuation",
    )


def _live_destinations(
    connection: sa.Connection, host: str, destination: str | None, limit_to: t.Collection[str] | None
) -> t.Collection[str] | None:
    """Return those of the hosts `limit_to` (None: any) that a guest of `host` can go to while it runs.

    It takes the names of its files along: its QEMU has them open, and libvirt carries its definition over. Its CPU
    stays the same, too. Raises NovaliteError when the `destination` that was asked for, or every other host, keeps
    its files elsewhere or gives its guests another CPU.
    """
    rows = connection.execute(sa.select(compute_host.c.name, compute_host.c.state_dir, compute_host.c.facts)).all()
    known = {row.name: row.state_dir for row in rows}
    cpus = {row.name: cpu_mode.description_of(row.facts) for row in rows}
    alike = {name for name, directory in known.items() if directory == known.get(host)}
    same_cpu = {name for name in alike if cpus[name] == cpus.get(host)}
    if same_cpu == known.keys():
        return limit_to
    advice = "a guest that runs takes {} along; migrate it while it is off (migrate.yml)"
    if destination is not None and destination not in alike:
        raise NovaliteError(
            f"host {destination} keeps instances in {known.get(destination)}, {host} in {known.get(host)}: "
            + advice.format("the names of its disks")
        )
    if destination is not None and destination not in same_cpu:
        raise NovaliteError(
            f"host {destination} gives its guests the CPU {cpus[destination]}, {host} {cpus.get(host)}: "
            + advice.format("its CPU")
        )
    if alike <= {host}:
        raise NovaliteError(
            f"no other host keeps instances in {known.get(host)} as {host} does: "
            + advice.format("the names of its disks")
        )
    if same_cpu <= {host}:
        raise NovaliteError(
            f"no other host gives its guests the CPU {cpus.get(host)} as {host} does: " + advice.format("its CPU")
        )
    return sorted(same_cpu if limit_to is None else same_cpu & set(limit_to))


def move_of(action: str, server: Instance, move: MoveRow, why: list[str]) -> Move:
    """Return a move as the playbook passes it on: from where the guest is now to where it is to be afterwards."""
    back = action == "revertResize"
    ends = [(move.source_host, move.old_flavor), (move.dest_host or "", move.new_flavor)]
    (from_host, from_flavor), (to_host, to_flavor) = reversed(ends) if back else ends
    state = move.old_vm_state
    moving: Move = {
        "uuid": server["uuid"],
        "name": server["name"],
        "domain_name": server["domain_name"],
        "id": move.uuid,
        "action": action,
        "from_host": from_host,
        "to_host": to_host,
        "from_flavor": from_flavor,
        "to_flavor": to_flavor,
        "same_host": move.source_host == move.dest_host,
        "starts": state in ("active", "paused", "error") if action == "evacuate" else state in ("active", "paused"),
        "why": why,
    }
    if action == "evacuate" and move.message:
        moving["reason"] = move.message
    return moving
