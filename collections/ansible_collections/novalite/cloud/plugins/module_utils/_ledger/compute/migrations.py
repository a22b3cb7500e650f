# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Moves of instances from host to host, or from size to size: the table `migration`, and what it means for the rest.

While a move is open its instance has a claim on both hosts. `instance.host` says where the guest is to be, and changes
in one transaction with everything that hangs on it: whoever comes after a killed run finds in the ledger on which of
the two hosts the guest's disks are whole.
"""

from __future__ import annotations

import typing as t
import uuid as uuids

import sqlalchemy as sa

from ..._json import JsonObject
from ..._model.instance import Flavor
from ..._model.rows import InstanceRow, MoveRow
from ..db import clock
from ..db.tables import instance, vif
from ..db.tables_migrations import OPEN, migration
from ..instances import actions
from ..instances.actions import swap
from ..network.addresses import release_host_address
from ..placement import departures
from ..placement.claims import release_claims
from ..placement.migration_claims import change_claim
from ..queries.compute.instance_rows import instance_rows
from ..volumes import replicas

# action -> the type of its record
TYPES = {"resize": "resize", "migrate": "migration", "live-migration": "live-migration", "evacuate": "evacuation"}
ENDS = ("confirmResize", "revertResize")  # of a resize, or of a migration of a guest that was switched off for it
ACTIONS = (*TYPES, *ENDS)

QUEUED, PREPARING, MIGRATING, POST, FINISHED = "queued", "preparing", "migrating", "post-migrating", "finished"
CONFIRMING, CONFIRMED, REVERTING, REVERTED = "confirming", "confirmed", "reverting", "reverted"
RUNNING, COMPLETED, DONE, ERROR = "running", "completed", "done", "error"
WAITING = (FINISHED, CONFIRMING)  # for the owner's word, or for the end of what it asked for
_UNDONE = (QUEUED, PREPARING, MIGRATING)  # the instance is on its source, as before
MAINTENANCE = "maintenance"  # the reason of moves that host_restore.yml takes back
HEALING = "healing"  # that of evacuations which the watch began: it alone ends them


def now_(connection: sa.Connection) -> int:
    return clock.seconds(connection)


def insert(
    connection: sa.Connection,
    action: str,
    row: InstanceRow,
    *,
    flavor: Flavor | None = None,
    host: str | None = None,
    reason: str | None = None,
    user_id: str | None = None,
) -> None:
    """Record that a move of the instance `row` was asked for. `host`: where to, when that was said."""
    now = now_(connection)
    connection.execute(
        sa.insert(migration).values(
            uuid=str(uuids.uuid4()),
            instance_uuid=row.uuid,
            type=TYPES[action],
            status=QUEUED,
            source_host=row.host,
            dest_host=host,
            old_flavor=row.flavor,
            new_flavor=flavor or row.flavor,
            old_vm_state=row.vm_state,
            reason=reason,
            user_id=user_id,
            project_id=row.project_id,
            created_at=now,
            updated_at=now,
        )
    )


def open_moves(connection: sa.Connection, uuids: t.Iterable[str] | None = None) -> dict[str, MoveRow]:
    """Return each instance's open move, by the instance's UUID; without `uuids`, of all instances."""
    query = sa.select(migration).where(migration.c.status.in_(OPEN)).order_by(migration.c.id)
    if uuids is not None:
        query = query.where(migration.c.instance_uuid.in_(sorted(set(uuids))))
    return {row.instance_uuid: t.cast(MoveRow, row) for row in connection.execute(query)}


def set_status(connection: sa.Connection, ids: t.Iterable[int], status: str, message: str | None = None) -> None:
    values: JsonObject = {"status": status, "updated_at": now_(connection)}
    if message is not None:
        values["message"] = actions.one_line(message)
    connection.execute(sa.update(migration).where(migration.c.id.in_(sorted(ids))).values(**values))


def other_host(move: MoveRow, host: str | None) -> str | None:
    """The end of the move that is not `host`; None when it has one end only."""
    if move.source_host == move.dest_host:
        return None
    return move.dest_host if host == move.source_host else move.source_host


def give_up(connection: sa.Connection, move: MoveRow, host: str | None, now: int | None = None) -> None:
    """The instance of `move` has nothing more on `host`: its claim and the host's own addresses are given back."""
    if host is None:
        return
    release_claims(connection, [move.instance_uuid], hosts=[host])
    _left(connection, move, host)
    _leave_networks(connection, move, host, now)


def _left(connection: sa.Connection, move: MoveRow, host: str | None) -> None:
    """The instance of `move` has left this end of it, or never came to be there."""
    reason = departures.EVACUATED if move.type == "evacuation" else departures.MOVED
    reason = reason if host == move.source_host else departures.REVERTED
    departures.leave(connection, [move.instance_uuid], host, reason, now_(connection))


def _leave_networks(connection: sa.Connection, move: MoveRow, host: str, now: int | None) -> None:
    networks = sa.select(vif.c.network_id).where(vif.c.instance_uuid == move.instance_uuid).distinct()
    for network_id in connection.execute(networks).scalars().all():
        release_host_address(connection, network_id, host, now)


def ended(connection: sa.Connection, action: str, uuids: t.Collection[str], error: str | None) -> None:
    """`action` of these instances is over without having said how: its run died, or was refused by its host.

    Called by server_actions.finish() after the task state was taken off. Where the instance is says what it is now:
    still on its source, and nothing happened; on its destination, and it was moved, though perhaps not started. Of a
    live migration only the hosts know; `reconcile.yml` asks them, and until then both claims stay.
    """
    if error is None or action not in ACTIONS:
        return
    rows = {row.uuid: row for row in instance_rows(connection, instance.c.uuid.in_(list(uuids)))}
    for uuid, move in open_moves(connection, uuids).items():
        row = rows.get(uuid)
        if row is None:
            continue
        if move.status == RUNNING:
            set_status(connection, [move.id], RUNNING, error)
        elif move.status in _UNDONE:
            undo(connection, move, row, error)
        elif move.status == POST and move.reason == HEALING:  # it may run there: it does not go back to a dead host
            set_status(connection, [move.id], POST, error)
        elif move.status == POST and move.type == "evacuation":  # what was begun there goes, and may be tried again
            if take_back(connection, move, row.task_state):
                undo(connection, move, row, error)
                give_up(connection, move, move.dest_host)
        elif move.status == POST:
            finish(connection, move, row, error=error)
        elif move.status == REVERTING and row.host == move.source_host and row.vm_state != "resized":
            settle(connection, move, REVERTED)
        elif move.status == CONFIRMING:  # some of what a revert needs may be gone: it can only be confirmed
            set_status(connection, [move.id], CONFIRMING, error)
        elif move.status == REVERTING:
            set_status(connection, [move.id], FINISHED, error)


def undo(connection: sa.Connection, move: MoveRow, row: InstanceRow, error: str) -> None:
    """The move did not happen; the instance is as it was before."""
    set_status(connection, [move.id], ERROR, error)
    if move.dest_host is None or move.status == QUEUED:
        return
    if move.dest_host == move.source_host:
        change_claim(connection, move.instance_uuid, move.source_host, move.old_flavor)
    elif row.host == move.source_host:
        give_up(connection, move, move.dest_host)
    if move.type == "evacuation":
        replicas.unused(connection, row.uuid, move.dest_host)


def commit(connection: sa.Connection, move: MoveRow, task_state: str) -> bool:
    """Record that the instance is now on the move's destination, in its new size. False when somebody else has it."""
    after = {"host": move.dest_host, "flavor": move.new_flavor}
    done = _swap(connection, move, task_state, move.source_host, after)
    if done:
        set_status(connection, [move.id], POST)
    return done


def take_back(connection: sa.Connection, move: MoveRow, task_state: str | None) -> bool:
    """Record that the instance is again on the move's source, in its old size. False when somebody else has it."""
    after = {"host": move.source_host, "flavor": move.old_flavor, "vm_state": move.old_vm_state}
    return _swap(connection, move, task_state, move.dest_host, after)


def _swap(
    connection: sa.Connection, move: MoveRow, task_state: str | None, host: str | None, after: JsonObject
) -> bool:
    same = (instance.c.task_state.is_not_distinct_from(task_state), instance.c.host == host)
    done = swap(connection, move.instance_uuid, {**after, "updated_at": now_(connection)}, *same)
    if done and after["host"] != host:
        _left(connection, move, host)
        departures.arrive(connection, [move.instance_uuid], after["host"])
    return done


def finish(connection: sa.Connection, move: MoveRow, row: InstanceRow, error: str | None = None) -> None:
    """End a committed move: a live migration or an evacuation is over, others wait to be confirmed or reverted."""
    now = now_(connection)
    if move.type in ("live-migration", "evacuation"):
        set_status(connection, [move.id], COMPLETED if move.type == "live-migration" else DONE, error)
        give_up(connection, move, move.source_host, now)
        if move.type == "evacuation":
            replicas.used(connection, row.uuid, move.dest_host)
        return
    set_status(connection, [move.id], FINISHED, error)
    swap(connection, row.uuid, {"vm_state": "resized", "updated_at": now})
    if move.source_host != move.dest_host:  # which keeps disks, and a claim
        _leave_networks(connection, move, move.source_host, now)


def settle(connection: sa.Connection, move: MoveRow, status: str) -> None:
    """End the move: CONFIRMED, and its source has nothing of it any more; REVERTED, and all is as it was before."""
    ends = {CONFIRMED: (move.source_host, move.new_flavor), REVERTED: (move.dest_host, move.old_flavor)}
    left, flavor = ends[status]
    set_status(connection, [move.id], status)
    if move.source_host == move.dest_host:
        change_claim(connection, move.instance_uuid, move.source_host, flavor)
    else:
        give_up(connection, move, left)


def end_with(connection: sa.Connection, uuids: t.Collection[str]) -> None:
    """End the moves of deleted instances: as Nova does, confirm their resizes, and cancel what is under way."""
    of_these = sa.and_(migration.c.instance_uuid.in_(list(uuids)), migration.c.status.in_(OPEN))
    for status, where in ((CONFIRMED, migration.c.status.in_(WAITING)), ("cancelled", sa.true())):
        connection.execute(
            sa.update(migration).where(of_these, where).values(status=status, updated_at=now_(connection))
        )
