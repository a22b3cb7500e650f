# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of every compute host that instances are on, or that they are to go to."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._domain.guest import guest_of, render
from ..._json import JsonMapping, JsonObject
from ..._model.instance import GuestRecord, Instance, not_adopted
from ..._plan.host_plan import HostPlan, NetworksPlan, Plan, ServersPlan, plan_by_host
from ..._plan.networks import router
from ..db.ledger_identity import ledger_id
from ..db.tables import compute_host, instance, network
from ..placement.claims import asks_for_own, own_claims
from ..placement.fresh_facts import rooms
from ..queries.network import group_members, host_networks
from ..volumes import server_volumes
from . import migrations, network_plans
from .network_plans import Instances
from .slices import Slicer

OfHosts = dict[str, ServersPlan]  # by the hosts' names


@dataclasses.dataclass(frozen=True)
class HostPlans:
    """Plans of hosts, by their names."""

    hosts: t.Mapping[str, HostPlan]
    secret: bool  # whether something in them may be known to the guests only: then nobody is shown them

    def rendered(self) -> dict[str, dict[str, Plan]]:
        """`{host: {part: plan}}`, see HostPlan."""
        return {name: plan.rendered() for name, plan in self.hosts.items()}


def plan_hosts(
    connection: sa.Connection,
    state_dir: str,
    *,
    instances: Instances = (),
    existing: Instances = (),
    leaving: Instances = (),
    compute_hosts: t.Sequence[JsonMapping] = (),
    network_hosts: t.Sequence[str] = (),
    moving: bool = False,
    count_room: bool = False,
) -> HostPlans:
    """The plans for these instances; reads the ledger only. One that was adopted is in none: what it stands on is not
    novalite's.

    `instances` are to be built, `existing` run already (their plan is what they are compared with), `leaving` are to
    be taken away. An instance without a host is in no plan: nothing of it is on any. The part `peers` is for other
    hosts of the networks, `network` for those named in `network_hosts`. `state_dir` is where a host that the ledger
    does not know keeps its files. `compute_hosts` are facts that the ledger may not have yet. Those that leave because
    they are `moving` keep what they have on the other host. With `count_room`, a host that builds and is not among
    `compute_hosts` is told the room that the ledger counts on: it checks that before it builds.

    What only the guests may know is read here, for those to be built, and is in no other result. Raises NovaliteError
    for a VXLAN network with a host that has no tunnel address.
    """
    guest_records = _guest_records(connection, [server["uuid"] for server in instances])
    ledger = ledger_id(connection)
    servers_by_kind = {
        kind: [server for server in not_adopted(of_kind) if server["host"]]
        for kind, of_kind in (("build", instances), ("keep", existing), ("remove", leaving))
    }
    servers_by_kind["build"] = [
        {**server, "guest": guest_records.get(server["uuid"], {})} for server in servers_by_kind["build"]
    ]
    before, after = network_plans.spans_of(connection, servers_by_kind)
    here = host_networks.members(connection, _STAYING, network_hosts) if network_hosts else {}
    vxlans = sa.and_(network.c.id.in_(sorted(here)), network.c.vni.is_not(None))
    spans = host_networks.members(connection, vxlans) if here else {}
    moved = [] if moving else _at_other_ends(connection, leaving)
    concerned = {server["host"] or "" for of_kind in (*servers_by_kind.values(), moved) for server in of_kind}
    others = {host for hosts in (*after.values(), *spans.values()) for host in hosts}
    facts = _facts(connection, {*concerned, *others, *network_hosts}, compute_hosts)
    endpoints = {host: of_host.get("tunnel_address") or of_host.get("address") for host, of_host in facts.items()}
    tunnels = {key: {host: endpoints.get(host) for host in hosts} for key, hosts in after.items()}
    if servers_by_kind["build"]:
        network_plans.check_endpoints(connection, tunnels)

    # one that is rescued has another image than it was placed with
    rendered = [server for of_kind in servers_by_kind.values() for server in of_kind]
    placed_apart = {server["uuid"] for server in rendered if server.get("rescue") or asks_for_own([server])}
    held = own_claims(connection, placed_apart, concerned) if placed_apart else {}

    def domain_xml(server: Instance, of_host: JsonMapping) -> str:
        claim, files = held.get((server["uuid"], server["host"] or "")), of_host.get("state_dir", state_dir)
        return render(guest_of(server, of_host, state_dir=files, ledger=ledger, claim=claim))

    plans = {kind: plan_by_host(placed, facts, domain_xml, tunnels) for kind, placed in servers_by_kind.items()}
    floating = host_networks.floating(connection, set().union(*plans.values())) if any(plans.values()) else {}
    plans = {
        kind: {
            host: _with_last_users(connection, host, plan, servers_by_kind[kind], floating)
            for host, plan in of_hosts.items()
        }
        for kind, of_hosts in plans.items()
    }
    names, dhcp_of_others = network_plans.guest_names(connection, servers_by_kind)
    plans["build"] = {
        host: server_volumes.to_build(connection, network_plans.with_names(plan, host, names))
        for host, plan in _with_records(connection, plans["build"]).items()
    }
    if count_room:
        plans["build"] = _with_rooms(connection, plans["build"], {str(of_host["name"]) for of_host in compute_hosts})
    if not moving:
        plans["remove"] = {host: server_volumes.to_remove(connection, plan) for host, plan in plans["remove"].items()}
    plans, groups = group_members.complete(connection, plans, servers_by_kind)
    bridges_of_peers = network_plans.bridges_of_peers(connection, servers_by_kind, before, after, tunnels)
    peers = {
        host: NetworksPlan(bridges_of_peers.get(host, []), dhcp_of_others.get(host, []))
        for host in dict.fromkeys((*bridges_of_peers, *dhcp_of_others))
    }
    vacated = plan_by_host(moved, facts, lambda _server, _of_host: "")
    networks = network_plans.plans_of_networks(connection, network_hosts, here, spans, endpoints)
    of_hosts: list[t.Mapping[str, object]] = [*plans.values(), vacated, peers, networks, groups]
    hosts = {
        host: HostPlan(
            ledger=ledger,
            state_dir=facts.get(host, {}).get("state_dir", state_dir),
            build=plans["build"].get(host),
            keep=plans["keep"].get(host),
            remove=plans["remove"].get(host),
            vacate=vacated.get(host),
            peers=peers.get(host),
            network=networks.get(host),
            groups=groups.get(host),
        )
        for host in dict.fromkeys(host for part in of_hosts for host in part)
    }
    return HostPlans(hosts, any(map(_is_secret, guest_records.values())))


def _facts(
    connection: sa.Connection, hosts: t.Collection[str], looked_at: t.Iterable[JsonMapping]
) -> dict[str, JsonObject]:
    """The facts of these hosts, and what those that were `looked_at` just now say: one that does not answer says
    little."""
    c = compute_host.c
    rows = connection.execute(sa.select(c.name, c.state_dir, c.facts).where(c.name.in_(sorted(hosts))))
    facts: dict[str, JsonObject] = {row.name: {**row.facts, "state_dir": row.state_dir} for row in rows}
    for of_host in looked_at:
        facts[of_host["name"]] = {**facts.get(of_host["name"], {}), **of_host}
    return facts


def _with_records(connection: sa.Connection, plans: OfHosts) -> OfHosts:
    """Return the plans with what each host keeps of the ledger about the instances whose disks it builds."""
    slicer = Slicer(connection)
    return {host: _with_records_of(slicer.of_instances(plan.uuids, host), plan) for host, plan in plans.items()}


def _with_records_of(texts: t.Mapping[str, str], plan: ServersPlan) -> ServersPlan:
    disks = [{**disk, "record": texts.get(disk["uuid"])} for disk in plan.disks]
    return dataclasses.replace(plan, disks=disks)


def _with_rooms(connection: sa.Connection, plans: OfHosts, looked_at: t.Collection[str]) -> OfHosts:
    """Return the plans with the room that the ledger counts on, on hosts that were not asked what they offer."""
    of_hosts = rooms(connection, {host: plan.uuids for host, plan in plans.items() if host not in looked_at})
    return {
        host: dataclasses.replace(plan, room=of_hosts[host]) if host in of_hosts else plan
        for host, plan in plans.items()
    }


def _at_other_ends(connection: sa.Connection, leaving: Instances) -> list[Instance]:
    """The instances that leave for good, on the other hosts of their moves: disks there, kept for a revert. Networks
    are none of it: the host was taken out of them when the move was done."""
    placed = {server["uuid"]: server for server in leaving if server["host"]}
    others: list[Instance] = []
    for uuid, move in (migrations.open_moves(connection, placed) if placed else {}).items():
        host = migrations.other_host(move, placed[uuid]["host"])
        if host is not None:
            others.append({**placed[uuid], "host": host, "nics": []})
    return others


def _guest_records(connection: sa.Connection, uuids: t.Collection[str]) -> dict[str, GuestRecord]:
    """User data (base64), files and the password's hash of these instances."""
    columns = [instance.c[field] for field in GuestRecord.__annotations__]
    rows = connection.execute(sa.select(instance.c.uuid, *columns).where(instance.c.uuid.in_(uuids)))
    return {uuid: t.cast(GuestRecord, dict(zip(GuestRecord.__annotations__, values))) for uuid, *values in rows}


def _is_secret(record: GuestRecord) -> bool:
    """Tell whether tasks that carry `record` need no_log, at the price of a host's reason for a failure. The hash of a
    password that was drawn at random tells nobody anything."""
    chosen = record["password_hash"] is not None and not record["password_optional"]
    return bool(record["user_data"] or record["files"] or chosen)


def _with_last_users(
    connection: sa.Connection, host: str, plan: ServersPlan, instances: Instances, floating: host_networks.Floating
) -> ServersPlan:
    """Return the plan with what depends on the host's other instances: what goes with the last one that used it (also
    when that one's build failed), the floating IPs that go from networks which stay, and those of the others."""
    here = [server for server in instances if server["host"] == host]
    staying = _networks_in_use(connection, host, plan.uuids)
    networks = {nic["network"]["id"]: (nic["network"], nic["dhcp_server"]) for server in here for nic in server["nics"]}
    kept = {of_network["bridge"] for key, (of_network, _address) in networks.items() if key in staying}
    own = {record["bridge"]: record["floating"] for record in plan.routers}
    uuids = set(plan.uuids)
    others = {key: [entry for uuid, entry in floating.get((key, host), ()) if uuid not in uuids] for key in networks}
    return dataclasses.replace(
        plan,
        last_bridges=[record for record in plan.bridges if record["name"] not in kept],
        last_routers=[record for record in plan.routers if record["bridge"] not in kept],
        last_metadata_networks=[record for record in plan.metadata_networks if record["bridge"] not in kept],
        staying_routers=[
            router(of_network, address, own[of_network["bridge"]])
            for key, (of_network, address) in networks.items()
            if key in staying and own.get(of_network["bridge"])
        ],
        routers=[
            router(of_network, address, [*own.get(of_network["bridge"], ()), *others[key]])
            for key, (of_network, address) in sorted(networks.items())
            if of_network["bridge"] in own or others[key]
        ],
    )


_STAYING = instance.c.task_state.is_distinct_from("deleting")


def _networks_in_use(connection: sa.Connection, host: str, leaving: t.Collection[str]) -> set[int]:
    """Ids of the networks on which `host` keeps other instances than the `leaving` ones (UUIDs). One that is being
    deleted keeps nothing: of two deletions at once, each would leave the bridge to the other one. A bridge that a guest
    is still on stays until that guest's own deletion."""
    gone = set(leaving)
    hosts_by_network = host_networks.members(connection, _STAYING, [host])
    return {key for key, hosts in hosts_by_network.items() if hosts[host] - gone}
