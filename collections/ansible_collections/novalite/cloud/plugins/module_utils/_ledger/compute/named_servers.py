# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Servers that a person names: found by their names, taken over from runs that died, and what hosts say of them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._plan.host_plan import Plan
from ..._rules.build_states import BUILD_TIMEOUT
from ..db import clock
from ..queries import lookups
from ..queries.compute.views import instances_by
from ..queries.jobs.open_jobs import with_open_job
from . import server_actions


def servers_named(connection: sa.Connection, project: str | None, names: t.Sequence[str]) -> list[Instance]:
    """The servers of a project (None: the default one) with these names. Raises NotFoundError for one unknown."""
    owner = lookups.project_by_name(connection, project or lookups.DEFAULT_PROJECT)["id"]
    servers = instances_by(connection, names=names, project_id=owner)
    known = {server["name"] for server in servers}
    for name in names:
        if name not in known:
            raise lookups.unknown_server(connection, owner, name)
    return servers


def under_way(
    connection: sa.Connection, action: str, uuids: t.Collection[str]
) -> tuple[list[Instance], list[dict[str, str]]]:
    """Return the instances on which the API began `action`, and `uuid` and `reason` of each of the others."""
    going, skipped = [], []
    server_by_uuid = {server["uuid"]: server for server in instances_by(connection, uuids=uuids)}
    states = server_actions.task_states(action)
    for uuid in dict.fromkeys(uuids):
        server = server_by_uuid.get(uuid)
        if server is None:
            skipped.append({"uuid": uuid, "reason": "there is no such instance any more"})
        elif server["task_state"] in states:
            going.append(server)
        else:
            task = f" and task_state {server['task_state']}" if server["task_state"] else ""
            reason = f"'{action}' is not under way: it is in vm_state {server['vm_state']}{task}"
            skipped.append({"uuid": uuid, "reason": reason})
    return going, skipped


def take_over(
    connection: sa.Connection, servers: t.Iterable[Instance], action_timeout: int | None, takeover: bool
) -> None:
    """End the actions of runs that died: those silent for `action_timeout` seconds (None: BUILD_TIMEOUT) or, with
    `takeover`, all. Raises ConflictError for others: their runs may be alive."""
    now = clock.seconds(connection)
    dead_since = clock.before(connection, BUILD_TIMEOUT if action_timeout is None else action_timeout)
    busy = [server for server in servers if server_actions.action_in(server["task_state"])]
    queued = with_open_job(connection, [server["uuid"] for server in busy])
    for server in busy:
        age = max(0, now - server["updated_at"])
        if not takeover and (server["updated_at"] > dead_since or server["uuid"] in queued):
            raise ConflictError(
                f"'{server['name']}' is {server['task_state']} since {age} s: wait for that to end, "
                "or, if the run that did it was killed, set takeover=true"
            )
        dead = server_actions.action_in(server["task_state"]) or ""
        message = "ended without a result; another action was begun"
        server_actions.interrupt(connection, dead, [server["uuid"]], message)


def with_names(message: str, servers: t.Iterable[Instance]) -> str:
    """`message` with the name beside each UUID: a person at a playbook knows servers by name."""
    for server in servers:
        message = message.replace(server["uuid"], f"{server['uuid']} ('{server['name']}')")
    return message


# Option of steps: how it went, once for each host. `results` has a row for each thing that the host was given, by its
# `uuid` or `id`; `error` says why there is none for the others.
OUTCOMES: t.Mapping[str, t.Any] = {
    "type": "list",
    "elements": "dict",
    "options": {
        "host": {"type": "str", "required": True},
        "results": {"type": "list", "elements": "dict", "default": []},
        "error": {"type": "str"},
    },
}


def results_by_server(
    plans: t.Mapping[str, Plan], outcomes: t.Iterable[JsonMapping]
) -> dict[str, tuple[str, JsonMapping]]:
    """UUID -> its host, and the row of that host's `results` about it; of what was given to a host that did not even
    say so, a row with an `error`."""
    results: dict[str, tuple[str, JsonMapping]] = {}
    for outcome in outcomes:
        host = outcome["host"]
        results |= {row["uuid"]: (host, row) for row in outcome["results"] or []}
        silent = {"error": outcome.get("error") or "its host did not say what became of it"}
        results |= {uuid: (host, silent) for uuid in plans.get(host, {}).get("uuids", ()) if uuid not in results}
    for host, plan in plans.items():
        results |= {
            uuid: (host, {"error": f"host {host} did not answer"}) for uuid in plan["uuids"] if uuid not in results
        }
    return results


def states_of(servers: t.Iterable[Instance]) -> dict[str, JsonObject]:
    """Return the states of these servers by name, for the diff of an action."""
    return {
        server["name"]: {field: server[field] for field in ("vm_state", "task_state", "power_state", "host")}
        for server in servers
    }
