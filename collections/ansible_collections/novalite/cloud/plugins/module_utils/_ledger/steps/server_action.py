# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_action`: what is to be done to which servers, the plan of their hosts, and how it went.

Servers that are given by name are asked for by whoever runs the playbook: their action begins here. Servers that are
given by UUID come from the API, which began their action when it was asked; here it only goes on.

An action begins with a compare-and-swap of the instance's task state, so that one of two wins, in the states that Nova
allows. A server that is already what the action would make it is left alone; a reboot always reboots. An instance that
is to be deleted is no longer the action's: its outcome is not recorded.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._guest import image_properties
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance, not_adopted
from ..._plan import targets
from ..._plan.host_plan import Plan
from ..._rules import retention, server_requests
from ..._rules.build_states import OFFLOADED, UNSHELVE
from ..._rules.records import with_diff
from ..catalog import image_snapshots
from ..compute import (
    guest_passwords,
    live_resize,
    power_states,
    reimage,
    server_actions,
    server_backups,
    server_snapshots,
    shelving,
)
from ..compute.named_servers import (
    OUTCOMES,
    results_by_server,
    servers_named,
    states_of,
    take_over,
    under_way,
    with_names,
)
from ..compute.plans import plan_hosts
from ..migration.outcomes import error_of
from ..operations import actions as named_actions
from ..operations import servers as operations
from ..operations.call import by_playbook
from ..queries.compute.instance_rows import check_known
from ..queries.compute.views import instances_by

LOCKS = ("lock", "unlock")
CONSOLE = "console"  # no action of Nova's: it is only read, and nothing is recorded

FRAGMENTS = ("ledger.project", "state_dir")
ARGUMENT_SPEC = {
    # `console` is for reading the console log, and changes nothing.
    "action": {
        "type": "str",
        "choices": [
            *("stop", "start", "reboot", "pause", "unpause", "suspend", "resume", "rescue", "unrescue", "rebuild"),
            *("createImage", "live-resize", "shelve", "shelveOffload", "unshelve", "lock", "unlock", "console"),
            *("createSnapshot", "revertSnapshot", "deleteSnapshot", "changePassword"),
            *("createBackup", "restoreBackup", "verifyBackup", "deleteBackup"),
        ],
        "required": True,
    },
    # The servers by name, whose action begins here. Each item is a name, or a dictionary of `name` and `count`, as
    # `server` takes it; what else is in it is not looked at.
    "servers": {"type": "list", "elements": "raw"},
    # Instances of any project, whose action was begun before, by the REST API. It goes on with those that are still in
    # the task state of `action`. For `lock`, `unlock` and `console` nothing needs to have begun.
    "uuids": {"type": "list", "elements": "str"},
    # Whether a `reboot` of `servers` cuts off the power, and starts them anew from their definition.
    "hard": {"type": "bool", "default": False},
    # What else the action on `servers` is told. What is not given stays as it is.
    "request": {
        "type": "dict",
        "options": {
            # Name of the image that `rebuild` or `rescue` takes. By default the one that the server has.
            "image": {"type": "str"},
            # The administrator's password after `rebuild` or `changePassword`, or as long as `rescue` lasts.
            "admin_password": {"type": "str", "no_log": True},
            # Name of the key pair after `rebuild`; an empty one for none.
            "key": {"type": "str", "no_log": False},
            # All metadata after `rebuild`.
            "metadata": {"type": "dict"},
            # User data after `rebuild`, the text itself or base64.
            "user_data": {"type": "str", "no_log": True},
            "user_data_encoding": {"type": "str", "choices": ["text", "base64"]},
            # Files that `rebuild` injects, as `server` takes them.
            "files": {"type": "list", "elements": "dict", "no_log": True},
            # Name of the image that `createImage` makes. With several servers, the server's name is added. A server
            # that this image was made of before is left alone.
            "image_name": {"type": "str"},
            # Properties of that image, beside those that it has from the server's own.
            "properties": {"type": "dict"},
            # Name of the flavor that `live-resize` gives the servers while they run.
            "flavor": {"type": "str"},
            # Name or id of the snapshot that is taken, rolled back to or deleted. A server that has one of this name is
            # left alone by `createSnapshot`, one that has none by `deleteSnapshot`.
            "snapshot": {"type": "str"},
            # What the snapshot is for.
            "snapshot_description": {"type": "str"},
            # Name or id of the backup that is taken, restored, verified or deleted. By default `createBackup` names it
            # by the time, and `verifyBackup` takes the newest.
            "backup": {"type": "str"},
            # Take all that the disks hold, whatever was taken before.
            "full_backup": {"type": "bool", "default": False},
            # `verifyBackup` boots the newest full one, or the one that is named, and gives its guest so many seconds.
            "boot": {"type": "bool", "default": False},
            "boot_timeout": {"type": "int"},
            # So many of the newest, and of the last of each of so many hours, days, weeks and months, are kept.
            **{option: {"type": "int"} for option in retention.OPTIONS},
            # Zone that `unshelve` launches the server in. By default the one that it was asked for in.
            "availability_zone": {"type": "str"},
            # Compute host that `unshelve` launches the server on.
            "host": {"type": "str"},
        },
    },
    # Why the servers are locked, or unlocked.
    "reason": {"type": "str"},
    # Begin also where another action is under way. Only say so when the run that did it is dead.
    "takeover": {"type": "bool", "default": False},
    # Seconds without a sign of life, after which another run's action counts as dead.
    "action_timeout": {"type": "int", "default": 600},
    # How it went, once for each host. Given this, nothing begins. `results` are what `domain_power` returned for each
    # domain, or the step `disk_snapshot` for each image; `untouched` says of a failure that it came before anything
    # happened to the guest.
    "outcomes": OUTCOMES,
    # `hosts` of the call that began the action. What is in it and in none of the outcomes failed, since its host did
    # not even answer.
    "plans": {"type": "dict", "default": {}},
}
SPEC_RULES = {
    "required_one_of": [("servers", "uuids", "outcomes")],
    "mutually_exclusive": [("servers", "uuids", "outcomes")],
}
# After these a guest runs that did not: everything that it may meet on its network must be there before.
_STARTS = ("start", "reboot", "resume")
_POWER_STATES = {**power_states.POWER_STATES, "missing": 0}


def server_action(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `instances`: those that the action is under way on, as `server` returns them
    * `settled`: those of `servers` that are already what the action would make them
    * `nothing_to_do`: those of `uuids` on which the action is not under way, and outcomes that came too late, `uuid`
      and `reason`
    * `hosts`: the plan of each compute host, by its name. `uuids`, `domains` as `domain_power` takes them and, where
      guests are to start (`starts`), what the step `server_plan` returns for instances that exist
    * `looks`: where the guests of `settled` are, as the step `power_sync` returns it; they may be in another state than
      the ledger has it
    * `tell`: what other hosts are told of instances that leave theirs
    * `targets`: the hosts of each play, `hosts`, `looks` and `tell`, and `controller`, `localhost` if there are any
    * `snapshots`: ids of those that are to be taken for the images of instances that start from a volume
    * `keepers`: the hosts that are to keep the records of the instances that are on no host now (outcomes of
      `shelveOffload`)
    * `orphans`: files of images whose instance was deleted meanwhile (with `outcomes`)
    * `errors`: the instances whose action failed, `uuid`, `name` and `message` (with `outcomes`)
    * `request_id`: as it stands in the servers' action logs (when an action began)

    Raises NovaliteError for the first server that is unknown, or of which it cannot be asked; nothing was written then.
    """
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
    settled += [*reimage.settled(connection, params, servers), *live_resize.settled(params, servers)]
    to_begin = [server for server in servers if server not in settled]
    if not to_begin:
        return {"instances": [], "settled": settled}
    call, request = by_playbook(connection), params.get("request") or {}
    try:
        if name == UNSHELVE.action:
            details = {key: request[key] for key in ("availability_zone", "host") if request.get(key) is not None}
        begun = named_actions.begin(call, name, request, to_begin, details)
    except (ConflictError, NotFoundError) as error:
        raise type(error)(with_names(str(error), to_begin)) from None
    return {
        "changed": True,
        "instances": begun,
        "settled": settled,
        "request_id": call.request_id,
        "diff": {"before": _told(name, to_begin), "after": _told(name, begun)},
    }


def _told(name: str, servers: list[Instance]) -> dict[str, JsonObject]:
    """Return the states of servers that the action's diff shows, of a live resize with their sizes."""
    states = states_of(servers)
    if name == live_resize.NAME:
        return {server["name"]: {**states[server["name"]], **live_resize.shown(server)} for server in servers}
    return states


def _lock(connection: sa.Connection, params: JsonMapping, servers: list[Instance]) -> JsonObject:
    call, locked, reason = by_playbook(connection), params["action"] == "lock", params.get("reason")
    changed = [server for server in servers if operations.set_lock(call, server["uuid"], locked, reason)]
    result: JsonObject = {"changed": bool(changed), "settled": [server for server in servers if server not in changed]}
    result["instances"] = instances_by(connection, uuids=[row["uuid"] for row in changed])
    if changed:
        result["request_id"] = call.request_id
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
        reimage.add_snapshots(connection, hosts, instances)
    elif params["action"] == server_actions.SHELVE:
        shelving.add_snapshots(connection, hosts)
    elif params["action"] == live_resize.NAME:
        for host, plans in plan_hosts(connection, params["state_dir"], existing=instances).rendered().items():
            if host in hosts:
                hosts[host]["sizes"] = [dict(domain) for domain in plans["keep"]["domains"]]
    elif params["action"] == guest_passwords.NAME:
        guest_passwords.add_plans(connection, hosts, instances)
    elif params["action"] in server_snapshots.ACTIONS:
        server_snapshots.add_plans(connection, params["action"], hosts, instances)
    elif params["action"] in server_backups.ACTIONS:
        server_backups.add_plans(connection, params["action"], hosts)
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
