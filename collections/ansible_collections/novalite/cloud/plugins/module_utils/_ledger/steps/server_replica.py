# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_replica`: have servers' disks copied to a second host, begin what is due, and record how it went."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._plan import targets
from ..._plan.host_plan import Plan
from ..._rules import server_requests
from ..._rules.records import with_diff
from ..compute import server_actions
from ..compute.named_servers import OUTCOMES, servers_named, take_over, under_way, with_names
from ..instances import actions
from ..migration import host_plans
from ..migration.outcomes import error_of
from ..operations import server_replicas
from ..operations.call import by_playbook
from ..queries.compute.views import instances_by
from ..queries.volumes import replica_records
from ..volumes import replicas
from ..volumes.replicas import REPLICATE

FRAGMENTS = ("ledger.project", "state_dir")
ARGUMENT_SPEC = {
    # `present` has the disks of `servers` copied, `absent` no more. `begin` takes copies now, of `servers`, of `uuids`,
    # whose action the API began, or, without either, of all servers that are due. `end` records how it went.
    "state": {"type": "str", "choices": ["present", "absent", "begin", "end"], "required": True},
    # The servers by name. Each item is a name, or a dictionary of `name` and `count`.
    "servers": {"type": "list", "elements": "raw"},
    "uuids": {"type": "list", "elements": "str"},
    # Time between two copies, such as `5m` or `hourly`.
    "every": {"type": "str", "default": "hourly"},
    # The host that gets the copies. Left out, the scheduler chooses.
    "host": {"type": "str"},
    # Begin also where another action is under way. Only say so when the run that did it is dead.
    "takeover": {"type": "bool", "default": False},
    # Seconds without a sign of life, after which another run's action counts as dead.
    "action_timeout": {"type": "int", "default": 600},
    # `moves` of `begin`, for `end`.
    "moves": {"type": "list", "elements": "dict", "default": []},
    # How it went, once for each host: `results` has an `error` for what failed, and the `record` of each copy that is
    # complete on its second host, and those that are `removed`; `silent` says that the host did not answer.
    "outcomes": {**OUTCOMES, "options": {**OUTCOMES["options"], "silent": {"type": "bool", "default": False}}},
}
SPEC_RULES = {"mutually_exclusive": [("servers", "uuids")]}


def server_replica(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `replicas`: the copies of all servers, as they are then (with `present` and `absent`)
    * `moves`: the copies that are taken, each from where to where (with `begin`)
    * `left`: the servers of which no copy was begun although it is due, `uuid`, `name` and `reason` (with `begin`)
    * `hosts`: what each compute host has to do, by its name; `targets`: the hosts of each play (with `begin`)
    * `errors`: why, for each copy that failed, `uuid`, `name` and `message` (with `end`)
    """
    work = {"present": _ensure, "absent": _ensure, "begin": _begin, "end": _end}
    return work[params["state"]](connection, params)


def _named(connection: sa.Connection, params: JsonMapping) -> list[Instance]:
    entries = [entry if isinstance(entry, dict) else {"name": entry} for entry in params.get("servers") or []]
    return servers_named(connection, params.get("project"), server_requests.expand_names(entries))


def _ensure(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    call = by_playbook(connection)
    before, changed = _shown(connection), False
    for server in _named(connection, params):
        if params["state"] == "absent":
            changed = server_replicas.remove(call, server) or changed
        else:
            changed = server_replicas.ensure(call, server, params["every"], params.get("host")) or changed
    after = _shown(connection)
    return with_diff({"changed": changed, "replicas": list(after.values())}, before, after)


def _shown(connection: sa.Connection) -> dict[str, JsonObject]:
    return {
        each.instance_uuid: {"server": each.server, "every": each.every, "host": each.host, "next_host": each.next_host}
        for each in replica_records.replicas_by(connection)
    }


def _begin(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    call = by_playbook(connection)
    left: list[JsonObject] = []
    if params.get("uuids") is not None:
        going, left = under_way(connection, REPLICATE, params["uuids"])
    elif params.get("servers") is not None:
        named = _named(connection, params)
        take_over(connection, named, params.get("action_timeout"), bool(params.get("takeover")))
        try:
            going = server_replicas.begin(call, [server["uuid"] for server in named]).instances
        except (ConflictError, NotFoundError) as error:
            raise type(error)(with_names(str(error), named)) from None
    else:
        begun = server_replicas.begin_due(call)
        going, left = instances_by(connection, uuids=begun["begun"]), begun["left"]
    endpoints, directories = host_plans.places(connection)
    details = actions.open_details(connection, REPLICATE, [server["uuid"] for server in going])
    moves = _moves(connection, going, details, endpoints)
    server_replicas.note_replaced(call, moves, details)
    names = {server["uuid"]: server["name"] for server in instances_by(connection, uuids=[row["uuid"] for row in left])}
    hosts = _plans(connection, moves, details, directories)
    return {
        "changed": bool(moves or hosts),
        "moves": moves,
        "left": [{**row, "name": names.get(row["uuid"], row["uuid"])} for row in left],
        "hosts": hosts,
        "targets": targets.of_moves(hosts, REPLICATE),
    }


def _moves(
    connection: sa.Connection,
    servers: t.Sequence[Instance],
    details: t.Mapping[str, JsonMapping],
    endpoints: t.Mapping[str, str | None],
) -> list[JsonObject]:
    """List the copies that are under way, as moves of nothing but data."""
    to_hosts = {
        each.instance_uuid: each.target or "" for each in replica_records.replicas_by(connection, servers=details)
    }
    return [
        {
            **{"uuid": server["uuid"], "id": details[server["uuid"]]["copy_id"], "name": server["name"]},
            **{"domain_name": server["domain_name"], "from_host": server["host"], "to_host": to_hosts[server["uuid"]]},
            "to_address": endpoints.get(to_hosts[server["uuid"]]),
        }
        for server in servers
    ]


def _plans(
    connection: sa.Connection,
    moves: t.Sequence[JsonObject],
    details: t.Mapping[str, JsonMapping],
    directories: t.Mapping[str, str],
) -> dict[str, Plan]:
    hosts: dict[str, Plan] = {}
    for move in moves:
        leaving = hosts.setdefault(move["from_host"], {})
        leaving.setdefault(targets.LEAVING, []).append(move)
        leaving.setdefault("why", {})[move["uuid"]] = details[move["uuid"]].get("why")
        hosts.setdefault(move["to_host"], {}).setdefault(targets.ARRIVING, []).append(move)
    for host, uuids in replicas.superfluous(connection).items():
        hosts.setdefault(host, {})[targets.DISCARDED] = [{"uuid": uuid} for uuid in uuids]
    for host, plan in hosts.items():
        for kind, end in ((targets.ARRIVING, "from_host"), (targets.LEAVING, "to_host")):
            others = [move[end] for move in plan.get(kind, ())]
            plan["sources" if kind == targets.ARRIVING else "destinations"] = list(dict.fromkeys(others))
        plan["state_dir"] = directories[host]
    return hosts


def _end(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Record the copies. One is taken when its second host says so; else whoever says why it is not is believed."""
    outcomes = {outcome["host"]: outcome for outcome in params.get("outcomes") or []}
    errors, changed = [], False
    for move in params["moves"]:
        uuid = move["uuid"]
        reports = [_report(outcomes, move[end], uuid) for end in ("from_host", "to_host")]
        error = next((report["error"] for report in reports if report.get("error")), None)
        if error is None and "record" not in reports[1]:
            error = f"host {move['to_host']} did not say that the copy is complete"
        said = {uuid: {**reports[1], "host": move["to_host"], "silent": _is_silent(outcomes, move)}}
        done = server_actions.finish(connection, REPLICATE, [uuid], error=error, host_results=said)
        changed = bool(done) or changed
        if error is not None:
            errors += [error_of(server, error) for server in instances_by(connection, uuids=done)]
    for host, outcome in outcomes.items():
        gone = [row["uuid"] for row in outcome.get("results") or [] if row.get("removed")]
        replicas.removed(connection, host, gone)
        changed = bool(gone) or changed
    return {"changed": changed, "errors": errors}


def _is_silent(outcomes: t.Mapping[str, JsonMapping], move: JsonMapping) -> bool:
    """Tell whether the second host did not answer, and the server's own did."""
    answers = [move[end] in outcomes and not outcomes[move[end]].get("silent") for end in ("from_host", "to_host")]
    return answers == [True, False]


def _report(outcomes: t.Mapping[str, JsonMapping], host: str, uuid: str) -> JsonMapping:
    """Return what a host said of the copy of a server."""
    outcome = outcomes.get(host)
    if outcome is None:
        return {"error": f"host {host} did not answer"}
    said = next((row for row in outcome.get("results") or [] if row["uuid"] == uuid and not row.get("removed")), None)
    return said or {"error": outcome.get("error") or f"host {host} did not say what became of the copy"}
