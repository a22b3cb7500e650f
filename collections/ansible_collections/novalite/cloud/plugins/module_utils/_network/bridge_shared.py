# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bridges that novalite did not make: whose a bridge is, and what is added to one of others and taken back. Pure.

Ports, addresses, MAC, MTU, spanning tree, up or down and the settings of such a bridge stay as they are. It gets the
host's addresses in the network, and the network's interface where that is free; both are written down (additions.py).
"""

from __future__ import annotations

import dataclasses
import ipaddress

from .._errors import ConflictError
from . import bridged, move, namespaces
from .additions import Additions
from .bridge_ports import (
    changed_addresses,
    enslave,
    give_back,
    outlived,
    physical,
    physical_port,
    refuse_taken,
    with_address,
)
from .bridge_request import VXLAN_PORT, Bridge
from .links import Host, Link, Step, set_link
from .ownership import Owner


def owner(bridge: Bridge, host: Host) -> Owner:
    """Owner of the bridge. One without a mark is ours where its port can be nobody else's: the way into the namespace
    of the network, or its VXLAN device (made by a novalite that wrote no marks yet)."""
    link = host.links.get(bridge.name)
    whose = bridge.mark.owner(link.alias if link else None)
    if link is None or whose is not Owner.NOT_MARKED:
        return whose
    way = host.links.get(namespaces.port_name(bridge.name)) if bridge.namespace else None
    tunnel = host.links.get(bridge.port or "") if bridge.vxlan is not None else None
    joined = way is not None and way.kind == "veth" and way.master == bridge.name
    tunnelled = tunnel is not None and tunnel.master == bridge.name and _is_tunnel(bridge, tunnel)
    return Owner.OURS if joined or tunnelled else Owner.NOT_MARKED


def own_port(bridge: Bridge, host: Host) -> list[str]:
    """The name of the VLAN or VXLAN device below the bridge, if it is there and ours."""
    link = host.links.get(bridge.port or "")
    if link is None or (bridge.vlan is None and bridge.vxlan is None):
        return []
    whose = bridge.mark.owner(link.alias)
    ours = whose is Owner.OURS or (whose is Owner.NOT_MARKED and bridge.vxlan is not None and _is_tunnel(bridge, link))
    return [link.name] if ours else []


def plan_present(bridge: Bridge, host: Host) -> list[Step]:
    """The steps that add to a bridge of others. Raises NovaliteError where that would change anything of theirs."""
    link = host.links[bridge.name]
    if bridge.vxlan is not None or bridge.namespace is not None:
        raise ConflictError(
            f"bridge {bridge.name} exists on this host and novalite did not make it, and a network with a namespace or "
            f"VXLAN needs a bridge of its own; rename it, or, if it is a leftover of novalite's, mark it: ip link set "
            f"{bridge.name} alias {bridge.mark.text}"
        )
    if not link.up:
        raise ConflictError(f"bridge {bridge.name} is down, and novalite did not make it: set it up on this host")
    port = None if bridge.interface is None else _free_port(bridge, host)
    steps = [] if port is None else [*physical(bridge, port, host.links), *enslave(bridge, port)]
    return steps + _addresses(bridge, link, host)


def _free_port(bridge: Bridge, host: Host) -> Link | None:
    """The link that is to become a port of the bridge; None when it is one."""
    known = host.links.get(bridge.port or "")
    if known is not None and known.master == bridge.name:
        return None
    link = physical_port(bridge, host)
    use = f"belongs to {link.master}" if link.master else move.use_of(link, host)
    if use is not None:
        raise ConflictError(
            f"bridge {bridge.name} was not made by novalite and {link.name} is not a port of it: {link.name} {use}. "
            "Put it into the bridge on this host, or give the network no bridge_interface"
        )
    return link


def _addresses(bridge: Bridge, link: Link, host: Host) -> list[Step]:
    refuse_taken(bridge, bridge.addresses, host.links)
    have = {ipaddress.ip_interface(text).ip for text in (*link.addresses, *link.link_local)}
    return changed_addresses(None, bridge.name, link.addresses, outlived(bridge, host), ()) + [
        dataclasses.replace(with_address(None, bridge.name, text), adds=Additions(addresses=(text,)))
        for text in bridge.addresses
        if ipaddress.ip_interface(text).ip not in have
    ]


def plan_absent(bridge: Bridge, host: Host) -> list[Step]:
    """Take back what this ledger added, as far as it is still there."""
    link, added = host.links[bridge.name], host.added
    there = [*link.addresses, *link.link_local]
    steps = changed_addresses(None, bridge.name, there, added.addresses, ())
    ports = [name for name in added.ports if name in host.links and host.links[name].master == bridge.name]
    steps += [set_link(name, "nomaster") for name in ports]
    steps += [Step(bridged.command(bridge.name, switch, "0")) for switch in added.switches]
    going = own_port(bridge, host)
    steps += [Step(["ip", "link", "del", name]) for name in going]
    left = dataclasses.replace(added, downs=tuple(name for name in added.downs if name != bridge.name))
    return steps + give_back(bridge, host, left, going)


def warnings(bridge: Bridge, host: Host) -> list[str]:
    """Remarks for people on a bridge that carries no mark."""
    link, port = host.links[bridge.name], host.links.get(bridge.port or "")
    unmarked = port is not None and port.alias is None and port.master == bridge.name
    if port and unmarked and bridge.vlan is not None and bridge.name == f"br{bridge.vlan}":
        return [
            f"{bridge.name} and {port.name} carry no mark, so they stay as they are and are never removed; if an "
            f"earlier novalite made them, say so: ip link set {bridge.name} alias {bridge.mark.text}; "
            f"ip link set {port.name} alias {bridge.mark.text}"
        ]
    if bridge.mtu is not None and link.mtu < bridge.mtu:
        return [
            f"bridge {bridge.name} has an MTU of {link.mtu} bytes, its network one of {bridge.mtu}; novalite did "
            "not make the bridge and leaves it: set it on this host, or give the network the smaller one"
        ]
    return []


def _is_tunnel(bridge: Bridge, link: Link) -> bool:
    return bridge.vxlan is not None and (link.kind, link.number, link.dstport) == (
        "vxlan",
        bridge.vxlan.vni,
        VXLAN_PORT,
    )
