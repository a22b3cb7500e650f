# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans for the hosts of moves: those of server_plan, with the instances that come, go and stay."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._json import JsonMapping
from ..._model.instance import Instance, Move
from ..._plan import targets
from ..._plan.host_plan import Plan
from ..compute.plans import plan_hosts
from ..db.tables import compute_host
from ..network.addresses import give_addresses
from ..queries.compute.views import instances_by
from ..queries.volumes import replica_records
from ..volumes import replicas

# Fields of a host's plan that depend on its other instances
UNUSED = ("last_bridges", "last_routers", "last_metadata_networks", "staying_routers")


def plans(
    connection: sa.Connection, params: JsonMapping, moves: t.Sequence[Move], instances: t.Mapping[str, Instance]
) -> dict[str, Plan]:
    """Return each host's plans for `moves` of these `instances` (by UUID).

    `{host: {"build": plan, "leave": plan, "peers": plan, "groups": plan, "arriving": [...], "leaving": [...],
    "staying": [...], "state_dir": path}}`: the last three lists are those of `moves` that concern the host.
    targets.summary() adds what follows from them, and a live migration has `domains_there`.

    `build` is what a guest needs where it is to be, `leave` what it has where it was: enough to take it away, and to
    start it there again.
    """
    if not instances:
        return {}
    to: list[Instance] = []
    gone: list[Instance] = []
    for move in moves:
        server = instances[move["uuid"]]
        to.append({**server, "host": move["to_host"], "flavor": move["to_flavor"]})
        if not move["same_host"]:
            gone.append({**server, "host": move["from_host"], "flavor": move["from_flavor"]})
    confirming = params["action"] == "confirmResize"
    plans_by_host = plan_hosts(
        connection,
        params["state_dir"],
        instances=() if confirming else _addressed(connection, to),
        leaving=_addressed(connection, gone),
        compute_hosts=params.get("compute_hosts") or (),
        moving=True,
    ).rendered()
    endpoints, directories = places(connection)
    hosts: dict[str, Plan] = {}
    for host, of_host in plans_by_host.items():
        plan = hosts.setdefault(host, {})
        for kind, name in (("build", "build"), ("remove", "leave"), ("peers", "peers"), ("groups", "groups")):
            if kind in of_host:
                plan[name] = of_host[kind]
        if "build" in plan and params["action"] != "evacuate":
            # what a guest was told at its first start is on its disks
            plan["build"] |= {"injections": [], "config_drives": [], "secret": False}
    if params["action"] == "evacuate":
        _from_copies(connection, moves, hosts)
    for move in moves:
        for host, kind in (
            ((move["to_host"], "staying"),)
            if move["same_host"]
            else ((move["to_host"], "arriving"), (move["from_host"], "leaving"))
        ):
            plan = hosts.setdefault(host, {})
            plan.setdefault(kind, []).append(
                {
                    **{field: move[field] for field in ("uuid", "name", "domain_name", "id", "starts")},
                    "from_host": move["from_host"],
                    "to_host": move["to_host"],
                    "to_address": endpoints.get(move["to_host"]),
                    "from_address": endpoints.get(move["from_host"]),
                }
            )
    for host, plan in hosts.items():
        plan |= {**targets.summary(plan), "state_dir": directories.get(host, params["state_dir"])}
        if params["action"] == "live-migration":
            plan["domains_there"] = targets.domains_there(plan, hosts)
    return hosts


def _from_copies(connection: sa.Connection, moves: t.Sequence[Move], hosts: t.Mapping[str, Plan]) -> None:
    """Add `copies` to what is built, those of servers' disks that they are to run from: what such a guest was told at
    its first start is on them."""
    copied = {
        each.instance_uuid: each for each in replica_records.replicas_by(connection, servers=[m["uuid"] for m in moves])
    }
    for move in moves:
        replica, build = copied.get(move["uuid"]), hosts.get(move["to_host"], {}).get("build")
        if build is not None and replica is not None and replicas.is_used(replica, move["to_host"]):
            copy = {"uuid": move["uuid"], "copy_id": replica.copy_id, "taken_at": replica.taken_at}
            build.setdefault("copies", []).append(copy)
            build["injections"] = [each for each in build["injections"] if each["uuid"] != move["uuid"]]


def places(connection: sa.Connection) -> tuple[dict[str, str | None], dict[str, str]]:
    """Return where each host is reached from other hosts, what goes over the wire there being encrypted; and the
    directory where it keeps instances."""
    c = compute_host.c
    rows = {row.name: row for row in connection.execute(sa.select(c.name, c.facts, c.state_dir))}
    endpoints = {name: row.facts.get("address") or row.facts.get("tunnel_address") for name, row in rows.items()}
    return endpoints, {name: row.state_dir for name, row in rows.items()}


def unused(
    connection: sa.Connection, state_dir: str, arrived: t.Sequence[Move], lost: t.Sequence[Move]
) -> dict[str, Plan]:
    """Return what of networks goes with these moves on each host, as of now: `{host: {"leave": plan, "build": plan}}`,
    with the fields of UNUSED alone. `leave` is of those that `arrived` elsewhere, `build` of those `lost` on their way.

    A move of large disks takes hours, and what its plan said at its begin may be in use again: another instance was
    launched there meanwhile, and would lose its bridge, metadata proxy and way out.
    """
    moves = [*arrived, *lost]
    instances = {server["uuid"]: server for server in instances_by(connection, uuids=[move["uuid"] for move in moves])}
    unused_by_host: dict[str, Plan] = {}
    sources = [(move["uuid"], move["from_host"]) for move in arrived if not move["same_host"]]
    destinations = [(move["uuid"], move["to_host"]) for move in lost if not move["same_host"]]
    for part, places in (("leave", sources), ("build", destinations)):
        there: list[Instance] = [{**instances[uuid], "host": host} for uuid, host in places if uuid in instances]
        # a plan has the address of its host, which was given back just now: it is taken for the plan alone
        with connection.begin_nested() as rehearsal:
            leaving = _addressed(connection, there)
            plans_by_host = (
                plan_hosts(connection, state_dir, leaving=leaving, moving=True).rendered() if leaving else {}
            )
            rehearsal.rollback()
        for host, plan in plans_by_host.items():
            if "remove" in plan:
                unused_by_host.setdefault(host, {})[part] = {field: plan["remove"][field] for field in UNUSED}
    return unused_by_host


def _addressed(connection: sa.Connection, instances: list[Instance]) -> list[Instance]:
    """Return the instances with the address of each one's host in each of its networks."""
    if not instances:
        return []
    return give_addresses(connection, instances).instances
