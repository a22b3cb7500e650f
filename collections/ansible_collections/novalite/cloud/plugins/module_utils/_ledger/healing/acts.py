# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Acts of the watch upon guests in the ledger: places on other hosts, starts, and arrivals. Each is judged once more
in the transaction that records it."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._healing import actions
from ..._healing.nouns import COPIED
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._plan import targets
from ..compute import migrations, server_actions
from ..compute.named_servers import take_over
from ..compute.plans import plan_hosts
from ..db.tables import instance
from ..instances import actions as action_log
from ..migration import host_plans
from ..migration.choices import move_of, place
from ..queries.compute.instance_rows import instance_row
from ..queries.compute.views import instances_by
from ..volumes.ha_disks import local_volume
from . import watch_rows
from .guests import guests

_EVACUATE, _REBOOT = "evacuate", "reboot"
EVER = 1 << 31  # seconds


def list_reason(connection: sa.Connection, uuid: str, reason: str) -> None:
    """Record why a guest does not run ("": nothing keeps it from it)."""
    connection.execute(sa.update(instance).where(instance.c.uuid == uuid).values(ha_reason=reason or None))


def place_guest(connection: sa.Connection, act: actions.Place, controller: str, options: JsonMapping) -> str:
    """Claim a place for a guest of a dead host, and record that it lives there now; returns why that was not done."""
    uuid = act.guest.uuid
    why_not, row = watch_rows.refusal(connection, act, controller, _guest(connection, uuid))
    if why_not:
        return why_not
    try:
        with connection.begin_nested():
            _place(connection, act, options)
    except NovaliteError as error:
        list_reason(connection, uuid, str(error))
        return str(error)
    watch_rows.move(connection, row, uuid)
    list_reason(connection, uuid, "")
    from_copy = migrations.open_moves(connection, [uuid])[uuid].message
    text = f"{uuid} goes to {_host_of(connection, uuid)}" + (f"; {from_copy}" if from_copy else "")
    watch_rows.note(connection, row, "guest placed", controller, text)
    return ""


def _place(connection: sa.Connection, act: actions.Place, options: JsonMapping) -> None:
    """Begin the evacuation and commit it. Raises NovaliteError where there is no place, or something is in its way."""
    uuid = act.guest.uuid
    (server,) = instances_by(connection, uuids=[uuid])
    if held := local_volume(connection, uuid):
        raise NovaliteError(f"volume {held} is on {act.host} alone")
    take_over(connection, [server], 0, True)  # whatever was done to it died with its host
    opened = migrations.open_moves(connection, [uuid]).get(uuid)
    if opened is not None and opened.reason == migrations.HEALING and opened.status == migrations.POST:
        migrations.finish(connection, opened, instance_row(connection, uuid))  # the host that it came to has died, too
    elif opened is not None:
        raise NovaliteError(f"its {opened.type} was cut off: run playbooks/reconcile.yml")
    request_id = action_log.new_request_id()
    server_actions.begin(connection, _EVACUATE, [uuid], request_id=request_id, by_admin=True)
    migrations.insert(connection, _EVACUATE, instance_row(connection, uuid), reason=migrations.HEALING)
    (server,) = instances_by(connection, uuids=[uuid])
    begun = migrations.open_moves(connection, [uuid])[uuid]
    # The takers answered just now; when a launch looked at them last is of no matter
    choice = {"limit_to": act.takers, "service_down_time": EVER, "options": options}
    choice["only_copy"] = act.guest.disk == COPIED and not act.guest.rebuild
    destination = place(connection, server, begun, choice)
    if destination.host is None:
        raise NovaliteError(destination.message)
    begun = migrations.open_moves(connection, [uuid])[uuid]
    (task_state,) = server_actions.task_states(_EVACUATE)
    if not migrations.commit(connection, begun, task_state):
        raise NovaliteError("it is being deleted, or another run moves it")


def _guest(connection: sa.Connection, uuid: str) -> t.Any:
    return next(iter(guests(connection, [uuid])), None)


def _host_of(connection: sa.Connection, uuid: str) -> str | None:
    return connection.scalar(sa.select(instance.c.host).where(instance.c.uuid == uuid))


def begin_start(connection: sa.Connection, act: actions.Start, controller: str) -> str:
    """Take a guest for its start on the host that it is recorded on; returns why that must not be."""
    uuid = act.guest.uuid
    guest = _guest(connection, uuid)
    why_not, _row = watch_rows.refusal(connection, act, controller, guest)
    if why_not:
        return why_not
    if guest.moving != act.guest.moving:
        return f"guest {uuid} was moved meanwhile"
    if guest.moving:
        (task_state,) = server_actions.task_states(_EVACUATE)
        connection.execute(sa.update(instance).where(instance.c.uuid == uuid).values(task_state=task_state))
        return ""
    try:
        with connection.begin_nested():
            take_over(connection, instances_by(connection, uuids=[uuid]), 0, True)
            server_actions.begin(
                *(connection, _REBOOT, [uuid]),
                request_id=action_log.new_request_id(),
                details={"type": server_actions.HARD},
                by_admin=True,
            )
    except NovaliteError as error:
        list_reason(connection, uuid, str(error))
        return str(error)
    return ""


def arrive(connection: sa.Connection, uuid: str) -> None:
    """Record that a guest runs where the watch brought it."""
    opened = migrations.open_moves(connection, [uuid]).get(uuid)
    if opened is None or opened.reason != migrations.HEALING or opened.status != migrations.POST:
        return
    server_actions.finish(connection, _EVACUATE, [uuid])
    migrations.finish(connection, opened, instance_row(connection, uuid))


def ended(connection: sa.Connection, uuids: t.Iterable[str], error_by_uuid: t.Mapping[str, str]) -> None:
    """Record how the starts of moved guests went. One that failed stays where it is recorded: it may run there."""
    for uuid in uuids:
        error = error_by_uuid.get(uuid)
        server_actions.finish(connection, _EVACUATE, [uuid], error=error)
        list_reason(connection, uuid, error or "")


def plan_of_moved(
    connection: sa.Connection, state_dir: str, uuids: t.Iterable[str], alive: t.Container[str]
) -> JsonObject:
    """Return what hosts have to do for moved guests to run there, as the step `server_migration` returns it. No host
    that is not `alive` has a part in it."""
    moved = set(uuids)
    try:
        with connection.begin_nested():
            return _plan_of_moved(connection, state_dir, moved, alive)
    except NovaliteError:  # one that cannot be planned keeps nobody else from running
        planned = {uuid for uuid in sorted(moved) if _can_be_planned(connection, state_dir, uuid, alive)}
        return _plan_of_moved(connection, state_dir, planned, alive)


def _can_be_planned(connection: sa.Connection, state_dir: str, uuid: str, alive: t.Container[str]) -> bool:
    """Tell whether a guest's host can be told what to do for it; what keeps from that is shown with the guest."""
    try:
        with connection.begin_nested():
            _plan_of_moved(connection, state_dir, {uuid}, alive)
    except NovaliteError as error:
        ended(connection, [uuid], {uuid: str(error)})
        return False
    return True


def _plan_of_moved(
    connection: sa.Connection, state_dir: str, uuids: t.Collection[str], alive: t.Container[str]
) -> JsonObject:
    servers = {server["uuid"]: server for server in instances_by(connection, uuids=uuids)}
    opened = migrations.open_moves(connection, servers)
    moves = [move_of(_EVACUATE, server, opened[uuid], []) for uuid, server in servers.items() if uuid in opened]
    params: JsonObject = {"action": _EVACUATE, "state_dir": state_dir}
    plans = host_plans.plans(connection, params, moves, {move["uuid"]: servers[move["uuid"]] for move in moves})
    plans = {host: plan for host, plan in plans.items() if host in alive}
    secret = any(plan.get("build", {}).get("secret") for plan in plans.values())
    return {"moves": moves, "hosts": plans, "targets": targets.of_moves(plans, _EVACUATE), "secret": secret}


def plan_to_give_up(
    connection: sa.Connection, state_dir: str, uuids_by_host: t.Mapping[str, t.Collection[str]]
) -> dict[str, JsonObject]:
    """Return, by host, what is to be taken from it of guests that others got, as the role `reclaim` takes it."""
    leaving: list[Instance] = []
    for host, uuids in uuids_by_host.items():
        leaving += [
            {**server, "host": host} for server in instances_by(connection, uuids=uuids) if server["host"] != host
        ]
    if not leaving:
        return {}
    plans = plan_hosts(connection, state_dir, leaving=leaving, moving=True).rendered()
    return {host: dict(plan["remove"]) for host, plan in plans.items() if host in uuids_by_host and "remove" in plan}
