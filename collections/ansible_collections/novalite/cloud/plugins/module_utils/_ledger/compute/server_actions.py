# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Actions on existing instances, the states they need, and the states they lead to: Nova's table of states.

An action begins with a compare-and-swap of the task state from none to the action's own, and ends with one from there
to none. Another action that comes between is refused; a deletion is not, it takes the instance over: the end of the
action then finds another task state, and leaves the instance alone.
"""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.hardware import hardware_of
from ..._model.instance import Instance
from ..._model.pci import recorded_asked_of
from ..._model.rows import InstanceRow
from ..._rules.build_states import OFFLOADED, SHELVED, UNSHELVE
from ..catalog import image_snapshots
from ..db import clock
from ..db.tables import instance
from ..instances import actions
from ..instances.actions import swap
from ..queries.compute import state_rules
from ..queries.compute.instance_rows import instance_rows, locked_row, locked_rows
from ..queries.compute.state_rules import HARD_REBOOT, RULES, StateRule
from ..queries.compute.views import instances_by
from ..queries.volumes import volume_views
from ..volumes import replicas
from . import guest_passwords, live_resize, migrations, rebuilds, server_backups, server_snapshots, shelving
from .shelving import OFFLOAD, SHELVE

NO_STATE, RUNNING, PAUSED, SHUTDOWN = 0, 1, 3, 4  # Nova's power states
SOFT, HARD = "SOFT", "HARD"  # details["type"] of a reboot, as the API's clients write it


@dataclasses.dataclass(frozen=True)
class Action:
    """The states that allow it, its task state, and what the instance is when it has succeeded. None: what it was
    before. That of an action in OTHERS is written by the operation that carries the action out."""

    rule: StateRule
    task_state: str
    vm_state: str | None
    power_state: int | None


def _actions(*rows: tuple[str, str, str | None, int | None]) -> dict[str, Action]:
    return {name: Action(RULES[name], task, vm_state, power_state) for name, task, vm_state, power_state in rows}


ACTIONS = _actions(
    ("stop", "powering-off", "stopped", SHUTDOWN),
    ("start", "powering-on", "active", RUNNING),
    ("pause", "pausing", "paused", PAUSED),
    ("unpause", "unpausing", "active", RUNNING),
    ("suspend", "suspending", "suspended", SHUTDOWN),
    ("resume", "resuming", "active", RUNNING),
)
REBOOTS = {
    SOFT: Action(RULES["reboot"], "rebooting", "active", RUNNING),
    HARD: Action(HARD_REBOOT, "rebooting_hard", "active", RUNNING),
}
# Those that a guest or its disks are made anew for, or that move it. Of an evacuation Nova says "rebuilding" as well;
# here a task state tells which action is under way.
OTHERS = _actions(
    ("rescue", "rescuing", "rescued", RUNNING),
    ("unrescue", "unrescuing", "active", RUNNING),
    ("rebuild", "rebuilding", None, None),
    ("createImage", "image_snapshot", None, None),
    ("resize", "resize_prep", "resized", None),
    ("live-resize", "resizing_live", None, None),
    (guest_passwords.NAME, "updating_password", None, None),
    ("migrate", "resize_migrating", "resized", None),
    ("confirmResize", "resize_confirming", None, None),
    ("revertResize", "resize_reverting", None, None),
    ("live-migration", "migrating", None, None),
    ("evacuate", "rebuild_spawning", None, None),
    (SHELVE, "shelving", SHELVED, SHUTDOWN),
    (OFFLOAD, "shelving_offloading", OFFLOADED, None),
    (UNSHELVE.action, UNSHELVE.waiting, "active", RUNNING),
    (server_snapshots.CREATE, "snapshotting", None, None),
    (server_snapshots.REVERT, "snapshot_reverting", None, None),
    (server_snapshots.DELETE, "snapshot_deleting", None, None),
    (server_backups.CREATE, "backing_up", None, None),
    (server_backups.RESTORE, "backup_restoring", None, None),
    (server_backups.VERIFY, "backup_verifying", None, None),
    (server_backups.DELETE, "backup_deleting", None, None),
    (replicas.REPLICATE, "replicating", None, None),
)
NAMES = (*ACTIONS, "reboot", *OTHERS)
# What is done with an instance's own root disk, and is not built for one that starts from a volume
_OF_ROOT_DISK = frozenset({"createImage"})

# What Nova refuses for a guest with a TPM, and moves: the TPM's state is its host's libvirt's, and stays there
_NOT_WITH_TPM = frozenset({"rebuild", "rescue", SHELVE, "evacuate", "live-migration", "migrate", "resize"})

# What a guest with a device of its host does not live through: libvirt does not save the device's state
_NOT_WITH_DEVICES = frozenset({"live-migration", "suspend"})

_RESTARTS = (  # switch off, and on again
    *("reboot", "rebuild", "rescue", "unrescue", "resize", "migrate", "revertResize", server_snapshots.REVERT),
    server_backups.RESTORE,
)

# What a failed action may have left: the guest is in another power state than its vm_state says.
_LEFT_IN = {
    RUNNING: (("stopped", "suspended", "paused"), "active"),
    PAUSED: (("active",), "paused"),
    SHUTDOWN: (("active", "paused", "rescued"), "stopped"),
}


# What some actions write beside the states: an image that is made, another image that a server stands on.
# (connection, the instance's row as it was, the action's details, which it may add to) -> what to write to the instance
_Begun = t.Callable[[sa.Connection, InstanceRow, JsonObject], JsonObject]
# (connection, row, details, error or None, what the host said of this instance) -> what to write to the instance
_Ended = t.Callable[[sa.Connection, InstanceRow, JsonObject, t.Optional[str], JsonMapping], JsonObject]
_BEGUN: dict[str, _Begun] = {
    "createImage": image_snapshots.begun,
    "rebuild": rebuilds.begun_rebuild,
    "rescue": rebuilds.begun_rescue,
    live_resize.NAME: live_resize.begun,
    guest_passwords.NAME: guest_passwords.begun,
    SHELVE: shelving.begun_shelve,
    UNSHELVE.action: shelving.begun_unshelve,
    server_snapshots.CREATE: server_snapshots.begun_create,
    server_snapshots.REVERT: server_snapshots.begun_revert,
    server_snapshots.DELETE: server_snapshots.begun_delete,
    server_backups.CREATE: server_backups.begun_create,
    server_backups.RESTORE: server_backups.begun_restore,
    server_backups.VERIFY: server_backups.begun_verify,
    server_backups.DELETE: server_backups.begun_delete,
    replicas.REPLICATE: replicas.begun,
}
_ENDED: dict[str, _Ended] = {
    "createImage": image_snapshots.ended,
    "rebuild": rebuilds.ended_rebuild,
    "rescue": rebuilds.ended_rescue,
    live_resize.NAME: live_resize.ended,
    SHELVE: shelving.ended_shelve,
    OFFLOAD: shelving.ended_offload,
    server_snapshots.CREATE: server_snapshots.ended_create,
    server_snapshots.REVERT: server_snapshots.ended_revert,
    server_snapshots.DELETE: server_snapshots.ended_delete,
    server_backups.CREATE: server_backups.ended_create,
    server_backups.RESTORE: server_backups.ended_restore,
    server_backups.VERIFY: server_backups.ended_verify,
    server_backups.DELETE: server_backups.ended_delete,
    replicas.REPLICATE: replicas.ended,
}


# Whose effect is on records that outlive the action: an image, a snapshot or a backup that is `creating` or `restoring`
# lets nobody do anything else with it
_OF_RECORDS = ("createImage", SHELVE, *server_snapshots.ACTIONS, *server_backups.ACTIONS)


def action_of(name: str, details: JsonMapping | None = None) -> Action:
    """The rules of the action `name`; those of a reboot depend on details["type"], SOFT unless it says HARD."""
    if name == "reboot":
        kind = (details or {}).get("type") or SOFT
        if kind not in REBOOTS:
            raise NovaliteError(f"reboot of type {kind!r}: use {' or '.join(REBOOTS)}")
        return REBOOTS[kind]
    rules = ACTIONS.get(name) or OTHERS.get(name)
    if rules is None:
        raise NovaliteError(f"unknown action {name!r}: there are {', '.join(sorted(NAMES))}")
    return rules


def _variants(name: str) -> tuple[Action, ...]:
    return tuple(REBOOTS.values()) if name == "reboot" else (action_of(name),)


def task_states(name: str) -> tuple[str, ...]:
    """The task states in which an instance may be while the action `name` runs."""
    return tuple(variant.task_state for variant in _variants(name))


def action_in(task_state: str | None) -> str | None:
    """The name of the action whose task state this is."""
    return next((name for name in NAMES if task_state in task_states(name)), None)


def begin(
    connection: sa.Connection,
    action: str,
    uuids: t.Iterable[str],
    *,
    request_id: str,
    user_id: str | None = None,
    details: JsonMapping | None = None,
    by_admin: bool = False,
    also_in: t.Collection[str] = (),
) -> list[Instance]:
    """Begin `action` on all of `uuids`, or on none; returns them as they are then, oldest first.

    `details` are kept with the instance action; for a reboot, `{"type": "HARD"}` makes it a hard one. Those of the
    actions in OTHERS are made by image_views and rebuilds. Raises NotFoundError, and StateError as
    state_rules.check() does, which takes `by_admin` and `also_in`. The caller's transaction is to be rolled back then.
    """
    rules = action_of(action, details)
    rows = locked_rows(connection, uuids)
    state_rules.check(connection, rules.rule, rows, by_admin=by_admin, also_in=also_in)
    if action in _OF_ROOT_DISK:
        _refuse_volume_roots(connection, action, rows)
    if action in _NOT_WITH_TPM:
        _refuse_tpms(action, rows)
    if action in _NOT_WITH_DEVICES:
        _refuse_devices(action, rows)
    server_snapshots.refuse_leaving(connection, action, rows)
    now = clock.seconds(connection)
    swapped = connection.execute(
        sa.update(instance)
        .where(
            instance.c.id.in_([row.id for row in rows]),
            instance.c.deleted == 0,
            instance.c.task_state.is_(None),
            instance.c.vm_state.in_(sorted({row.vm_state for row in rows})),
        )
        .values(task_state=rules.task_state, updated_at=now)
    ).rowcount
    if swapped != len(rows):  # the rows are locked, so only a ledger without row locks comes here
        raise ConflictError(f"Cannot '{action}' {len(rows)} instances: one of them was changed just now; try again")
    of_each = {row.uuid: dict(details or {}) for row in rows}
    if effect := _BEGUN.get(action):
        for row in rows:
            if values := effect(connection, row, of_each[row.uuid]):
                connection.execute(sa.update(instance).where(instance.c.id == row.id).values(**values))
    for project_id in sorted({row.project_id for row in rows}):
        theirs = {row.uuid: of_each[row.uuid] for row in rows if row.project_id == project_id}
        actions.start(connection, action, theirs, request_id, now, user_id=user_id, project_id=project_id)
    return instances_by(connection, uuids=[row.uuid for row in rows])


def finish(
    connection: sa.Connection,
    action: str,
    uuids: t.Iterable[str],
    *,
    host: str | None = None,
    error: str | None = None,
    power_state: int | None = None,
    host_results: t.Mapping[str, JsonMapping] | None = None,
) -> list[str]:
    """Record how `action` ended: without `error` it succeeded. Returns the UUIDs of those that this changed.

    An instance whose task state is not (or no more) the action's is left alone: it is being deleted, or this was said
    before. `host`, if given, must be the one that it is on. `power_state` is Nova's number for what its host saw;
    without it, what a success means. After an error the instance is what it was before, unless its power state says
    that the action got half way, or its effect has it otherwise. `host_results` is what else its host told of each
    UUID.
    """
    now = clock.seconds(connection)
    mine = instance.c.uuid.in_(sorted(set(uuids)))
    rows = instance_rows(connection, mine, instance.c.deleted == 0, lock=True)
    message = None if error is None else actions.one_line(error) or "no reason was given"
    effect = _ENDED.get(action)
    begun_with = actions.open_details(connection, action, [row.uuid for row in rows]) if effect else {}
    changed = []
    for row in rows:
        rules = next((variant for variant in _variants(action) if variant.task_state == row.task_state), None)
        if rules is None or row.deleted or (host is not None and row.host != host):
            continue
        values: JsonObject = {"task_state": None, "updated_at": now}
        if error is None:
            seen = rules.power_state if power_state is None else power_state
            # what is done to a guest whose move waits for its owner's word does not end the waiting
            states = {"vm_state": None if row.vm_state == "resized" else rules.vm_state, "power_state": seen}
            values |= {"fault": None, **{name: value for name, value in states.items() if value is not None}}
        elif power_state is not None:
            values["power_state"] = power_state
            from_states, to_state = _LEFT_IN.get(power_state, ((), ""))
            if row.vm_state in from_states:
                values["vm_state"] = to_state
        if effect is not None:
            host_result = (host_results or {}).get(row.uuid, {})
            values |= effect(connection, row, begun_with.get(row.uuid, {}), message, host_result)
        if row.rescue_image is not None and values.get("vm_state", row.vm_state) != "rescued":
            values["rescue_image"] = None
        if swap(connection, row.uuid, values, instance.c.task_state == row.task_state):
            changed.append(row.uuid)
    hosts = {row.uuid: row.host for row in rows}
    actions.finish(connection, action, [(uuid, hosts[uuid], message) for uuid in changed], now=now)
    migrations.ended(connection, action, changed, message)
    if action == OFFLOAD and error is None:
        shelving.left(connection, {uuid: hosts[uuid] for uuid in changed}, now)
    return changed


def interrupt(connection: sa.Connection, action: str, uuids: t.Iterable[str], reason: str) -> list[str]:
    """Record that nobody goes on with `action`; otherwise as finish(). Of one that switches a guest off and on again,
    nobody knows how far it came: the guest is not taken for one that its owner shut down (host_drift)."""
    return finish(connection, action, uuids, error=reason, power_state=NO_STATE if action in _RESTARTS else None)


def abandon(
    connection: sa.Connection, uuids: t.Collection[str], reason: str, *, now: int | None = None, deleting: bool = False
) -> None:
    """End every unfinished action of these instances: something else was begun, or said, and what comes of them is not
    recorded any more. The instances stay as they are, and what these actions were about is what it is after an error;
    of instances that are being deleted, only what outlives them."""
    rows = {row.uuid: row for row in instance_rows(connection, instance.c.uuid.in_(sorted(uuids)))}
    for name in server_backups.ACTIONS if deleting else _OF_RECORDS:
        for uuid, details in actions.open_details(connection, name, rows).items():
            _ENDED[name](connection, rows[uuid], details, reason, {})
    actions.abandon(connection, rows, reason, now)


def set_lock(
    connection: sa.Connection,
    uuid: str,
    locked: bool,
    reason: str | None = None,
    *,
    request_id: str | None = None,
    user_id: str | None = None,
) -> bool:
    """Lock the instance, so that begin() refuses it, or take the lock off. Returns whether that changed anything. The
    `reason` counts for a lock, and is kept with the instance action."""
    row = locked_row(connection, uuid)
    kept = reason if locked else None
    if (row.locked, row.locked_reason) == (locked, kept):
        return False
    now = clock.seconds(connection)
    connection.execute(
        sa.update(instance).where(instance.c.id == row.id).values(locked=locked, locked_reason=kept, updated_at=now)
    )
    name = "lock" if locked else "unlock"
    details = {uuid: {} if reason is None else {"reason": reason}}
    lock_request_id = request_id or actions.new_request_id()
    actions.start(connection, name, details, lock_request_id, now, user_id=user_id, project_id=row.project_id)
    actions.finish(connection, name, [(uuid, None, None)], now=now)
    return True


def _refuse_tpms(action: str, rows: t.Iterable[InstanceRow]) -> None:
    for row in rows:
        if hardware_of(row.flavor, row.image).tpm is not None:
            raise ConflictError(
                f"Operation '{action}' not supported for vTPM-enabled instance ({row.uuid}): the TPM's state stays on "
                f"{row.host}. Make an image of it, and launch another server of that"
            )


def _refuse_devices(action: str, rows: t.Iterable[InstanceRow]) -> None:
    for row in rows:
        if recorded_asked_of(row.flavor, row.image) is not None:
            raise ConflictError(
                f"Cannot '{action}' instance {row.uuid}: it has PCI devices of {row.host}, whose state cannot be taken "
                "along. Stop it, or migrate it while it is off (migrate.yml)"
            )


def _refuse_volume_roots(connection: sa.Connection, action: str, rows: t.Sequence[InstanceRow]) -> None:
    """Half of it done, the guest would have lost its disk, or the volume's data would be on the wrong one."""
    uuid = next(iter(volume_views.from_volumes(connection, [row.uuid for row in rows])), None)
    if uuid is not None:
        raise ConflictError(f"Cannot '{action}' instance {uuid}: it starts from a volume, not from a disk of its own")
