# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Bridges on a host: what `ip -j` reports as data in, the commands that are missing out. Pure.

The bridge is in the host's own namespace, where libvirt plugs guests into it. Its addresses are there too, or, for an
isolated network, in a namespace of its own that a pair of veth devices joins to the bridge; two such networks may use
the same addresses.
"""

from __future__ import annotations

import ipaddress
import os
import typing as t

from .._errors import ConflictError, NovaliteError
from .._json import JsonObject
from . import bridge_shared, move, namespaces
from .bridge_ports import changed_addresses, enslave, give_back, made, marked, outlived, physical, port_of, refuse_taken
from .bridge_request import NAME, VXLAN_PORT, Bridge, Vxlan, parse
from .links import Host, Link, Living, Step, flood, ip, set_link
from .ownership import Owner

__all__ = ["Bridge", "Host", "Link", "Step", "Vxlan", "parse", "plan_absent", "plan_present", "summary"]


def plan_present(bridge: Bridge, host: Host, move_address: bool = False) -> list[Step]:
    """The steps that are missing, in order. Raises NovaliteError where one would cut the host off or take away
    somebody else's device. With `move_address` what the host has on the port (`host.living`) moves to the bridge
    first; what else is missing shows when it has moved."""
    links, link = host.links, host.links.get(bridge.name)
    if link is not None and link.kind != "bridge":
        raise ConflictError(f"{bridge.name} exists and is not a bridge ({link.kind or 'a device'}); give another name")
    owner = bridge_shared.owner(bridge, host)
    if link is not None and owner is Owner.OTHER_LEDGER:
        raise ConflictError(
            f"bridge {bridge.name} on this host was made by another ledger ({link.alias}); give the network another "
            "bridge"
        )
    if link is not None and owner is Owner.NOT_MARKED:
        if not bridge.up:
            raise ConflictError(f"bridge {bridge.name} was there before and is not set down; give the network another")
        return bridge_shared.plan_present(bridge, host) + _plugged(bridge, links)
    port = port_of(bridge, host, move_address)
    mac = port.mac if port is not None and bridge.vxlan is None else None
    steps: list[Step] = []
    if link is None:
        # No spanning tree and no delay: a guest's first DHCP request must pass.
        create = made(bridge.name, "bridge", "stp_state", "0", "forward_delay", "0", mac=mac or _random_mac())
        steps += [create, marked(bridge.name, bridge.mark)]
    elif link.alias is None:
        steps.append(marked(bridge.name, bridge.mark))  # of a novalite that wrote no marks
    if link is not None and (not link.permanent_mac or (mac is not None and link.mac != mac)):
        # Without a MAC of its own the bridge takes the lowest of its ports', and changes it with every guest.
        steps.append(set_link(bridge.name, f"address {mac or link.mac}"))
    is_up = link is not None and link.up
    up = [] if is_up == bridge.up else [set_link(bridge.name, "up" if bridge.up else "down")]
    if bridge.vxlan is not None:
        steps += _tunnel(bridge, bridge.vxlan, links)
    elif port is not None:
        steps += physical(bridge, port, links)
        moving = host.living.get(port.name)
        if moving is not None and port.master is None and (moving.addresses or moving.routes):
            return [*steps, *up, move.to_bridge(bridge.name, port.name, moving)]
        steps += enslave(bridge, port)
    if bridge.mtu is not None and (link is None or link.mtu != bridge.mtu):
        steps.append(set_link(bridge.name, f"mtu {bridge.mtu}", f"mtu {link.mtu}" if link else None))
    if bridge.namespace is not None:
        return steps + _joined(bridge, bridge.namespace, host) + up + _plugged(bridge, links)
    steps += _own_link_local(bridge, None, link) + up + _plugged(bridge, links)
    # Addresses that the host lives by are not taken away to be put back behind ours.
    in_use = bridge.name in host.ssh or bridge.name in host.routed
    return steps + _addresses(bridge, None, link, host, reorder=not in_use)


def _plugged(bridge: Bridge, links: t.Mapping[str, Link]) -> list[Step]:
    """A bridge that went took its ports' membership with it, and libvirt plugs a guest in only when it starts."""
    steps = []
    for name in bridge.taps:
        tap = links.get(name)
        if tap is not None and tap.master != bridge.name:
            if not NAME.fullmatch(name):
                raise NovaliteError(f"{name!r} is not a name of a network device")
            undo = f"master {tap.master}" if tap.master else "nomaster"
            steps.append(set_link(name, f"master {bridge.name}", undo))
    return steps


def plan_absent(bridge: Bridge, host: Host) -> tuple[list[Step], list[str]]:
    """The steps that remove the bridge, or what was added to one of others; none where it is in use, and its users."""
    link = host.links.get(bridge.name)
    if link is None:
        return _without_namespace(bridge, host), []
    if link.kind != "bridge":
        raise ConflictError(f"{bridge.name} is not a bridge ({link.kind or 'a device'}) and is left alone")
    owner = bridge_shared.owner(bridge, host)
    if owner is Owner.OTHER_LEDGER:
        return [], [f"another ledger ({link.alias}), which made it"]
    if owner is Owner.NOT_MARKED:
        return bridge_shared.plan_absent(bridge, host), []
    own = {bridge.port, namespaces.port_name(bridge.name)}
    ports = [link.name for link in host.links.values() if link.master == bridge.name]
    others = [name for name in ports if name not in own]
    moving = host.living.get(bridge.name)
    if moving is None and bridge.name in host.ssh:
        others.append("the ssh session that Ansible came by")
    elif moving is None and bridge.name in host.routed:
        others.append("routes of this host")
    if others:
        return [], others
    steps = []
    if moving is not None and bridge.port in ports and _moved(bridge, moving):
        steps.append(move.from_bridge(bridge.name, bridge.port, moving, bridge.addresses))
        ports.remove(bridge.port)
    steps += [set_link(name, "nomaster") for name in ports]
    # A process that is left in a namespace keeps it, and would keep these in it.
    going = [
        name
        for name in (namespaces.port_name(bridge.name), namespaces.transit_name(bridge.name))
        if name in host.links and bridge.mark.owner(host.links[name].alias) is not Owner.OTHER_LEDGER
    ]
    going += bridge_shared.own_port(bridge, host)
    steps += [Step(["ip", "link", "del", name]) for name in going]
    steps += give_back(bridge, host, host.added, going)
    steps.append(Step(["ip", "link", "del", bridge.name]))
    return steps + _without_namespace(bridge, host), []


def _without_namespace(bridge: Bridge, host: Host) -> list[Step]:
    """Remove the bridge's namespace, if it is ours: marked, or with the bridge's own name in it."""
    inside = host.inside.get(bridge.namespace or "")
    if bridge.namespace is None or inside is None:
        return []
    lo = inside.get("lo")
    owner = bridge.mark.owner(lo.alias if lo else None)
    if owner is Owner.OURS or (owner is Owner.NOT_MARKED and bridge.name in inside):
        return [Step(["ip", "netns", "del", bridge.namespace])]
    return []


def _moved(bridge: Bridge, living: Living) -> bool:
    foreign = {f"{row['local']}/{row['prefixlen']}" for row in living.addresses} - set(bridge.addresses)
    return bool(foreign or living.routes)


def summary(bridge: Bridge, host: Host) -> JsonObject:
    """The bridge as the diff shows it; empty when it does not exist."""
    link = host.links.get(bridge.name)
    if link is None:
        return {}
    port = host.links.get(bridge.port) if bridge.port else None
    shown = {
        "mac": link.mac if link.permanent_mac else f"{link.mac} (not fixed)",
        "mtu": link.mtu,
        "up": link.up,
        "addresses": [*link.addresses, *link.link_local],
        "port": port.name if port and port.master == bridge.name else None,
    }  # type: JsonObject
    if bridge.taps:
        shown["taps"] = [name for name in bridge.taps if name in host.links and host.links[name].master == bridge.name]
    if port is not None and port.kind == "vxlan":
        shown["vxlan"] = {"local": port.local, "remotes": sorted(port.remotes)}
    if bridge.namespace is not None:
        inner = host.inside.get(bridge.namespace, {}).get(bridge.name)
        shown["namespace"] = {bridge.namespace: [*inner.addresses, *inner.link_local]} if inner else None
    return shown


def _tunnel(bridge: Bridge, vxlan: Vxlan, links: t.Mapping[str, Link]) -> list[Step]:
    """The VXLAN device, in the bridge, flooding to exactly the remotes.

    No multicast group and no controller: the ledger knows which hosts have guests on a network, so the list of ends is
    static, and what is behind which end is learned from traffic.
    """
    name = t.cast(str, bridge.port)
    link = links.get(name)
    if link is not None and (link.kind != "vxlan" or link.number != vxlan.vni):
        raise ConflictError(f"bridge {bridge.name}: {name} exists, but is not VXLAN {vxlan.vni}")
    if link is not None and link.master not in (None, bridge.name):
        raise ConflictError(f"bridge {bridge.name}: {name} already belongs to {link.master}")
    if link is not None and bridge.mark.owner(link.alias) is Owner.OTHER_LEDGER:
        raise ConflictError(
            f"bridge {bridge.name}: another ledger ({link.alias}) has VXLAN {vxlan.vni} on this host; give the "
            "network another identifier"
        )
    if link is not None and link.alias is None and link.dstport != VXLAN_PORT:
        raise ConflictError(f"bridge {bridge.name}: {name} exists and is not novalite's; rename it")
    steps: list[Step] = []
    if link is not None and link.local != vxlan.local:
        # The tunnel end moved: what was learned and flooded belongs to the old one.
        steps.append(Step(["ip", "link", "del", name]))
        link = None
    if link is None:
        create = made(name, "vxlan", "id", str(vxlan.vni), "local", vxlan.local, "dstport", str(VXLAN_PORT))
        steps += [create, marked(name, bridge.mark)]
    elif link.alias is None:
        steps.append(marked(name, bridge.mark))
    port = link or Link(name, "", 0, up=False)
    if bridge.mtu is not None and port.mtu != bridge.mtu:
        steps.append(set_link(name, f"mtu {bridge.mtu}", f"mtu {port.mtu}" if port.mtu else None))
    for operation, undo, remotes, others in (
        ("del", "append", port.remotes, vxlan.remotes),
        ("append", "del", vxlan.remotes, port.remotes),
    ):
        differing = [remote for remote in remotes if remote not in others]
        steps += [Step(flood(operation, name, remote), flood(undo, name, remote)) for remote in differing]
    return steps + enslave(bridge, port) + ([] if port.up else [set_link(name, "up")])


def _joined(bridge: Bridge, namespace: str, host: Host) -> list[Step]:
    """The namespace, the veth pair that joins it to the bridge, and the addresses in it."""
    steps: list[Step] = []
    inside = host.inside.get(namespace)
    port = namespaces.port_name(bridge.name)
    outer, inner = host.links.get(port), (inside or {}).get(bridge.name)
    if outer is not None and (outer.kind != "veth" or outer.master not in (None, bridge.name)):
        raise ConflictError(f"bridge {bridge.name}: {port} exists and does not lead into {namespace}; remove it")
    lo = (inside or {}).get("lo", Link("lo", "", 0, up=False))
    for what, text in ((f"the namespace {namespace}", lo.alias), (port, outer.alias if outer else None)):
        if bridge.mark.owner(text) is Owner.OTHER_LEDGER:
            raise ConflictError(
                f"bridge {bridge.name}: another ledger ({text}) made {what} on this host; give the network another "
                "bridge"
            )
    strangers = [name for name, link in (inside or {}).items() if link.up and name not in ("lo", namespaces.TRANSIT)]
    if lo.alias is None and inner is None and strangers:
        raise ConflictError(f"bridge {bridge.name}: {namespace} exists, with {strangers[0]}, and is not novalite's")
    if inside is None:
        steps.append(Step(["ip", "netns", "add", namespace], ["ip", "netns", "del", namespace]))
    if not lo.up or lo.alias is None:  # its mark is that of the namespace
        steps.append(Step(ip(namespace, "link", "set", "dev", "lo", "up", "alias", bridge.mark.text)))
    if outer is not None and inner is None:
        steps.append(Step(["ip", "link", "del", port]))  # it leads into a namespace that is gone
        outer = None
    if inner is not None and outer is None:
        raise ConflictError(f"bridge {bridge.name}: {namespace} has a {bridge.name} that does not lead to the bridge")
    if outer is None:
        steps.append(made(port, "veth", "peer", "name", bridge.name, "netns", namespace))
    if outer is None or outer.alias is None:
        steps.append(marked(port, bridge.mark))
    if bridge.mtu is not None:
        for where, name, link in ((None, port, outer), (namespace, bridge.name, inner)):
            if link is None or link.mtu != bridge.mtu:
                steps.append(Step(ip(where, "link", "set", name, "mtu", str(bridge.mtu))))
    steps += _own_link_local(bridge, namespace, inner)
    if inner is None or not inner.up:
        steps.append(Step(ip(namespace, "link", "set", bridge.name, "up")))
    steps += _addresses(bridge, namespace, inner, host, reorder=True)
    outer = outer or Link(port, "", 0, up=False)
    return steps + enslave(bridge, outer) + ([] if outer.up else [set_link(port, "up")])


def _own_link_local(bridge: Bridge, namespace: str | None, link: Link | None) -> list[Step]:
    """Steps that leave a given link-local address as the only one: guests know their router by it."""
    ours = [text for text in bridge.addresses if ipaddress.ip_interface(text).is_link_local and ":" in text]
    if not ours or (link is not None and all(text in ours for text in link.link_local) and link.link_local):
        return []
    steps = [Step(ip(namespace, "link", "set", bridge.name, "addrgenmode", "none"))]
    return steps + [
        Step(ip(namespace, "addr", "del", text, "dev", bridge.name))
        for text in (link.link_local if link else ())
        if text not in ours
    ]


def _addresses(bridge: Bridge, namespace: str | None, link: Link | None, host: Host, reorder: bool) -> list[Step]:
    refuse_taken(bridge, bridge.addresses, host.inside.get(namespace, {}) if namespace else host.links)
    there = [*link.addresses, *link.link_local] if link else []
    leaving = outlived(bridge, host)
    steps: list[Step] = []
    for colons in (False, True):  # IPv4, then IPv6
        ours, present = ([text for text in texts if (":" in text) == colons] for texts in (bridge.addresses, there))
        have = [text for text in present if text not in leaving]
        own = {ipaddress.ip_interface(text).ip for text in ours}
        if ours and have[: len(ours)] != ours and reorder and not colons:
            # Ours come first: dnsmasq answers from the first. The others are put back behind them, in their order.
            going, coming = have, [*ours, *(text for text in have if ipaddress.ip_interface(text).ip not in own)]
        else:
            going = [text for text in have if text not in ours and ipaddress.ip_interface(text).ip in own]
            coming = [text for text in ours if text not in have]
        gone = {*going, *leaving}
        steps += changed_addresses(namespace, bridge.name, present, gone, coming)
    return steps


def _random_mac() -> str:
    return ":".join(f"{byte:02x}" for byte in (0x02, *os.urandom(5)))  # 02: locally administered, unicast
