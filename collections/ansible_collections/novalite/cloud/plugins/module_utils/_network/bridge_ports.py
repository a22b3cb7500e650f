# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces that become ports of bridges: which one, what it needs, and how it was before. Pure."""

from __future__ import annotations

import ipaddress
import typing as t

from .._addressing import places
from .._addressing.places import Use
from .._errors import ConflictError, NotFoundError
from . import move
from .additions import Additions
from .bridge_request import Bridge
from .links import Host, Link, Step, ip, set_link
from .ownership import Mark, Owner


def marked(device: str, mark: Mark, namespace: str | None = None) -> Step:
    """Write the mark on a device that this run has made, or that is ours beyond doubt."""
    return Step(ip(namespace, "link", "set", "dev", device, "alias", mark.text))


def made(device: str, kind: str, *details: str, mac: str | None = None) -> Step:
    """Make a device of this `kind`; to undo that is to delete it."""
    address = [] if mac is None else ["address", mac]
    return Step(["ip", "link", "add", "name", device, *address, "type", kind, *details], ["ip", "link", "del", device])


def port_of(bridge: Bridge, host: Host, move_address: bool) -> Link | None:
    """The link to enslave, as it will be; None for a bridge without one."""
    if bridge.vxlan is not None:
        return host.links.get(t.cast(str, bridge.port))
    if bridge.interface is None:
        return None
    port = physical_port(bridge, host)
    if bridge.vlan is not None and bridge.mark.owner(port.alias) is Owner.OTHER_LEDGER:
        raise ConflictError(
            f"bridge {bridge.name}: another ledger ({port.alias}) made {port.name} on this host; give the "
            "network another VLAN"
        )
    if port.master == bridge.name:
        return port
    if port.master is not None:
        raise ConflictError(f"bridge {bridge.name}: {port.name} already belongs to {port.master}")
    use = None if move_address else move.use_of(port, host)
    if use is not None:
        raise ConflictError(
            f"bridge {bridge.name}: {port.name} {use}; give another interface, or move_address to move its addresses "
            "and routes to the bridge"
        )
    return port


def physical_port(bridge: Bridge, host: Host) -> Link:
    """The bridge's interface, or its VLAN device there, as it will be. Raises NotFoundError, ConflictError."""
    name, interface = t.cast(str, bridge.port), t.cast(str, bridge.interface)
    parent, known = host.links.get(interface), host.links.get(name)
    if parent is None:
        raise NotFoundError(f"bridge {bridge.name}: there is no interface {interface} on this host")
    if bridge.vlan is None:
        return parent
    if known is None:
        return Link(name, parent.mac, parent.mtu, up=False, kind="vlan", parent=interface)
    if (known.kind, known.number, known.parent) != ("vlan", bridge.vlan, interface):
        raise ConflictError(f"bridge {bridge.name}: {name} exists, but is not VLAN {bridge.vlan} on {interface}")
    return known


def physical(bridge: Bridge, port: Link, links: t.Mapping[str, Link]) -> list[Step]:
    """The port, there and up, with the MTU that is asked for. What it changes of devices that are there is added."""
    steps = []
    parent = links[t.cast(str, bridge.interface)]
    if port.name not in links:
        steps.append(
            Step(
                ["ip", "link", "add", "link", parent.name, "name", port.name, "type", "vlan", "id", str(bridge.vlan)],
                ["ip", "link", "del", port.name],
            )
        )
        steps.append(marked(port.name, bridge.mark))
    if bridge.mtu is not None:
        for link in (parent, port) if parent.mtu < bridge.mtu else (port,):
            if link.mtu != bridge.mtu:
                adds = Additions(mtus=((link.name, link.mtu),)) if link.name in links else None
                steps.append(set_link(link.name, f"mtu {bridge.mtu}", f"mtu {link.mtu}", adds))
    for link in {parent.name: parent, port.name: port}.values():
        if not link.up and link.name in links:
            steps.append(set_link(link.name, "up", "down", Additions(downs=(link.name,))))
        elif not link.up:
            steps.append(set_link(link.name, "up"))
    return steps


def enslave(bridge: Bridge, port: Link) -> list[Step]:
    if port.master == bridge.name:
        return []
    steps = [set_link(port.name, f"master {bridge.name}", "nomaster", Additions(ports=(port.name,)))]
    if port.advertised:
        # Dead on a port, and their prefix would compete with the bridge's own.
        steps.append(Step(["ip", "-6", "addr", "flush", "dev", port.name, "scope", "global"]))
    return steps


def give_back(bridge: Bridge, host: Host, added: Additions, going: t.Collection[str] = ()) -> list[Step]:
    """Let devices that are not `going` be as they were before they became ports. One that others use meanwhile stays
    up, and keeps the MTU that a VLAN on it needs."""
    steps = []
    gone = {bridge.name, *going}
    for name, mtu in added.mtus:
        link = host.links.get(name)
        above = [other.mtu for other in host.links.values() if other.parent == name and other.name not in gone]
        if link is not None and name not in gone and link.mtu == bridge.mtu != mtu >= max(above, default=0):
            steps.append(set_link(name, f"mtu {mtu}"))
    for name in added.downs:
        link = host.links.get(name)
        if link is None or name in gone or not link.up or link.addresses or link.master not in (None, bridge.name):
            continue
        if name not in host.ssh | host.routed and not any(
            other.parent == name and other.name not in gone for other in host.links.values()
        ):
            steps.append(set_link(name, "down"))
    return steps


def refuse_taken(bridge: Bridge, addresses: t.Iterable[str], links: t.Mapping[str, Link]) -> None:
    """Raise ConflictError where another device has one of the bridge's addresses (CIDR)."""
    own = {ipaddress.ip_interface(text).ip for text in addresses}
    for link in links.values():
        for address in (ipaddress.ip_interface(text).ip for text in link.addresses):
            if link.name != bridge.name and address in own:
                raise ConflictError(
                    f"bridge {bridge.name}: the address {address} is on {link.name} already; remove it there"
                )


def refuse_lived_in(bridge: Bridge, host: Host) -> None:
    """Raise ConflictError where an address that the bridge is to get would cut the host off from where it lives: facts
    by which its network was let in may be old. What the bridge has already is no news."""
    link = host.links.get(bridge.name)
    there = {ipaddress.ip_interface(text).ip for text in (*link.addresses, *link.link_local)} if link else set()
    links = (bridge.name, *([] if bridge.port is None else [bridge.port]))
    for interface in map(ipaddress.ip_interface, bridge.addresses if bridge.namespace is None else ()):
        if interface.ip in there or interface.is_link_local:
            continue
        cidr, own = str(interface.network), int(interface.ip)
        place = places.conflict(Use(cidr, links, handed_out=((own, own),)), host.places, bridge.shared_routes)
        if place is not None:
            raise ConflictError(
                f"bridge {bridge.name}: with the address {interface} this host would lose {place.text}; give the "
                "network a range in which no host lives, or make it isolated"
            )


def outlived(bridge: Bridge, host: Host) -> list[str]:
    """The IPv4 addresses (CIDR) that novalite gave the bridge in ranges which its network has no more."""
    own = [address for address in map(ipaddress.ip_interface, bridge.addresses) if address.version == 4]
    ranges = [ipaddress.ip_network(text) for text in bridge.ranges] or [address.network for address in own]
    return [
        text
        for text in host.added.addresses
        if own and ":" not in text and not any(ipaddress.ip_interface(text).ip in each for each in ranges)
    ]


def changed_addresses(
    namespace: str | None, device: str, have: t.Sequence[str], going: t.Collection[str], coming: t.Iterable[str]
) -> list[Step]:
    """Take the addresses `going` (CIDR), of those that the device has, away from it, and give it those `coming`.

    The kernel drops with the first IPv4 address of a range all others of that range (promote_secondaries is 0 by
    default): the last goes first, and what is to stay is given again.
    """
    firsts: dict[str, str] = {}
    stay = []
    for text in have:
        first = firsts.setdefault(str(ipaddress.ip_interface(text).network), text)
        if first in going and text not in going and ":" not in text:
            stay.append(text)
    steps = [without_address(namespace, device, text) for text in reversed(have) if text in going or text in stay]
    return steps + [with_address(namespace, device, text) for text in dict.fromkeys((*coming, *stay))]


def without_address(namespace: str | None, device: str, text: str) -> Step:
    """Take the address (CIDR) away from the device; to undo that is to give it again."""
    step = with_address(namespace, device, text)
    return Step(t.cast("list[str]", step.undo), step.argv)


def with_address(namespace: str | None, device: str, text: str) -> Step:
    """Give the device the address (CIDR); to undo that is to take it away."""
    how = ["dev", device, "nodad"] if ":" in text else ["brd", "+", "dev", device]
    return Step(ip(namespace, "addr", "add", text, *how), ip(namespace, "addr", "del", text, "dev", device))
