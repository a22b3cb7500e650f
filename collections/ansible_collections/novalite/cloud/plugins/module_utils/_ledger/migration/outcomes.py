# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Outcomes of moves: instances whose disks have arrived belong to their new hosts, those that did not come up go back.

Of live migrations that were cut off, both hosts are asked to which libvirtd brought the guest.
"""

from __future__ import annotations

import sqlalchemy as sa

from ..._json import JsonMapping, JsonObject
from ..._model.instance import Error, Instance, Move
from ..._model.rows import InstanceRow, MoveRow
from ..._plan import targets
from ..._rules.records import with_diff
from ..compute import migrations, power_states, server_actions
from ..compute.named_servers import take_over
from ..db.tables import instance
from ..instances.actions import swap
from ..queries.compute.instance_rows import check_known, instance_row, instance_rows
from ..queries.compute.views import instances_by
from . import host_plans

_ALIVE = ("running", "paused", "suspended", "shutting down")
_GONE = "missing"
_LIVE = "live-migration"


def record(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Record the step `commit` or `end` of the moves; `params["before"]` is the result of the step before."""
    before = params.get("before") or {}
    going = _knowing(params, before.get("moves") or params.get("moves") or [])
    check_known(connection, (move["uuid"] for move in going))
    step = _commit if params["state"] == "commit" else _end
    result = _so_far(before, step(connection, params, going))
    if step is _end:
        result["unused"] = host_plans.unused(connection, params["state_dir"], result["moves"], result["lost"])
    return result


def _commit(connection: sa.Connection, params: JsonMapping, going: list[Move]) -> JsonObject:
    """Record the new hosts of the instances whose disks have arrived; for the others, end the action with its error."""
    action = params["action"]
    error_by_uuid = _error_by_uuid(params, going)
    open_moves = migrations.open_moves(connection, [move["uuid"] for move in going])
    (task_state,) = server_actions.task_states(action)
    done: list[str] = []
    errors: list[Error] = []
    for move in going:
        error = error_by_uuid[move["uuid"]]
        opened = open_moves.get(move["uuid"])
        if opened is None:
            errors.append(error_of(move, "its move was ended by another run"))
        elif error is not None:
            server_actions.finish(connection, action, [move["uuid"]], error=error)
            errors.append(error_of(move, error))
        elif (
            migrations.take_back(connection, opened, task_state)
            if action == "revertResize"
            else migrations.commit(connection, opened, task_state)
        ):
            done.append(move["uuid"])
        else:
            errors.append(error_of(move, "it is being deleted, or its move was ended by another run"))
    return _result(connection, going, done, errors)


def _end(connection: sa.Connection, params: JsonMapping, going: list[Move]) -> JsonObject:
    """Record the outcomes. A guest that did not come up on its destination goes back to where its disks are whole."""
    action = params["action"]
    error_by_uuid = _error_by_uuid(params, going)
    power = {
        row["uuid"]: power_states.POWER_STATES.get(row.get("state") or "")
        for outcome in params.get("outcomes") or []
        for row in outcome.get("domains") or []
    }
    open_moves = migrations.open_moves(connection, error_by_uuid)
    rows = {row.uuid: row for row in instance_rows(connection, instance.c.uuid.in_(list(error_by_uuid)))}
    done: list[str] = []
    errors: list[Error] = []
    for move in going:
        uuid, error = move["uuid"], error_by_uuid[move["uuid"]]
        opened, row = open_moves.get(uuid), rows.get(uuid)
        if opened is None or row is None or row.deleted or row.task_state not in server_actions.task_states(action):
            errors.append(error_of(move, "it is being deleted, or its move was ended by another run"))
            continue
        if error is not None:
            errors.append(error_of(move, error))
            _failed(connection, action, opened, row, error, move["known"])
            continue
        done.append(uuid)
        server_actions.finish(connection, action, [uuid], power_state=power.get(uuid))
        if action == "confirmResize":
            migrations.settle(connection, opened, migrations.CONFIRMED)
            runs = power_states.runs_while_waiting(row.power_state, opened.old_vm_state)
            swap(connection, uuid, {"vm_state": "active" if runs else "stopped"})
        elif action == "revertResize":
            migrations.settle(connection, opened, migrations.REVERTED)
            swap(connection, uuid, {"vm_state": opened.old_vm_state, "power_state": _power(move)})
        else:
            if action == "live-migration" and row.host == opened.source_host:
                swap(connection, uuid, {"host": opened.dest_host})
            migrations.finish(connection, opened, row)
            if action == "evacuate":
                state = "active" if move["starts"] else "stopped"
                swap(connection, uuid, {"vm_state": state, "power_state": _power(move), "fault": None})
            elif action != "live-migration":
                swap(connection, uuid, {"power_state": _power(move)})
    return _result(connection, going, done, errors)


def _failed(connection: sa.Connection, action: str, move: MoveRow, row: InstanceRow, error: str, known: bool) -> None:
    if action in ("resize", "migrate", "evacuate") and move.status == migrations.POST:
        if migrations.take_back(connection, move, row.task_state):
            migrations.undo(connection, move, row, error)
            if move.source_host != move.dest_host:
                migrations.give_up(connection, move, move.dest_host)
    elif action == "live-migration" and known:  # otherwise reconcile.yml asks both hosts
        migrations.undo(connection, move, row, error)
    server_actions.finish(connection, action, [row.uuid], error=error)


def _power(move: Move) -> int:
    return server_actions.RUNNING if move["starts"] else server_actions.SHUTDOWN


def _error_by_uuid(params: JsonMapping, going: list[Move]) -> dict[str, str | None]:
    """Return each move's error: None when each host that has a part in it did its part. Silence is no success."""
    outcomes = {outcome["host"]: outcome for outcome in params.get("outcomes") or []}
    ends = ("from_host", "to_host") if params.get("parts") is None else params["parts"]
    error_by_uuid: dict[str, str | None] = {}
    for move in going:
        hosts = {"from_host": move["from_host"], "to_host": move["to_host"]}
        error_by_uuid[move["uuid"]] = None
        for host in dict.fromkeys(hosts[end] for end in ends):
            outcome = outcomes.get(host)
            if outcome is None:
                error_by_uuid[move["uuid"]] = f"host {host} did not answer"
                break
            # of a guest that moves while it runs, only a word about itself says that it has
            live = params["action"] == "live-migration"
            if outcome.get("error") if not live else move["uuid"] not in (outcome.get("done") or []):
                error_by_uuid[move["uuid"]] = str(outcome.get("error") or f"host {host} did not say what became of it")
                break
    return error_by_uuid


def _knowing(params: JsonMapping, going: list[Move]) -> list[Move]:
    """The moves, each with `known`: whether its guest is where it was, should it not have moved."""
    outcomes = {outcome["host"]: outcome for outcome in params.get("outcomes") or []}
    return [
        {
            **move,
            "known": params["action"] != "live-migration"
            or move["uuid"] in (outcomes.get(move["from_host"], {}).get("here") or []),
        }
        for move in going
    ]


def _result(connection: sa.Connection, going: list[Move], done: list[str], errors: list[Error]) -> JsonObject:
    failed = {error["uuid"] for error in errors}
    return {
        "changed": bool(done or errors),
        "done": done,
        "moves": [move for move in going if move["uuid"] not in failed],
        "lost": [move for move in going if move["uuid"] in failed],
        "errors": errors,
        "instances": instances_by(connection, uuids=[*done, *failed]),
    }


def _so_far(before: JsonMapping, result: JsonObject) -> JsonObject:
    """The `result` of a step, with what went wrong in it and in those before it, and who is to undo that."""
    lost = [*(before.get("lost") or ()), *result["lost"]]
    return {
        **result,
        "lost": lost,
        "lost_uuids": [move["uuid"] for move in lost],
        "lost_here": [move["uuid"] for move in lost if move["known"]],
        "failures": [*(before.get("failures") or ()), *result["errors"]],
        "targets": targets.of_lost(before.get("targets") or {}, lost),
    }


def error_of(server_or_move: Instance | Move, message: str) -> Error:
    """The error of an instance, or of its move, with its name in the message."""
    named = message if f"'{server_or_move['name']}'" in message else f"'{server_or_move['name']}': {message}"
    return {"uuid": server_or_move["uuid"], "name": server_or_move["name"], "message": named}


def resolve_interrupted(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Resolve interrupted moves. With the state `interrupted`, return which hosts to ask about which domains; with
    `resolve`, record what they said. `from_host` is for one host's alone, whose runs are dead. Where a host says
    nothing, or both run it, a domain is left as it is, and named in `errors`."""
    running_moves = {
        uuid: move for uuid, move in migrations.open_moves(connection).items() if move.status == migrations.RUNNING
    }
    if (host := params.get("from_host")) is not None:
        live = {uuid: move for uuid, move in running_moves.items() if move.type == _LIVE}
        running_moves = {uuid: move for uuid, move in live.items() if host in (move.source_host, move.dest_host)}
        take_over(connection, instances_by(connection, uuids=running_moves), None, True)
    instances = [server for server in instances_by(connection, uuids=running_moves) if server["task_state"] is None]
    result: JsonObject = {"changed": False, "moves": [], "hosts": {}, "done": [], "lost": [], "errors": []}
    if params["state"] == "interrupted":
        for server in instances:
            for host in (running_moves[server["uuid"]].source_host, running_moves[server["uuid"]].dest_host):
                domain = {"uuid": server["uuid"], "name": server["domain_name"]}
                result["hosts"].setdefault(host, {"domains": []})["domains"].append(domain)
        return {**result, "targets": targets.of_hosts(result["hosts"])}
    domain_states = {
        (outcome["host"], row["uuid"]): row["state"]
        for outcome in params.get("outcomes") or []
        for row in outcome.get("domains") or []
    }
    before, after = {}, {}
    for server in instances:
        move = running_moves[server["uuid"]]
        source, dest = (
            domain_states.get((move.source_host, server["uuid"])),
            domain_states.get((move.dest_host, server["uuid"])),
        )
        if source is None or dest is None:
            host = move.source_host if source is None else move.dest_host
            result["errors"].append(error_of(server, f"host {host} did not say whether it runs there"))
            continue
        if source in _ALIVE and dest in _ALIVE:
            both = f"{move.source_host} and on {move.dest_host}"
            result["errors"].append(error_of(server, f"it runs on {both}: destroy the one that is paused"))
            continue
        arrived = dest in _ALIVE or (source == _GONE and dest != _GONE)
        _settle_interrupted(connection, server, move, arrived)
        result["done"].append(server["uuid"])
        before[server["name"]] = {"host": server["host"], "migration": move.status}
        after[server["name"]] = {"host": move.dest_host if arrived else move.source_host, "migration": "ended"}
    return with_diff({**result, "changed": bool(result["done"])}, before, after)


def _settle_interrupted(connection: sa.Connection, server: Instance, move: MoveRow, arrived: bool) -> None:
    row = instance_row(connection, server["uuid"])
    if not arrived:
        migrations.undo(connection, move, row, "it was cut off, and the guest stayed where it was")
        return
    swap(connection, server["uuid"], {"host": move.dest_host, "updated_at": migrations.now_(connection)})
    migrations.finish(connection, move, row)
