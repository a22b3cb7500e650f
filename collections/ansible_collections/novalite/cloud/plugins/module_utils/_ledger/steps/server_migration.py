# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_migration`: what moves, from where to where, the plans of both hosts, and how it went.

Three calls make a move. `begin` takes the instances for it, claims room, and says what each host has to do. `commit`,
when all of a guest's disks are on its destination, says that it lives there. `end` says how it came up, and takes the
commit back for those that did not, while their disks on the source are still whole.

The steps on the controller of everything that gives an instance another host or another size. While a move is open, the
instance has a claim on both hosts. Which of them it belongs to changes in one transaction, when all of its disks have
arrived.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._model.rows import MoveRow
from ..._plan import targets
from ..._rules import server_requests
from ..compute import live_resize, migrations, server_actions
from ..compute.named_servers import servers_named, states_of, take_over, under_way, with_names
from ..instances import actions
from ..migration import host_plans, outcomes
from ..migration.choices import away_from, is_settled, move_of, place
from ..migration.outcomes import error_of
from ..operations import servers as operations
from ..operations.call import by_playbook
from ..placement.compute_hosts import record
from ..queries import lookups
from ..queries.compute.views import flavor_of, instances_by

FRAGMENTS = ("ledger.project", "state_dir")
ARGUMENT_SPEC = {
    # `begin` takes the instances for `action`, claims room for them, and returns the plans of their hosts. `commit`
    # says of those of `moves` whose disks have arrived, that their new hosts have them. `end` records how it went. What
    # did not come up on its destination belongs to its source again. `interrupted` asks for live migrations that were
    # cut off, of which only their hosts know how they ended. `resolve` records what the hosts said, in `outcomes`.
    "state": {"type": "str", "choices": ["begin", "commit", "end", "interrupted", "resolve"], "default": "begin"},
    "action": {
        "type": "str",
        "required": True,
        "choices": ["resize", "migrate", "confirmResize", "revertResize", "live-migration", "evacuate"],
    },
    # The servers by name, whose move begins here. Each item is a name, or a dictionary of `name` and `count`, which may
    # have its own `flavor` and `host`.
    "servers": {"type": "list", "elements": "raw"},
    # Instances of any project, whose move was begun before, by the REST API.
    "uuids": {"type": "list", "elements": "str"},
    # Move all instances of this compute host, of whatever projects. With `interrupted`, list only moves from or to it,
    # also those of runs that do not look dead: a person says that they are.
    "from_host": {"type": "str"},
    # Bring back to this compute host the instances that left it for its maintenance.
    "returning_to": {"type": "str"},
    # Instances of any project, whose move begins here.
    "begin_uuids": {"type": "list", "elements": "str"},
    # The same, each UUID with the compute host to move it to.
    "destinations": {"type": "dict"},
    # With `from_host` and `returning_to`, the states of the instances that this is about.
    "vm_states": {"type": "list", "elements": "str"},
    # Name of the flavor to resize to.
    "flavor": {"type": "str"},
    # The compute host to move to. Filters and claims hold for it, too. Left out, the scheduler chooses.
    "host": {"type": "str"},
    # Whether the instance's own host may be chosen for a resize, `allowed` when no other can have it.
    "same_host": {"type": "str", "choices": ["allowed", "never", "only"]},
    # Names of the only compute hosts to consider. All that the ledger knows, when left out.
    "limit_to": {"type": "list", "elements": "str"},
    # Why, kept with the move. `maintenance` is what `host_restore.yml` takes back.
    "reason": {"type": "str"},
    # What `compute_host` found out just now.
    "compute_hosts": {"type": "list", "elements": "dict", "default": []},
    # Options of the scheduler, as `scheduler` takes them.
    "options": {"type": "dict", "default": {}},
    # Seconds after which a compute host that was not seen counts as down.
    "service_down_time": {"type": "int"},
    # Begin also where another action is under way. Only say so when the run that did it is dead.
    "takeover": {"type": "bool", "default": False},
    # Seconds without a sign of life, after which another run's action counts as dead.
    "action_timeout": {"type": "int", "default": 600},
    # With `commit` and `end`, `moves` of the step before.
    "moves": {"type": "list", "elements": "dict", "default": []},
    # The same, as the result of the step before, from which `moves`, `targets`, `lost` and `failures` are taken. What
    # is returned has the last two of both steps.
    "before": {"type": "dict", "default": {}},
    # The ends of each move that have to have said that all is well.
    "parts": {
        "type": "list",
        "elements": "str",
        "choices": ["from_host", "to_host"],
        "default": ["from_host", "to_host"],
    },
    # How it went, once for each host. One that said nothing failed.
    "outcomes": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            # Name of the compute host.
            "host": {"type": "str", "required": True},
            # Why it failed, or null.
            "error": {"type": "str"},
            # UUIDs of the guests that moved while they ran.
            "done": {"type": "list", "elements": "str", "default": []},
            # UUIDs of those that did not, and of which the host knows that they run on it.
            "here": {"type": "list", "elements": "str", "default": []},
            # What became of the domains, `uuid` and `state`.
            "domains": {"type": "list", "elements": "dict", "default": []},
        },
    },
}
SPEC_RULES = {"mutually_exclusive": [("servers", "uuids", "from_host", "returning_to", "begin_uuids", "destinations")]}


def server_migration(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `moves`: what moves, from where to where
    * `settled`: those of `servers` that are already as `action` would make them (with `begin`)
    * `nothing_to_do`: those of `uuids` on which `action` is not under way, each with the `reason` (with `begin`)
    * `hosts`: what each compute host has to do, by its name (with `begin` and `interrupted`)
    * `targets`: the hosts of each play. For each step of the role `move` those that take it, and as `peers`, those that
      are told afterwards; `hosts` is all of `hosts`, and `controller` `localhost` if there are any. The steps
      `dest_rollback` and `restore` have hosts when something is lost (success, but for `resolve`)
    * `done`: UUIDs of the instances for which it went well (with `commit` and `end`)
    * `lost`: those of `moves` for which it did not, in this step and in those before it (with `commit` and `end`)
    * `lost_uuids`: UUIDs of `lost` (with `commit` and `end`)
    * `lost_here`: those of `lost_uuids` that are known to be where they were. Of the others only their hosts can tell
      (with `commit` and `end`)
    * `unused`: what of networks no other instance uses on each host now, by its name. `leave` is of those that are gone
      from there, `build` of those that did not arrive. It takes the place of the same in `hosts`, which is older (with
      `end`)
    * `errors`: why, for each that failed, `uuid`, `name` and `message`
    * `failures`: the same, in this step and in those before it (with `commit` and `end`)
    """
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
        host = host or (params.get("destinations") or {}).get(server["uuid"])
        if is_settled(connection, action, server, flavor, host):
            result["settled"].append(server)
            continue
        new = flavor_of(lookups.flavor_by_name(connection, flavor)) if action == "resize" and flavor else None
        call = by_playbook(connection, result.setdefault("request_id", actions.new_request_id()))
        try:
            going += operations.move(
                call, action, [server["uuid"]], flavor=new, host=host, reason=params.get("reason")
            ).instances
        except (ConflictError, NotFoundError) as error:
            raise type(error)(with_names(str(error), [server])) from None
    return going


def _named(params: JsonMapping) -> bool:
    """Tell whether a person names the servers. Errors are then raised at once, and nothing is begun."""
    return all(
        params.get(option) is None for option in ("uuids", "from_host", "returning_to", "begin_uuids", "destinations")
    )


def _chosen(connection: sa.Connection, params: JsonMapping) -> list[Instance]:
    """List the servers of any project that meet the call's conditions, and with which the action can begin at all."""
    chosen = params.get("destinations") if params.get("begin_uuids") is None else params["begin_uuids"]
    if chosen is not None:
        return instances_by(connection, uuids=list(chosen))
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
    lines = [*destination.lines]
    if move.type == "resize" and server["vm_state"] == "active":
        lines.append(live_resize.restart_advice(connection, server, move.new_flavor))
    result.setdefault("explanations", {})[server["uuid"]] = lines
    return True
