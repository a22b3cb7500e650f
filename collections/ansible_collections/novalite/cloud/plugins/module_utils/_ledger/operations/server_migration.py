# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_migration`: what moves, from where to where, the plans of both hosts, and how it went.

Three calls make a move. `begin` takes the instances for it, claims room, and says what each host has to do. `commit`,
when all of a guest's disks are on its destination, says that it lives there. `end` says how it came up, and takes the
commit back for those that did not, while their disks on the source are still whole.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.rows import MoveRow
from ..._plan import targets
from ..compute import migrations, server_actions, server_requests
from ..compute.named_servers import servers_named, states_of, take_over, under_way, with_names
from ..migration import host_plans, outcomes
from ..migration.begin import begin_move
from ..migration.choices import away_from, is_settled, move_of, place
from ..migration.outcomes import error_of
from ..placement.compute_hosts import record
from ..queries import actions, lookups
from ..queries.views import flavor_of, instances_by


def server_migration(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation `server_migration`: see the module's documentation for `params` and what is returned."""
    if params["state"] == "begin":
        return _begin(connection, params)
    if params["state"] in ("interrupted", "resolve"):
        return outcomes.resolve_interrupted(connection, params)
    return outcomes.record(connection, params)


def _begin(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    action = params["action"]
    now = migrations.now_(connection)
    seen = params.get("compute_hosts") or []
    if seen:
        record(connection, seen, now)
    evidence = seen if action == "evacuate" else []
    result: JsonObject = {"changed": False, "moves": [], "settled": [], "nothing_to_do": [], "errors": [], "hosts": {}}
    if params.get("uuids") is not None:
        going, result["nothing_to_do"] = under_way(connection, action, params["uuids"])
    else:
        going = _begun_here(connection, params, result)
    before = _states(going)
    placed = []
    for server in going:
        move = migrations.open_moves(connection, [server["uuid"]]).get(server["uuid"])
        message = "there is no record of its move" if move is None else _alive(server["host"] or "", evidence)
        if message is not None:
            server_actions.finish(connection, action, [server["uuid"]], error=message)
            result["errors"].append(error_of(server, message))
        elif move is not None and (action in migrations.ENDS or _placed(connection, server, move, params, result)):
            placed.append((server, migrations.open_moves(connection, [server["uuid"]])[server["uuid"]]))
    if _named(params) and result["errors"]:
        raise NovaliteError("; ".join(error["message"] for error in result["errors"]))
    why: dict[str, list[str]] = result.get("explanations", {})
    result["moves"] = [move_of(action, server, move, why.get(server["uuid"], [])) for server, move in placed]
    result["hosts"] = host_plans.plans(
        connection, params, result["moves"], {move["uuid"]: move for move, _move in placed}
    )
    result["targets"] = targets.of_moves(result["hosts"], action)
    # an evacuated guest is told anew what only it may know: user data, files, the hash of its password
    result["secret"] = any(plan.get("build", {}).get("secret") for plan in result["hosts"].values())
    result["changed"] = bool(going)
    if going:
        after = _states(instances_by(connection, uuids=[move["uuid"] for move in going]))
        for move in result["moves"]:
            after[move["name"]] |= {"destination": move["to_host"], "flavor": move["to_flavor"]["name"]}
            after[move["name"]] |= {"why": move["why"]} if move["why"] else {}
        result["diff"] = {"before": before, "after": after}
    return result


def _alive(host: str, seen: t.Iterable[JsonMapping]) -> str | None:
    """Return why the host that is to be evacuated may be alive, by what hosts were `seen` to be; None when nothing
    speaks for it. What answers in the place of another host may be this one: two lines of an inventory were swapped."""
    for other in seen:
        if other["up"] and other["name"] == host:
            return f"host {host} is alive: it answers"
        if other.get("refused_host") and other["name"] != host:
            return f"host {host} may be alive under another name: {other['down_reason']}"
    return None


def _begun_here(connection: sa.Connection, params: JsonMapping, result: JsonObject) -> list[Instance]:
    """Begin the action on the chosen servers, and return them; one that is already as it shall be is left alone."""
    action = params["action"]
    entry_by_name = _entry_by_name(params)
    if _named(params):
        servers = servers_named(connection, params.get("project"), list(entry_by_name))
    else:
        servers = _chosen(connection, params)
    take_over(connection, servers, params.get("action_timeout"), bool(params.get("takeover")))
    servers = instances_by(connection, uuids=[server["uuid"] for server in servers])
    going = []
    for server in servers:
        wish = entry_by_name.get(server["name"], {})
        flavor = wish.get("flavor") or params.get("flavor")
        host = wish.get("host") or params.get("host") or params.get("returning_to")
        if is_settled(connection, action, server, flavor, host):
            result["settled"].append(server)
            continue
        new = flavor_of(lookups.flavor_by_name(connection, flavor)) if action == "resize" and flavor else None
        request_id = result.setdefault("request_id", actions.new_request_id())
        try:
            going += begin_move(
                connection,
                action,
                [server["uuid"]],
                request_id=request_id,
                flavor=new,
                host=host,
                reason=params.get("reason"),
            )
        except (ConflictError, NotFoundError) as error:
            raise type(error)(with_names(str(error), [server])) from None
    return going


def _named(params: JsonMapping) -> bool:
    """Tell whether a person names the servers. Errors are then raised at once, and nothing is begun."""
    return all(params.get(option) is None for option in ("uuids", "from_host", "returning_to", "begin_uuids"))


def _chosen(connection: sa.Connection, params: JsonMapping) -> list[Instance]:
    """List the servers of any project that meet the call's conditions, and with which the action can begin at all."""
    if params.get("begin_uuids") is not None:
        return instances_by(connection, uuids=params["begin_uuids"])
    if params.get("from_host") is not None:
        servers = instances_by(connection, hosts=[params["from_host"]])
    else:
        servers = away_from(connection, params["returning_to"])
    allowed = set(params.get("vm_states") or ()) or server_actions.action_of(params["action"]).rule.vm_states or ()
    return [server for server in servers if server["vm_state"] in allowed]


def _entry_by_name(params: JsonMapping) -> dict[str, JsonObject]:
    """Name -> what was said of it, for all that are named."""
    entries = [server if isinstance(server, dict) else {"name": server} for server in params.get("servers") or []]
    return {name: entry for entry in entries for name in server_requests.expand_names([entry])}


def _states(instances: t.Sequence[Instance]) -> dict[str, JsonObject]:
    states = states_of(instances)
    return {server["name"]: states[server["name"]] | {"flavor": server["flavor"]["name"]} for server in instances}


def _placed(
    connection: sa.Connection, server: Instance, move: MoveRow, params: JsonMapping, result: JsonObject
) -> bool:
    """Place the instance; returns whether it has a host to go to. If there is none, the move is over."""
    if move.status != migrations.QUEUED:
        return True  # placed before
    destination = place(connection, server, move, params)
    if destination.host is None:
        server_actions.finish(connection, params["action"], [server["uuid"]], error=destination.message)
        result["errors"].append(error_of(server, destination.message))
        return False
    result.setdefault("explanations", {})[server["uuid"]] = list(destination.lines)
    return True
