# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of every compute host that instances are on, or that they are to go to."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._domain.guest import guest_of, render
from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import GuestRecord, Instance, name_on_network, serves_dhcp
from ..._plan.host_plan import GroupsPlan, HostPlan, NetworksPlan, Plan, ServersPlan, plan_by_host
from ..._plan.networks import TunnelMap, bridge, dhcp, router
from ..db.ledger_identity import ledger_id
from ..db.tables import compute_host, instance, network
from ..placement.fresh_facts import rooms
from ..queries import group_members, host_networks
from ..queries.adopted import not_adopted
from ..volumes import server_volumes
from . import migrations
from .slices import Slicer

NAMED_HOSTS = 16
Instances = t.Sequence[Instance]
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
    before, after = _spans(connection, servers_by_kind)
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
        _check_endpoints(connection, tunnels)

    def domain_xml(server: Instance, of_host: JsonMapping) -> str:
        return render(guest_of(server, of_host, state_dir=of_host.get("state_dir", state_dir), ledger=ledger))

    plans = {kind: plan_by_host(placed, facts, domain_xml, tunnels) for kind, placed in servers_by_kind.items()}
    floating = host_networks.floating(connection, set().union(*plans.values())) if any(plans.values()) else {}
    plans = {
        kind: {
            host: _with_last_users(connection, host, plan, servers_by_kind[kind], floating)
            for host, plan in of_hosts.items()
        }
        for kind, of_hosts in plans.items()
    }
    names, dhcp_of_others = _guest_names(connection, servers_by_kind)
    plans["build"] = {
        host: server_volumes.to_build(connection, _with_names(plan, host, names))
        for host, plan in _with_records(connection, plans["build"]).items()
    }
    if count_room:
        plans["build"] = _with_rooms(connection, plans["build"], {str(of_host["name"]) for of_host in compute_hosts})
    if not moving:
        plans["remove"] = {host: server_volumes.to_remove(connection, plan) for host, plan in plans["remove"].items()}
    plans, groups = group_members.complete(connection, plans, servers_by_kind)
    bridges_of_peers = _bridges_of_peers(connection, servers_by_kind, before, after, tunnels)
    parts: dict[str, t.Mapping[str, ServersPlan | NetworksPlan | GroupsPlan]] = {
        **plans,
        "vacate": plan_by_host(moved, facts, lambda _server, _of_host: ""),
        "peers": {
            host: NetworksPlan(bridges_of_peers.get(host, []), dhcp_of_others.get(host, []))
            for host in dict.fromkeys((*bridges_of_peers, *dhcp_of_others))
        },
        "network": _networks(connection, network_hosts, here, spans, endpoints),
        "groups": groups,
    }
    hosts = {
        host: HostPlan(
            ledger=ledger,
            state_dir=facts.get(host, {}).get("state_dir", state_dir),
            **{name: of_hosts[host] for name, of_hosts in parts.items() if host in of_hosts},  # type: ignore[arg-type]
        )
        for host in dict.fromkeys(host for of_hosts in parts.values() for host in of_hosts)
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


def _spans(
    connection: sa.Connection, servers_by_kind: t.Mapping[str, Instances]
) -> tuple[dict[int, set[str]], dict[int, set[str]]]:
    """Id of each VXLAN network of these instances -> its hosts, before and after what is planned."""
    touched = {
        nic["network"]["id"]
        for instances in servers_by_kind.values()
        for server in instances
        for nic in server["nics"]
        if nic["network"]["vni"] is not None
    }
    before: dict[int, set[str]] = {key: set() for key in touched}
    after: dict[int, set[str]] = {key: set() for key in touched}
    if not touched:
        return before, after
    building = {server["uuid"] for server in servers_by_kind["build"]}
    leaving = {server["uuid"] for server in servers_by_kind["remove"]}
    for key, hosts in host_networks.members(connection, network.c.id.in_(sorted(touched))).items():
        before[key] = {host for host, uuids in hosts.items() if uuids - building}
        after[key] = {host for host, uuids in hosts.items() if uuids - building - leaving}
    # not from the ledger: in check mode it does not know yet where they go
    for server in servers_by_kind["build"]:
        for nic in server["nics"]:
            if nic["network"]["id"] in touched:
                after[nic["network"]["id"]].add(server["host"] or "")
    return before, after


def _check_endpoints(connection: sa.Connection, tunnels: TunnelMap) -> None:
    for key, hosts in tunnels.items():
        missing = sorted(host for host, end in hosts.items() if not end)
        if missing:
            name = connection.execute(sa.select(network.c.name).where(network.c.id == key)).scalar_one()
            raise NovaliteError(
                f"network {name!r} is a VXLAN and the compute host {missing[0]} has no tunnel address: give it "
                "compute_node_tunnel_address in the inventory and run playbooks/compute_nodes.yml"
            )


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


def _bridges_of_peers(
    connection: sa.Connection,
    servers_by_kind: t.Mapping[str, Instances],
    before: t.Mapping[int, set[str]],
    after: t.Mapping[int, set[str]],
    tunnels: TunnelMap,
) -> dict[str, list[Plan]]:
    """The bridges of hosts that have nothing to build on a VXLAN network whose set of hosts changes."""
    building = {(nic["network"]["id"], server["host"]) for server in servers_by_kind["build"] for nic in server["nics"]}
    # an attempt that failed may have left its host in the others' lists
    again = {
        nic["network"]["id"] for server in servers_by_kind["build"] if server.get("attempts") for nic in server["nics"]
    }
    network_host_pairs = {
        (key, host)
        for key in before
        if before[key] != after[key] or key in again
        for host in before[key] & after[key]
        if (key, host) not in building
    }
    return _bridges(connection, network_host_pairs, tunnels)


_Names = dict[tuple[str, str], list[Plan]]  # (bridge, host) -> the names of guests on the other hosts of the network


def _with_names(plan: ServersPlan, host: str, names: _Names) -> ServersPlan:
    """Return a host's plan whose DHCP servers know the guests on other hosts: guests ask the server of their own."""
    dhcp_networks = [
        {**server, "names": names[server["bridge"], host]} if (server["bridge"], host) in names else server
        for server in plan.dhcp_networks
    ]
    return dataclasses.replace(plan, dhcp_networks=dhcp_networks)


def _guest_names(
    connection: sa.Connection, servers_by_kind: t.Mapping[str, Instances]
) -> tuple[_Names, dict[str, list[Plan]]]:
    """Return the names that the servers of hosts that build are to know, and for each host that has nothing to build
    there, but guests of such a network, the servers that are to know new names.

    A network of more than NAMED_HOSTS hosts does without: each launch would have to call at all of them.
    """
    changing = {
        nic["network"]["id"]: nic["network"]
        for kind in ("build", "remove")
        for record in servers_by_kind[kind]
        for nic in record["nics"]
        if serves_dhcp(nic["network"])
    }
    gone = {record["uuid"] for kind in ("build", "remove") for record in servers_by_kind[kind]}
    # each that goes may be the last one on its host
    most = NAMED_HOSTS + len(gone)
    changing = {key: row for key, row in changing.items() if not host_networks.is_wide(connection, key, most)}
    if not changing:
        return {}, {}
    known = host_networks.guests(connection, changing)
    now: dict[int, dict[str, list[Plan]]] = {key: {} for key in changing}
    for key, of_hosts in known.items():
        for host, entries in of_hosts.items():
            if staying := [name for uuid, name in entries if uuid not in gone]:
                now[key][host] = staying
    # not from the ledger: in check mode it does not know yet where they go
    building: set[tuple[int, str]] = set()
    for record in servers_by_kind["build"]:
        host = record["host"] or ""
        for nic in record["nics"]:
            key = nic["network"]["id"]
            if key in changing:
                name = host_networks.named(name_on_network(nic, record["hostname"]), nic["ip"], nic["ipv6"])
                now[key].setdefault(host, []).append(name)
                building.add((key, host))
    named = {key: of_hosts for key, of_hosts in now.items() if len(of_hosts) <= NAMED_HOSTS}
    names = {
        (changing[key]["bridge"], host): _elsewhere(of_hosts, host)
        for key, of_hosts in named.items()
        for host in of_hosts
        if (key, host) in building
    }
    waiting = [(key, host) for key, of_hosts in named.items() for host in of_hosts if (key, host) not in building]
    networks = host_networks.networks_on(connection, waiting)
    dhcp_servers: dict[str, list[Plan]] = {}
    for key, host in waiting:
        if not serves_dhcp(networks[key, host].network):
            continue
        server = {**dhcp(*networks[key, host]), "names": _elsewhere(named[key], host)}
        dhcp_servers.setdefault(host, []).append(server)
    return names, dhcp_servers


def _elsewhere(of_hosts: t.Mapping[str, list[Plan]], host: str) -> list[Plan]:
    return [name for other in sorted(of_hosts) if other != host for name in of_hosts[other]]


def _bridges(
    connection: sa.Connection, network_host_pairs: t.Collection[tuple[int, str]], tunnels: TunnelMap
) -> dict[str, list[Plan]]:
    """The bridge of each (network, host)."""
    networks = host_networks.networks_on(connection, network_host_pairs)
    bridges: dict[str, list[Plan]] = {}
    for key, host in sorted(network_host_pairs):
        on_host = networks[key, host]
        bridges.setdefault(host, []).append(bridge(on_host.network, host, on_host.address, tunnels))
    return bridges


def _networks(
    connection: sa.Connection,
    hosts: t.Sequence[str],
    here: host_networks.Members,
    spans: host_networks.Members,
    endpoints: t.Mapping[str, str | None],
) -> dict[str, NetworksPlan]:
    """Return the plans of these hosts' networks, by the ledger alone: of those that are `here`, of which `spans` are
    VXLANs with all their hosts."""
    if not hosts:
        return {}
    tunnels = {key: {host: endpoints.get(host) for host in members} for key, members in spans.items()}
    _check_endpoints(connection, tunnels)
    bridges = _bridges(connection, {(key, host) for key in here for host in here[key]}, tunnels)
    networks = host_networks.networks_on(connection, [(key, host) for key in here for host in here[key]])
    floating = host_networks.floating(connection, hosts)
    tenant = sa.select(network.c.id).where(network.c.id.in_(sorted(here)), network.c.tenant.is_(True))
    of_projects = set(connection.execute(tenant).scalars())
    return {
        host: NetworksPlan(
            bridges=bridges.get(host, []),
            routers=[
                router(
                    networks[key, host].network,
                    networks[key, host].address,
                    [mapping for _uuid, mapping in floating.get((key, host), ())],
                )
                for key in sorted(here)
                if host in here[key]
            ],
            # of networks that may have got a subnet, or lost one; the guests that are known there stay
            dhcp_networks=[
                dhcp(*networks[key, host])
                for key in sorted(here.keys() & of_projects)
                if host in here[key] and serves_dhcp(networks[key, host].network)
            ],
        )
        for host in hosts
    }
