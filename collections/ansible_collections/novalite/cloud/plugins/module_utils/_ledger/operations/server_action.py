# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operation `server_action`: what is to be done to which servers, the plan of their hosts, and how it went.

Servers that are given by name are asked for by whoever runs the playbook: their action begins here. Servers that are
given by UUID come from the API, which began their action when it was asked; here it only goes on.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._guest import image_properties
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance
from ..._plan import targets
from ..._plan.host_plan import Plan
from ..._rules.build_states import OFFLOADED, UNSHELVE
from ..._rules.records import with_diff
from ..catalog import image_snapshots
from ..compute import power_states, reimage, server_actions, server_requests, shelving
from ..compute.named_servers import results_by_server, servers_named, states_of, take_over, under_way, with_names
from ..compute.plans import plan_hosts
from ..migration.outcomes import error_of
from ..queries import actions
from ..queries.adopted import not_adopted
from ..queries.instance_rows import check_known
from ..queries.views import instances_by

LOCKS = ("lock", "unlock")
CONSOLE = "console"  # no action of Nova's: it is only read, and nothing is recorded
NAMES = (*server_actions.NAMES, *LOCKS, CONSOLE)
# After these a guest runs that did not: everything that it may meet on its network must be there before.
_STARTS = ("start", "reboot", "resume")
_POWER_STATES = {**power_states.POWER_STATES, "missing": 0}


def server_action(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Operation `server_action`: see the module's documentation for `params` and what is returned. Raises NovaliteError
    for the first server that is unknown, or of which it cannot be asked; nothing was written then."""
    if params.get("outcomes") is not None:
        return _record(connection, params)
    result: JsonObject = {"changed": False, "instances": [], "settled": [], "nothing_to_do": []}
    result |= {"hosts": {}, "looks": {}, "targets": {}}
    name = params["action"]
    if params.get("uuids") is not None and name in server_actions.NAMES:
        going, result["nothing_to_do"] = under_way(connection, name, params["uuids"])
        return _planned(connection, params, going, result)
    servers = _requested_servers(connection, params)
    if name in LOCKS:
        return {**result, **_lock(connection, params, servers)}
    if name == CONSOLE:
        if lost := next((server for server in servers if server["host"] is None), None):
            raise ConflictError(f"Instance {lost['uuid']} ('{lost['name']}') is not ready: it is on no host")
        hosts = _plans(connection, params, servers)
        return {**result, "instances": servers, "hosts": hosts, "targets": targets.of_hosts(hosts)}
    begun = _begin(connection, params, servers)
    begun["snapshots"] = reimage.snapshots_to_take(connection, params, servers)
    going = begun.pop("instances")
    return _planned(connection, params, going, {**result, **begun, "looks": power_states.to_look_at(begun["settled"])})


def _planned(connection: sa.Connection, params: JsonMapping, going: list[Instance], result: JsonObject) -> JsonObject:
    """The `result` with the instances that the action is `going` on with, and what their hosts do."""
    hosts = _plans(connection, params, going)
    result["tell"] = {host: plan.pop("tell") for host, plan in hosts.items() if "tell" in plan}
    hosts = {host: plan for host, plan in hosts.items() if plan}
    result["targets"] = targets.of_hosts(hosts, looks=result["looks"], tell=result["tell"])
    result["targets"]["controller"] = targets.controller(hosts, result["looks"])
    return {**result, "instances": going, "hosts": hosts, "secret": any(plan.get("secret") for plan in hosts.values())}


def prepare_server_action(_engine: sa.Engine, params: JsonMapping) -> JsonObject:
    """The same `params` without a password: a hash takes a while, and only the hash is recorded."""
    return {**params, "request": reimage.with_hash(params.get("request") or {})}


def _requested_servers(connection: sa.Connection, params: JsonMapping) -> list[Instance]:
    if params.get("uuids") is not None:
        return instances_by(connection, uuids=params["uuids"])
    entries = [entry if isinstance(entry, dict) else {"name": entry} for entry in params.get("servers") or []]
    return servers_named(connection, params.get("project"), server_requests.expand_names(entries))


def _begin(connection: sa.Connection, params: JsonMapping, servers: list[Instance]) -> JsonObject:
    name = params["action"]
    details = {"type": server_actions.HARD if params.get("hard") else server_actions.SOFT} if name == "reboot" else {}
    rules = server_actions.action_of(name, details)
    take_over(connection, servers, params.get("action_timeout"), bool(params.get("takeover")))
    # A reboot is an event and no state: whoever asks for one gets one.
    there = (rules.vm_state, OFFLOADED) if name == server_actions.SHELVE else (rules.vm_state,)
    settled = [server for server in servers if name != "reboot" and server["vm_state"] in there]
    settled += reimage.settled(connection, params, servers)
    to_begin = [server for server in servers if server not in settled]
    if not to_begin:
        return {"instances": [], "settled": settled}
    request_id = actions.new_request_id()
    uuids = [server["uuid"] for server in to_begin]
    try:
        if name in reimage.ACTIONS:
            begun = reimage.begin(connection, params, to_begin, request_id)
        else:
            if name == UNSHELVE.action:
                request = params.get("request") or {}
                details = {key: request[key] for key in ("availability_zone", "host") if request.get(key) is not None}
            begun = server_actions.begin(connection, name, uuids, request_id=request_id, details=details)
    except (ConflictError, NotFoundError) as error:
        raise type(error)(with_names(str(error), to_begin)) from None
    return {
        "changed": True,
        "instances": begun,
        "settled": settled,
        "request_id": request_id,
        "diff": {"before": states_of(to_begin), "after": states_of(begun)},
    }


def _lock(connection: sa.Connection, params: JsonMapping, servers: list[Instance]) -> JsonObject:
    request_id, locked, reason = actions.new_request_id(), params["action"] == "lock", params.get("reason")
    changed = [
        server
        for server in servers
        if server_actions.set_lock(connection, server["uuid"], locked, reason, request_id=request_id)
    ]
    result: JsonObject = {"changed": bool(changed), "settled": [server for server in servers if server not in changed]}
    result["instances"] = instances_by(connection, uuids=[row["uuid"] for row in changed])
    if changed:
        result["request_id"] = request_id
        result["diff"] = {
            "before": {row["name"]: {"locked": not locked} for row in changed},
            "after": {row["name"]: {"locked": locked, "reason": reason} for row in changed},
        }
    return result


def _plans(connection: sa.Connection, params: JsonMapping, instances: list[Instance]) -> dict[str, Plan]:
    """`{host: plan}`: what server_plan says about instances that are there already, where one is to start; else names
    and UUIDs alone. Each of `domains` says how to go about it: `hard`, `shutdown_timeout` (seconds or null)."""
    hosts: dict[str, Plan] = {}
    if params["action"] == UNSHELVE.action:
        return hosts  # it is launched
    if params["action"] == server_actions.OFFLOAD:
        return _offload_plans(connection, params, instances)
    if params["action"] in reimage.STARTS:
        hosts = reimage.plans(connection, params, instances)
    elif params["action"] in _STARTS:
        full = plan_hosts(connection, params["state_dir"], existing=not_adopted(instances)).rendered()
        hosts = {host: {**plans["keep"], "starts": True} for host, plans in full.items() if "keep" in plans}
        _add(hosts, [instance for instance in instances if instance["adopted"] is not None], as_defined=True)
    else:
        _add(hosts, instances)
    by_uuid = {instance["uuid"]: instance for instance in instances}
    hard = server_actions.REBOOTS[server_actions.HARD].task_state
    for plan in hosts.values():
        for domain in plan["domains"]:
            server = by_uuid[domain["uuid"]]
            domain["hard"] = server["task_state"] == hard
            domain["shutdown_timeout"] = image_properties.shutdown_timeout(server["image"])
    if params["action"] == reimage.SNAPSHOT:
        reimage.add_snapshots(connection, hosts)
    elif params["action"] == server_actions.SHELVE:
        shelving.add_snapshots(connection, hosts)
    return hosts


def _offload_plans(connection: sa.Connection, params: JsonMapping, instances: list[Instance]) -> dict[str, Plan]:
    """Return what is to be taken from the hosts, as the role `reclaim` takes it; the data of volumes stay. `tell` is
    what other hosts are told of it: the parts `peers` and `groups` of server_plan."""
    hosts: dict[str, Plan] = {}
    for host, plans in plan_hosts(connection, params["state_dir"], leaving=instances, moving=True).rendered().items():
        tell = {part: plans[part] for part in ("peers", "groups") if part in plans}
        removed = plans.get("remove", {})
        results = {"results": [{"uuid": uuid} for uuid in removed["uuids"]]} if removed else {}
        hosts[host] = {**removed, **results, **({"tell": tell} if tell else {})}
    return hosts


def _add(hosts: dict[str, Plan], instances: t.Iterable[Instance], **spec: bool) -> None:
    """Add these to the plans of their hosts by name and UUID alone."""
    for instance in instances:
        plan = hosts.setdefault(instance["host"] or "", {"names": [], "uuids": [], "domains": [], "starts": False})
        plan["names"].append(instance["name"])
        plan["uuids"].append(instance["uuid"])
        plan["domains"].append({"uuid": instance["uuid"], "name": instance["domain_name"], "xml": None, **spec})


def _record(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Record the outcome of each host. A host that did not even answer has failed with all that it was given."""
    name = params["action"]
    if name not in server_actions.NAMES:
        raise NovaliteError(f"action '{name}' has no outcomes")
    plans: t.Mapping[str, Plan] = params.get("plans") or {}
    results = results_by_server(plans, params["outcomes"])
    row_by_uuid = {uuid: row for uuid, (_host, row) in results.items()}
    check_known(connection, row_by_uuid)
    before = instances_by(connection, uuids=row_by_uuid)
    changed: set[str] = set()
    groups: dict[tuple[str, str | None, int | None], list[str]] = {}  # by host, error and power state
    for uuid, (host, row) in results.items():
        groups.setdefault((host, row.get("error"), _POWER_STATES.get(row.get("state") or "")), []).append(uuid)
    for (host, error, power_state), uuids in groups.items():
        changed.update(
            server_actions.finish(
                connection, name, uuids, host=host, error=error, power_state=power_state, host_results=row_by_uuid
            )
        )
    after = instances_by(connection, uuids=row_by_uuid)
    now = [server for server in after if server["uuid"] in changed]
    result: JsonObject = {
        "changed": bool(changed),
        "instances": after,
        "settled": [],
        "nothing_to_do": [
            {"uuid": uuid, "reason": "it was being deleted, or its action had ended"}
            for uuid in row_by_uuid
            if uuid not in changed
        ],
        "hosts": {},
        "errors": [
            error_of(server, row_by_uuid[server["uuid"]]["error"])
            for server in now
            if row_by_uuid[server["uuid"]].get("error") is not None
        ],
        # the instance, or the image, was deleted meanwhile: nobody is going to know them
        "orphans": image_snapshots.unused(
            connection, (row["source"] for row in row_by_uuid.values() if row.get("source"))
        ),
    }
    if name == server_actions.OFFLOAD:
        result["keepers"] = sorted(shelving.keepers(connection, changed))
    return with_diff(result, states_of(server for server in before if server["uuid"] in changed), states_of(now))
