# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plans of the networks of hosts: tunnels to the others, names of guests there, and what the ledger says of each."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ..._errors import NovaliteError
from ..._model.instance import Instance, name_on_network, serves_dhcp
from ..._plan.host_plan import NetworksPlan, Plan, ServersPlan
from ..._plan.networks import TunnelMap, bridge, dhcp, router
from ..db.tables import network
from ..queries.network import host_networks

NAMED_HOSTS = 16


Instances = t.Sequence[Instance]


def spans_of(
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


def check_endpoints(connection: sa.Connection, tunnels: TunnelMap) -> None:
    for key, hosts in tunnels.items():
        missing = sorted(host for host, end in hosts.items() if not end)
        if missing:
            name = connection.execute(sa.select(network.c.name).where(network.c.id == key)).scalar_one()
            raise NovaliteError(
                f"network {name!r} is a VXLAN and the compute host {missing[0]} has no tunnel address: give it "
                "compute_node_tunnel_address in the inventory and run playbooks/compute_nodes.yml"
            )


def bridges_of_peers(
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


Names = dict[tuple[str, str], list[Plan]]  # (bridge, host) -> the names of guests on the other hosts of the network


def with_names(plan: ServersPlan, host: str, names: Names) -> ServersPlan:
    """Return a host's plan whose DHCP servers know the guests on other hosts: guests ask the server of their own."""
    dhcp_networks = [
        {**server, "names": names[server["bridge"], host]} if (server["bridge"], host) in names else server
        for server in plan.dhcp_networks
    ]
    return dataclasses.replace(plan, dhcp_networks=dhcp_networks)


def guest_names(
    connection: sa.Connection, servers_by_kind: t.Mapping[str, Instances]
) -> tuple[Names, dict[str, list[Plan]]]:
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


def plans_of_networks(
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
    check_endpoints(connection, tunnels)
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
