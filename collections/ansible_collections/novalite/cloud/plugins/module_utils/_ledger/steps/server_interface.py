# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Step `server_interface`: which servers get or lose an interface, what their hosts do for it, and how it went.

The first and the last step of giving an instance that is there another network interface, or of taking one away. An
interface that is to come has its address before its host is asked to plug it in; one that is to go keeps it until its
host has pulled it out. An instance has one such change at a time. With `outcomes`, records what came of it. What could
not be plugged in gives its address back.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import Instance, Nic
from ..._plan import targets
from ..._plan.host_plan import Plan
from ..compute import interfaces
from ..compute.interfaces import ATTACHING, DETACHING, InterfaceRequest
from ..compute.named_servers import OUTCOMES, results_by_server, servers_named
from ..compute.plans import plan_hosts
from ..migration.outcomes import error_of
from ..operations import attachments
from ..operations.call import by_playbook
from ..queries.compute.instance_rows import check_known, locked_row
from ..queries.compute.views import instances_by
from ..security import firewalls

# `state`: whether the interfaces shall be there
FRAGMENTS = ("ledger.project", "state_dir", "ledger.state")
ARGUMENT_SPEC = {
    # The interfaces. One that is as `state` says is left alone.
    "interfaces": {
        "type": "list",
        "elements": "dict",
        "options": {
            "server": {"type": "str", "required": True},
            # Name of the network. One of this and `interfaces[].port` says which interface it is.
            "network": {"type": "str"},
            # UUID of a port that the project made in the Network API, or of an interface that there is.
            "port": {"type": "str"},
            # The IPv4 address on the network. Left out, any.
            "fixed_ip": {"type": "str"},
        },
    },
    # Instances of any project with an interface whose change the REST API began. Others are left alone.
    "uuids": {"type": "list", "elements": "str"},
    # What was returned as `hosts`. What is in it and in no outcome failed.
    "plans": {"type": "dict"},
    # How it went on each host. `results` are what the step `domain_interfaces` returned as `domains`.
    "outcomes": OUTCOMES,
}
SPEC_RULES = {
    "required_one_of": [("interfaces", "uuids", "outcomes")],
    "mutually_exclusive": [("interfaces", "uuids", "outcomes")],
}

Changes = t.Mapping[str, str]  # instance -> interface

_STATUS = {"present": ATTACHING, "absent": DETACHING}


def server_interface(connection: sa.Connection, params: JsonMapping) -> JsonObject:
    """Return `changed`, and
    * `instances`: the instances that change, as `server` returns them
    * `hosts`: the plan of each compute host, by its name. Each has `uuids`, `domains` as the step `domain_interfaces`
      takes them, and what the role `interfaces` does before and after
    * `peers`: what other hosts of the networks are told, as in what `server_plan` returns
    * `firewall`: what each host's firewall is to be told after the change, as `firewall_plan` returns it (when
      `outcomes` is given)
    * `targets`: the hosts of each play, `hosts`, `peers` and `firewall`, and `controller`, `localhost` if there is
      something to record, or, with `outcomes`, an error to tell
    * `errors`: the instances on which it failed, `uuid`, `name` and `message`

    Raises NovaliteError for the first server or interface that is unknown, or of which it cannot be asked."""
    status = _STATUS[params["state"]]
    if params.get("outcomes") is not None:
        return _record(connection, status, params)
    diff = None
    if params.get("uuids") is not None:
        uuids = params["uuids"]
    else:
        before = _nics_of(connection, params)
        uuids = _begin(connection, status, params)
        if uuids:
            after = _nics_of(connection, params)
            diff = {"before": before, "after": after if status == ATTACHING else _without(connection, after, uuids)}
    changing = interfaces.under_way(connection, status, uuids)
    instances = instances_by(connection, uuids=changing)
    plans = _attach_plans if status == ATTACHING else _detach_plans
    hosts, peers = plans(connection, instances, changing, params["state_dir"])
    result: JsonObject = {
        "changed": diff is not None,
        "instances": instances,
        "hosts": hosts,
        "peers": peers,
        "errors": [],
    }
    result["targets"] = targets.of_hosts(hosts, peers=peers)
    return {**result, "diff": diff} if diff is not None else result


def _begin(connection: sa.Connection, status: str, params: JsonMapping) -> list[str]:
    """Begin the change on each named server that needs it, and return their UUIDs; what is as it shall be stays."""
    uuids = []
    for item in params["interfaces"]:
        (server,) = servers_named(connection, params.get("project"), [item["server"]])
        row = locked_row(connection, server["uuid"])
        there = _matching(server, item)
        if bool(there) == (status == ATTACHING):
            continue
        call = by_playbook(connection)
        if status == DETACHING:
            if len(there) > 1:
                raise NovaliteError(f"server '{row.name}' has {len(there)} such interfaces: name the port")
            attachments.detach_interface(call, row, there[0]["id"])
        else:
            if not item.get("port") and not item.get("network"):
                raise NovaliteError(f"interface of '{row.name}': name a network, or a port")
            wish = InterfaceRequest(port=item.get("port"))
            if not wish.port:
                wish = attachments.interface_in(call, row, name=item["network"], fixed_ip=item.get("fixed_ip"))
            attachments.attach_interface(call, row, wish)
        uuids.append(row.uuid)
    return uuids


def _matching(server: Instance, item: JsonMapping) -> list[Nic]:
    return [
        nic
        for nic in server["nics"]
        if (not item.get("port") or nic["id"] == item["port"])
        and (not item.get("network") or nic["network"]["name"] == item["network"])
        and (not item.get("fixed_ip") or nic["ip"] == item["fixed_ip"])
    ]


def _nics_of(connection: sa.Connection, params: JsonMapping) -> dict[str, list[str]]:
    names = sorted({item["server"] for item in params["interfaces"]})
    return {server["name"]: _shown(server) for server in servers_named(connection, params.get("project"), names)}


def _shown(server: Instance, going: t.Collection[str] = ()) -> list[str]:
    return [
        f"{nic['ip']} in {nic['network']['name']} ({nic['mac']})" for nic in server["nics"] if nic["id"] not in going
    ]


def _without(connection: sa.Connection, after: dict[str, list[str]], uuids: t.Collection[str]) -> dict[str, list[str]]:
    going = set(interfaces.under_way(connection, DETACHING, uuids).values())
    return after | {server["name"]: _shown(server, going) for server in instances_by(connection, uuids=uuids)}


def _attach_plans(
    connection: sa.Connection, instances: list[Instance], changing: Changes, state_dir: str
) -> tuple[dict[str, Plan], dict[str, Plan]]:
    """Return the hosts' plans: what the interface needs first, the guests' definitions with it, and what a failure
    takes back; and the plans of other hosts of its network."""
    only, rest = _split(instances, changing)
    whole, back = (plan_hosts(connection, state_dir, existing=servers).rendered() for servers in (instances, rest))
    new = plan_hosts(connection, state_dir, instances=only).rendered()
    undo = plan_hosts(connection, state_dir, leaving=only).rendered()
    hosts = {}
    for host, plans in whole.items():
        if "keep" not in plans:
            continue
        names = {
            network["bridge"]: network["names"] for network in new[host]["build"]["dhcp_networks"] if "names" in network
        }
        keep = plans["keep"]
        keep["dhcp_networks"] = [
            {**network, "names": names[network["bridge"]]} if network["bridge"] in names else network
            for network in keep["dhcp_networks"]
        ]
        hosts[host] = {
            "uuids": keep["uuids"],
            "ledger": keep["ledger"],
            "surroundings": keep,
            "domains": keep["domains"],
            "undo": _leaving(back[host]["keep"], undo[host]["remove"], rest),
        }
    return hosts, _peers(new)


def _detach_plans(
    connection: sa.Connection, instances: list[Instance], changing: Changes, state_dir: str
) -> tuple[dict[str, Plan], dict[str, Plan]]:
    """The guests' definitions without the interface, and what goes after it."""
    gone, rest = _split(instances, changing)
    left = plan_hosts(connection, state_dir, existing=rest).rendered()
    leaving = plan_hosts(connection, state_dir, leaving=gone).rendered()
    hosts = {
        host: {"uuids": plans["keep"]["uuids"], **_leaving(plans["keep"], leaving[host]["remove"], rest)}
        for host, plans in left.items()
        if "keep" in plans
    }
    return hosts, _peers(leaving)


def _split(instances: list[Instance], changing: Changes) -> tuple[list[Instance], list[Instance]]:
    """The servers with their changing interfaces alone, and with all the others."""
    only: list[Instance] = []
    rest: list[Instance] = []
    for server in instances:
        for side, changes in ((only, True), (rest, False)):
            nics = [nic for nic in server["nics"] if (nic["id"] == changing[server["uuid"]]) is changes]
            side.append({**server, "nics": nics})
    return only, rest


def _leaving(keep: Plan, remove: Plan, rest: t.Sequence[Instance]) -> Plan:
    """Return a host's plan to remove interfaces: `keep` is what their servers have without them."""
    # another interface of the same servers may be on the same bridge
    staying = {nic["network"]["bridge"] for interface in rest for nic in interface["nics"]}
    return {
        "ledger": keep["ledger"],
        "domains": keep["domains"],
        "surroundings": keep,
        "dhcp_networks": remove["dhcp_networks"],
        **{
            key: [nic for nic in remove[key] if nic["bridge"] not in staying]
            for key in ("staying_routers", "last_routers")
        },
        "last_bridges": [bridge for bridge in remove["last_bridges"] if bridge["name"] not in staying],
    }


def _peers(hosts: t.Mapping[str, t.Mapping[str, Plan]]) -> dict[str, Plan]:
    return {host: plans["peers"] for host, plans in hosts.items() if "peers" in plans}


def _record(connection: sa.Connection, status: str, params: JsonMapping) -> JsonObject:
    """Record the outcome of each host. A host that did not even answer has failed with all that it was given."""
    plans: t.Mapping[str, Plan] = params.get("plans") or {}
    results_of_hosts = results_by_server(plans, params["outcomes"])
    check_known(connection, results_of_hosts)
    changed: list[str] = []
    for host in plans:
        results = {uuid: row.get("error") for uuid, (of_host, row) in results_of_hosts.items() if of_host == host}
        changed += interfaces.finish(connection, status, results, host)
    instances = instances_by(connection, uuids=changed)
    groups = {group["id"] for server in instances for group in server["security_groups"]}
    errors = {uuid: row["error"] for uuid, (_host, row) in results_of_hosts.items() if row.get("error") is not None}
    firewall = firewalls.plan_for_instances(connection, changed, groups)
    return {
        "changed": bool(changed),
        "instances": instances,
        "hosts": {},
        "peers": {},
        "firewall": firewall,
        "targets": {"firewall": list(firewall), "controller": targets.controller(errors)},
        "errors": [error_of(server, errors[server["uuid"]]) for server in instances if server["uuid"] in errors],
    }
