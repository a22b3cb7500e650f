# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_move`: what moves, from where to where, the plans of both hosts, and how it went.

Three calls make a move. `begin` takes the instances for it, claims room, and says what each host has to do. `commit`,
when all of a guest's disks are on its destination, says that it lives there. `end` says how it came up, and takes the
commit back for those that did not, while their disks on the source are still whole.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._plan import targets
from ..compute import moves, power_states, server_actions, server_requests
from ..compute.named_servers import servers_named, take_over
from ..db.tables import instance
from ..db.tables_moves import migration
from ..migration import move_ends, move_plans
from ..migration.move_begin import begin_move, local_volume
from ..migration.state_dirs import live_destinations
from ..placement import move_claims
from ..placement.compute_hosts import record
from ..queries import actions, lookups
from ..queries.views import Instance, flavor_of, instances_by

Params = t.Mapping[str, t.Any]
Move = dict[str, t.Any]


def server_move(connection: sa.Connection, params: Params) -> dict[str, t.Any]:
    """Operation `server_move`: see the module's documentation for `params` and what is returned."""
    if params["state"] == "begin":
        return _begin(connection, params)
    if params["state"] in ("interrupted", "resolve"):
        return move_ends.resolve(connection, params)
    before = params.get("before") or {}
    params = {**params, "moves": before.get("moves") or params.get("moves") or []}
    params["moves"] = _knowing(params)
    record = _commit if params["state"] == "commit" else _end
    return _so_far(before, record(connection, params))


# --- begin ----------------------------------------------------------------------------------------------------------


def _begin(connection: sa.Connection, params: Params) -> dict[str, t.Any]:
    action = params["action"]
    now = moves.now_()
    seen = params.get("compute_hosts") or []
    if seen:
        record(connection, seen, now)
    alive = {one["name"] for one in seen if one["up"]} if action == "evacuate" else set()
    result: dict[str, t.Any] = {"changed": False, "moves": [], "settled": [], "skipped": [], "errors": [], "hosts": {}}
    if params.get("uuids") is not None:
        going = _begun_before(connection, params, result)
    else:
        going = _begun_here(connection, params, result)
    before = _states(going)
    placed = []
    for one in going:
        move = moves.open_moves(connection, [one["uuid"]]).get(one["uuid"])
        if move is None or one["host"] in alive:
            message = "there is no record of its move" if move is None else f"host {one['host']} is alive: it answers"
            server_actions.finish(connection, action, [one["uuid"]], error=message)
            result["errors"].append(_error(one, message))
        elif action in moves.ENDS or _place(connection, one, move, params, result):
            placed.append((one, moves.open_moves(connection, [one["uuid"]])[one["uuid"]]))
    if _named(params) and result["errors"]:
        raise NovaliteError("; ".join(error["message"] for error in result["errors"]))
    result["moves"] = [_move(action, one, move) for one, move in placed]
    result["hosts"] = move_plans.plans(connection, params, result["moves"], placed)
    result["targets"] = targets.of_moves(result["hosts"], action)
    # an evacuated guest is told anew what only it may know: user data, files, the hash of its password
    result["secret"] = any(plan.get("build", {}).get("secret") for plan in result["hosts"].values())
    result["changed"] = bool(going)
    if going:
        after = {**_states(instances_by(connection, uuids=[one["uuid"] for one in going]))}
        for move in result["moves"]:
            after[move["name"]] |= {"destination": move["to_host"], "flavor": move["to_flavor"]["name"]}
            after[move["name"]] |= {"why": move["why"]} if move["why"] else {}
        result["diff"] = {"before": before, "after": after}
    return result


def _begun_before(connection: sa.Connection, params: Params, result: dict[str, t.Any]) -> list[Instance]:
    """Those on which the API began it; the others are skipped."""
    states = server_actions.task_states(params["action"])
    found = {server["uuid"]: server for server in instances_by(connection, uuids=params["uuids"])}
    going = []
    for uuid in dict.fromkeys(params["uuids"]):
        one = found.get(uuid)
        if one is None:
            result["skipped"].append({"uuid": uuid, "reason": "there is no such instance any more"})
        elif one["task_state"] not in states:
            reason = f"'{params['action']}' is not under way: it is in vm_state {one['vm_state']}"
            result["skipped"].append({"uuid": uuid, "reason": reason})
        else:
            going.append(one)
    return going


def _begun_here(connection: sa.Connection, params: Params, result: dict[str, t.Any]) -> list[Instance]:
    """Those that are named, but for what is already as it shall be."""
    action = params["action"]
    asked = _asked(params)
    if _named(params):
        found = servers_named(connection, params.get("project"), list(asked))
    else:
        found = _chosen(connection, params)
    take_over(connection, found, params.get("action_timeout"), bool(params.get("takeover")))
    found = instances_by(connection, uuids=[server["uuid"] for server in found])
    going = []
    for one in found:
        wish = asked.get(one["name"], {})
        flavor = wish.get("flavor") or params.get("flavor")
        host = wish.get("host") or params.get("host") or params.get("returning_to")
        if _settled(connection, action, one, flavor, host):
            result["settled"].append(one)
            continue
        new = flavor_of(lookups.flavor_by_name(connection, flavor)) if action == "resize" and flavor else None
        request_id = result.setdefault("request_id", actions.new_request_id())
        try:
            going += begin_move(
                connection,
                action,
                [one["uuid"]],
                request_id=request_id,
                flavor=new,
                host=host,
                reason=params.get("reason"),
            )
        except (ConflictError, NotFoundError) as error:
            named = str(error).replace(one["uuid"], f"{one['uuid']} ('{one['name']}')")
            raise type(error)(named) from None
    return going


def _named(params: Params) -> bool:
    """Whether a person names the servers, and hears at once of what cannot be: nothing was begun then."""
    return all(params.get(one) is None for one in ("uuids", "from_host", "returning_to", "begin_uuids"))


def _chosen(connection: sa.Connection, params: Params) -> list[Instance]:
    """Those of any project that meet the call's conditions, and with which the action can begin at all."""
    if params.get("begin_uuids") is not None:
        return instances_by(connection, uuids=params["begin_uuids"])
    if params.get("from_host") is not None:
        found = instances_by(connection, hosts=[params["from_host"]])
    else:
        found = _away(connection, params["returning_to"])
    allowed = set(params.get("vm_states") or ()) or server_actions.action_of(params["action"]).allowed
    return [one for one in found if one["vm_state"] in allowed]


def _away(connection: sa.Connection, host: str) -> list[Instance]:
    """Those that left `host` for its maintenance, and have not moved since."""
    last: dict[str, t.Any] = {}
    for row in connection.execute(sa.select(migration).order_by(migration.c.id)):
        if row.status not in (moves.ERROR, moves.REVERTED, "cancelled"):
            last[row.instance_uuid] = row
    gone = {
        uuid: row.dest_host
        for uuid, row in last.items()
        if (row.reason, row.source_host) == (moves.MAINTENANCE, host)
        and row.status in (moves.COMPLETED, moves.CONFIRMED)
    }
    return [server for server in instances_by(connection, uuids=gone) if server["host"] == gone[server["uuid"]]]


def _asked(params: Params) -> dict[str, dict[str, t.Any]]:
    """Name -> what was said of it, for all that are named."""
    entries = [server if isinstance(server, dict) else {"name": server} for server in params.get("servers") or []]
    return {name: entry for entry in entries for name in server_requests.expand_names([entry])}


def _settled(connection: sa.Connection, action: str, one: Instance, flavor: str | None, host: str | None) -> bool:
    """Whether the instance is already what `action` would make it."""
    if one["task_state"] is not None:
        return False
    move = moves.open_moves(connection, [one["uuid"]]).get(one["uuid"])
    waits = one["vm_state"] == "resized" and move is not None
    if action == "resize":
        return one["flavor"]["name"] == flavor and (waits or one["vm_state"] in ("active", "stopped"))
    if action == "migrate":
        return bool(waits and host in (None, one["host"])) or (host is not None and one["host"] == host)
    if action in ("live-migration", "evacuate"):
        return host is not None and one["host"] == host
    last = connection.execute(
        sa.select(migration.c.status)
        .where(migration.c.instance_uuid == one["uuid"], migration.c.type.in_(["resize", "migration"]))
        .order_by(migration.c.id.desc())
    ).scalar()
    return not waits and last == (moves.CONFIRMED if action == "confirmResize" else moves.REVERTED)


def _place(connection: sa.Connection, one: Instance, move: t.Any, params: Params, result: dict[str, t.Any]) -> bool:
    """Find a host for it and claim it there, unless that was done before. False: there is none, and it is over."""
    if move.status != moves.QUEUED:
        return True
    same_host = params.get("same_host") or ("allowed" if move.type == "resize" else "never")
    if move.type == "resize" and local_volume(connection, one["uuid"]) is not None:
        same_host = "only"
    limit_to = params.get("limit_to")
    try:
        if move.type == "live-migration":
            limit_to = live_destinations(connection, one["host"], move.dest_host, limit_to)
        place = move_claims.place(
            connection,
            one,
            move.new_flavor,
            host=move.dest_host,
            same_host=same_host,
            options=params.get("options"),
            down_time=params.get("service_down_time"),
            limit_to=limit_to,
        )
    except NovaliteError as error:
        place = move_claims.Place(None, str(error), ())
    if place.host is None:
        server_actions.finish(connection, params["action"], [one["uuid"]], error=place.message)
        result["errors"].append(_error(one, place.message))
        return False
    status = moves.RUNNING if move.type == "live-migration" else moves.MIGRATING
    connection.execute(
        sa.update(migration)
        .where(migration.c.id == move.id)
        .values(status=status, dest_host=place.host, updated_at=moves.now_())
    )
    result.setdefault("explanations", {})[one["uuid"]] = list(place.lines)
    one["why"] = list(place.lines)
    return True


def _move(action: str, one: Instance, move: t.Any) -> Move:
    """One move as the playbook passes it on: from where the guest is now to where it is to be afterwards."""
    back = action == "revertResize"
    ends = [(move.source_host, move.old_flavor), (move.dest_host, move.new_flavor)]
    (from_host, from_flavor), (to_host, to_flavor) = reversed(ends) if back else ends
    state = move.old_vm_state
    return {
        "uuid": one["uuid"],
        "name": one["name"],
        "domain_name": one["domain_name"],
        "id": move.uuid,
        "action": action,
        "from_host": from_host,
        "to_host": to_host,
        "from_flavor": from_flavor,
        "to_flavor": to_flavor,
        "same_host": move.source_host == move.dest_host,
        "starts": state in ("active", "paused", "error") if action == "evacuate" else state in ("active", "paused"),
        "why": one.get("why") or [],
    }


# --- commit and end -------------------------------------------------------------------------------------------------


def _commit(connection: sa.Connection, params: Params) -> dict[str, t.Any]:
    """Those whose disks have arrived belong to their new hosts; for the others it is over."""
    action = params["action"]
    said = _said(params)
    found = moves.open_moves(connection, [one["uuid"] for one in params["moves"]])
    (task_state,) = server_actions.task_states(action)
    done: list[str] = []
    errors: list[dict[str, str]] = []
    for one in params["moves"]:
        error = said[one["uuid"]]
        move = found.get(one["uuid"])
        if move is None:
            errors.append(_error(one, "its move was ended by another run"))
        elif error is not None:
            server_actions.finish(connection, action, [one["uuid"]], error=error)
            errors.append(_error(one, error))
        elif (
            moves.take_back(connection, move, task_state)
            if action == "revertResize"
            else moves.commit(connection, move, task_state)
        ):
            done.append(one["uuid"])
        else:
            errors.append(_error(one, "it is being deleted, or its move was ended by another run"))
    return _result(connection, params, done, errors)


def _end(connection: sa.Connection, params: Params) -> dict[str, t.Any]:
    """How it went. A guest that did not come up on its destination goes back to where its disks are whole."""
    action = params["action"]
    said = _said(params)
    power = {
        row["uuid"]: power_states.POWER_STATES.get(row.get("state") or "")
        for outcome in params.get("outcomes") or []
        for row in outcome.get("domains") or []
    }
    found = moves.open_moves(connection, said)
    rows = {row.uuid: row for row in connection.execute(sa.select(instance).where(instance.c.uuid.in_(list(said))))}
    done: list[str] = []
    errors: list[dict[str, str]] = []
    for one in params["moves"]:
        uuid, error = one["uuid"], said[one["uuid"]]
        move, row = found.get(uuid), rows.get(uuid)
        if move is None or row is None or row.deleted or row.task_state not in server_actions.task_states(action):
            errors.append(_error(one, "it is being deleted, or its move was ended by another run"))
            continue
        if error is not None:
            errors.append(_error(one, error))
            _failed(connection, action, move, row, error, one["known"])
            continue
        done.append(uuid)
        server_actions.finish(connection, action, [uuid], power_state=power.get(uuid))
        if action == "confirmResize":
            moves.settle_confirm(connection, move)
            runs = power_states.runs_while_waiting(row.power_state, move.old_vm_state)
            _write(connection, uuid, {"vm_state": "active" if runs else "stopped"})
        elif action == "revertResize":
            moves.settle_revert(connection, move)
            _write(connection, uuid, {"vm_state": move.old_vm_state, "power_state": _power(one)})
        else:
            if action == "live-migration" and row.host == move.source_host:
                _write(connection, uuid, {"host": move.dest_host})
            moves.finish(connection, move, row)
            if action == "evacuate":
                state = "active" if one["starts"] else "stopped"
                _write(connection, uuid, {"vm_state": state, "power_state": _power(one), "fault": None})
            elif action != "live-migration":
                _write(connection, uuid, {"power_state": _power(one)})
    return _result(connection, params, done, errors)


def _failed(connection: sa.Connection, action: str, move: t.Any, row: t.Any, error: str, known: bool) -> None:
    if action in ("resize", "migrate", "evacuate") and move.status == moves.POST:
        if moves.take_back(connection, move, row.task_state):
            moves.undo(connection, move, row, error)
            if move.source_host != move.dest_host:
                moves.give_up(connection, move, move.dest_host)
    elif action == "live-migration" and known:  # otherwise reconcile.yml asks both hosts
        moves.undo(connection, move, row, error)
    server_actions.finish(connection, action, [row.uuid], error=error)


def _power(one: Move) -> int:
    return server_actions.RUNNING if one["starts"] else server_actions.SHUTDOWN


def _write(connection: sa.Connection, uuid: str, values: dict[str, t.Any]) -> None:
    connection.execute(sa.update(instance).where(instance.c.uuid == uuid, instance.c.deleted == 0).values(**values))


def _said(params: Params) -> dict[str, str | None]:
    """What was said of each move: None when each host that has a part in it did its part. Silence is no success."""
    outcomes = {one["host"]: one for one in params.get("outcomes") or []}
    ends = ("from_host", "to_host") if params.get("parts") is None else params["parts"]
    said: dict[str, str | None] = {}
    for move in params["moves"]:
        parts = [move[end] for end in ends]
        said[move["uuid"]] = None
        for host in dict.fromkeys(parts):
            outcome = outcomes.get(host)
            if outcome is None:
                said[move["uuid"]] = f"host {host} did not answer"
                break
            # of a guest that moves while it runs, only a word about itself says that it has
            live = params["action"] == "live-migration"
            if outcome.get("error") if not live else move["uuid"] not in (outcome.get("done") or []):
                said[move["uuid"]] = str(outcome.get("error") or f"host {host} did not say what became of it")
                break
    return said


def _knowing(params: Params) -> list[Move]:
    """The moves, each with `known`: whether its guest is where it was, should it not have moved."""
    outcomes = {outcome["host"]: outcome for outcome in params.get("outcomes") or []}
    return [
        {
            **move,
            "known": params["action"] != "live-migration"
            or move["uuid"] in (outcomes.get(move["from_host"], {}).get("here") or []),
        }
        for move in params["moves"]
    ]


def _result(
    connection: sa.Connection, params: Params, done: list[str], errors: list[dict[str, str]]
) -> dict[str, t.Any]:
    failed = {error["uuid"] for error in errors}
    return {
        "changed": bool(done or errors),
        "done": done,
        "moves": [move for move in params["moves"] if move["uuid"] not in failed],
        "lost": [move for move in params["moves"] if move["uuid"] in failed],
        "errors": errors,
        "instances": instances_by(connection, uuids=[*done, *failed]),
    }


def _so_far(before: t.Mapping[str, t.Any], result: dict[str, t.Any]) -> dict[str, t.Any]:
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


def _states(instances: t.Iterable[Instance]) -> dict[str, dict[str, t.Any]]:
    return {
        server["name"]: {field: server[field] for field in ("vm_state", "task_state", "power_state", "host")}
        | {"flavor": server["flavor"]["name"]}
        for server in instances
    }


def _error(one: t.Mapping[str, t.Any], message: str) -> dict[str, str]:
    named = message if f"'{one['name']}'" in message else f"'{one['name']}': {message}"
    return {"uuid": one["uuid"], "name": one["name"], "message": named}
