# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of every compute host that instances are on, or that they are to go to."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._domain.guest import guest_of, render
from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.instance import GuestRecord, Instance, name_on_network, serves_dhcp
from ..._plan.host_plan import Plan, plan_by_host
from ..._plan.networks import TunnelMap, bridge, dhcp, router
from ..db.ledger_identity import ledger_id
from ..db.tables import compute_host, instance, network
from ..queries import group_members, host_networks
from ..queries.adopted import not_adopted
from ..volumes import server_volumes
from . import migrations
from .slices import Slicer

NAMED_HOSTS = 16
Instances = t.Sequence[Instance]


class HostPlans(t.NamedTuple):
    """Plans of hosts, by their names and "build", "keep", "remove", "vacate", "peers", "network"."""

    hosts: dict[str, dict[str, Plan]]
    secret: bool  # whether something in them may be known to the guests only: then nobody is shown them


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
) -> HostPlans:
    """The plans for these instances; reads the ledger only. One that was adopted is in none: what it stands on is not
    novalite's.

    `instances` are to be built, `existing` run already (their plan is what they are compared with), `leaving` are to
    be taken away. An instance without a host is in no plan: nothing of it is on any. `peers` is for other hosts of the
    networks: where their VXLAN tunnels lead, and which names their DHCP servers know; `network` for the hosts named in
    `network_hosts`: what their networks need according to the ledger. Every plan has `ledger`, what the host's modules
    mark their work with, and each with disks `state_dir`, where the host keeps its files (of one that the ledger does
    not know, as the caller says). `compute_hosts` are facts that the ledger may not have yet. Those that leave because
    they are `moving` keep what they have on the other host.

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
    hosts: dict[str, dict[str, Plan]] = {}
    for kind, placed in servers_by_kind.items():
        for host, plan in plan_by_host(
            placed,
            facts,
            lambda server, of_host: render(
                guest_of(server, of_host, state_dir=of_host.get("state_dir", state_dir), ledger=ledger)
            ),
            tunnels,
        ).items():
            hosts.setdefault(host, {})[kind] = plan
    floating = host_networks.floating(connection, hosts) if hosts else {}
    for host, plans in hosts.items():
        for kind, plan in plans.items():
            _complete(connection, host, plan, servers_by_kind[kind], floating)
            server_volumes.complete(connection, plan, kind, moving=moving)
    for host, plan in _other_ends(moved, facts).items():
        hosts.setdefault(host, {})["vacate"] = plan
    peers = _peers(connection, servers_by_kind, before, after, tunnels)
    for host, servers in _name_guests(connection, servers_by_kind, hosts).items():
        peers.setdefault(host, {"bridges": [], "dhcp_networks": []})["dhcp_networks"] = servers
    for host, plan in peers.items():
        hosts.setdefault(host, {})["peers"] = plan
    for host, plan in _networks(connection, network_hosts, here, spans, endpoints).items():
        hosts.setdefault(host, {})["network"] = plan
    group_members.complete(connection, hosts, servers_by_kind)
    _keep_records(connection, hosts)
    for host, of_host in hosts.items():
        for plan in of_host.values():
            plan["ledger"] = ledger
            if "disks" in plan:
                plan["state_dir"] = facts.get(host, {}).get("state_dir", state_dir)
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


def _keep_records(connection: sa.Connection, hosts: t.Mapping[str, t.Mapping[str, Plan]]) -> None:
    """Add to the disks that are built what their host keeps of the ledger about their instances."""
    slicer = Slicer(connection)
    for host, plans in hosts.items():
        if "build" in plans:
            texts = slicer.of_instances(plans["build"]["uuids"], host)
            for disk in plans["build"]["disks"]:
                disk["record"] = texts.get(disk["uuid"])


def _at_other_ends(connection: sa.Connection, leaving: Instances) -> list[Instance]:
    """The instances that leave for good, on the other hosts of their moves."""
    placed = {server["uuid"]: server for server in leaving if server["host"]}
    others: list[Instance] = []
    for uuid, move in (migrations.open_moves(connection, placed) if placed else {}).items():
        host = migrations.other_host(move, placed[uuid]["host"])
        if host is not None:
            others.append({**placed[uuid], "host": host, "nics": []})
    return others


def _other_ends(instances: Instances, facts: t.Mapping[str, JsonMapping]) -> dict[str, Plan]:
    """Return plans for those hosts: disks there, kept for a revert. Networks are none of it: the host was taken out of
    them when the move was done."""
    return {
        host: {**plan, "last_bridges": [], "last_routers": [], "last_metadata_networks": [], "staying_routers": []}
        for host, plan in plan_by_host(instances, facts, lambda _server, _of_host: "").items()
    }


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


def _complete(
    connection: sa.Connection, host: str, plan: Plan, instances: Instances, floating: host_networks.Floating
) -> None:
    """Add what depends on the host's other instances: what goes with the last one that used it (also when that one's
    build failed), the floating IPs that go from networks which stay, and those of the others."""
    here = [server for server in instances if server["host"] == host]
    staying = _networks_in_use(connection, host, plan["uuids"])
    networks = {nic["network"]["id"]: (nic["network"], nic["dhcp_server"]) for server in here for nic in server["nics"]}
    kept = {of_network["bridge"] for key, (of_network, _address) in networks.items() if key in staying}
    plan["last_bridges"] = [server for server in plan["bridges"] if server["name"] not in kept]
    plan["last_routers"] = [record for record in plan["routers"] if record["bridge"] not in kept]
    plan["last_metadata_networks"] = [record for record in plan["metadata_networks"] if record["bridge"] not in kept]
    own = {record["bridge"]: record["floating"] for record in plan["routers"]}
    uuids = set(plan["uuids"])
    others = {key: [entry for uuid, entry in floating.get((key, host), ()) if uuid not in uuids] for key in networks}
    plan["staying_routers"] = [
        router(of_network, address, own[of_network["bridge"]])
        for key, (of_network, address) in networks.items()
        if key in staying and own.get(of_network["bridge"])
    ]
    plan["routers"] = [
        router(of_network, address, [*own.get(of_network["bridge"], ()), *others[key]])
        for key, (of_network, address) in sorted(networks.items())
        if of_network["bridge"] in own or others[key]
    ]


_STAYING = instance.c.task_state.is_distinct_from("deleting")


def _networks_in_use(connection: sa.Connection, host: str, leaving: t.Collection[str]) -> set[int]:
    """Ids of the networks on which `host` keeps other instances than the `leaving` ones (UUIDs). One that is being
    deleted keeps nothing: of two deletions at once, each would leave the bridge to the other one. A bridge that a guest
    is still on stays until that guest's own deletion."""
    gone = set(leaving)
    hosts_by_network = host_networks.members(connection, _STAYING, [host])
    return {key for key, hosts in hosts_by_network.items() if hosts[host] - gone}


def _peers(
    connection: sa.Connection,
    servers_by_kind: t.Mapping[str, Instances],
    before: t.Mapping[int, set[str]],
    after: t.Mapping[int, set[str]],
    tunnels: TunnelMap,
) -> dict[str, Plan]:
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
    return {
        host: {"bridges": bridges, "dhcp_networks": []}
        for host, bridges in _bridges(connection, network_host_pairs, tunnels).items()
    }


def _name_guests(
    connection: sa.Connection, servers_by_kind: t.Mapping[str, Instances], hosts: t.Mapping[str, t.Mapping[str, Plan]]
) -> dict[str, list[Plan]]:
    """Put the names of guests on other hosts into the plans, since guests ask the server of their own host; and
    return for each host that has nothing to build there, but guests of such a network, the servers that are to know.

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
        return {}
    known = host_networks.guests(connection, changing)
    now: dict[int, dict[str, list[Plan]]] = {key: {} for key in changing}
    for key, of_hosts in known.items():
        for host, entries in of_hosts.items():
            names = [name for uuid, name in entries if uuid not in gone]
            if names:
                now[key][host] = names
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
    for key, host in building & {(key, host) for key, of_hosts in named.items() for host in of_hosts}:
        for server in hosts[host]["build"]["dhcp_networks"]:
            if server["bridge"] == changing[key]["bridge"]:
                server["names"] = _elsewhere(named[key], host)
    waiting = [(key, host) for key, of_hosts in named.items() for host in of_hosts if (key, host) not in building]
    networks = host_networks.networks_on(connection, waiting)
    dhcp_servers: dict[str, list[Plan]] = {}
    for key, host in waiting:
        if not serves_dhcp(networks[key, host].network):
            continue
        server = {**dhcp(*networks[key, host]), "names": _elsewhere(named[key], host)}
        dhcp_servers.setdefault(host, []).append(server)
    return dhcp_servers


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
) -> dict[str, Plan]:
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
        host: {
            "bridges": bridges.get(host, []),
            "routers": [
                router(
                    networks[key, host].network,
                    networks[key, host].address,
                    [mapping for _uuid, mapping in floating.get((key, host), ())],
                )
                for key in sorted(here)
                if host in here[key]
            ],
            # of networks that may have got a subnet, or lost one; the guests that are known there stay
            "dhcp_networks": [
                dhcp(*networks[key, host])
                for key in sorted(here.keys() & of_projects)
                if host in here[key] and serves_dhcp(networks[key, host].network)
            ],
        }
        for host in hosts
    }
