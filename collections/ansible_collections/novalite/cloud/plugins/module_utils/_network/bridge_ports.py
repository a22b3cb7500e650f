# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces that become ports of bridges: which one, what it needs, and how it was before. Pure."""

from __future__ import annotations

import typing as t

from .._errors import ConflictError, NotFoundError
from . import move
from .additions import Additions
from .bridge_request import Bridge
from .links import Host, Link, Step, ip
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
    if bridge.interface is None or bridge.port is None:
        return None
    parent = host.links.get(bridge.interface)
    if parent is None:
        raise NotFoundError(f"bridge {bridge.name}: there is no interface {bridge.interface} on this host")
    port = parent
    if bridge.vlan is not None:
        known = host.links.get(bridge.port)
        if known is not None and (known.kind != "vlan" or known.number != bridge.vlan or known.parent != parent.name):
            raise ConflictError(
                f"bridge {bridge.name}: {bridge.port} exists, but is not VLAN {bridge.vlan} on {bridge.interface}"
            )
        if known is not None and bridge.mark.owner(known.alias) is Owner.OTHER_LEDGER:
            raise ConflictError(
                f"bridge {bridge.name}: another ledger ({known.alias}) made {known.name} on this host; give the "
                "network another VLAN"
            )
        port = known or Link(bridge.port, parent.mac, parent.mtu, up=False, kind="vlan", parent=parent.name)
    if port.master == bridge.name:
        return port
    if port.master is not None:
        raise ConflictError(f"bridge {bridge.name}: {port.name} already belongs to {port.master}")
    if not move_address:
        move.refuse(bridge.name, port, host)
    return port


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
                steps.append(
                    Step(
                        ["ip", "link", "set", link.name, "mtu", str(bridge.mtu)],
                        ["ip", "link", "set", link.name, "mtu", str(link.mtu)],
                        adds=Additions(mtus=((link.name, link.mtu),)) if link.name in links else None,
                    )
                )
    for link in {parent.name: parent, port.name: port}.values():
        if not link.up:
            steps.append(
                Step(
                    ["ip", "link", "set", link.name, "up"],
                    ["ip", "link", "set", link.name, "down"] if link.name in links else None,
                    adds=Additions(downs=(link.name,)) if link.name in links else None,
                )
            )
    return steps


def enslave(bridge: Bridge, port: Link) -> list[Step]:
    if port.master == bridge.name:
        return []
    steps = [
        Step(
            ["ip", "link", "set", port.name, "master", bridge.name],
            ["ip", "link", "set", port.name, "nomaster"],
            adds=Additions(ports=(port.name,)),
        )
    ]
    if port.advertised:
        # Dead on a port, and their prefix would compete with the bridge's own.
        steps.append(Step(["ip", "-6", "addr", "flush", "dev", port.name, "scope", "global"]))
    return steps


def give_back(bridge: Bridge, host: Host, added: Additions, going: t.Collection[str] = ()) -> list[Step]:
    """Let devices be as they were before they became ports; those that are `going` need nothing.

    A device that others use meanwhile stays up, and keeps the MTU that a VLAN on it needs.
    """
    steps = []
    gone = {bridge.name, *going}
    for name, mtu in added.mtus:
        link = host.links.get(name)
        above = [other.mtu for other in host.links.values() if other.parent == name and other.name not in gone]
        if link is not None and name not in gone and link.mtu == bridge.mtu != mtu >= max(above, default=0):
            steps.append(Step(["ip", "link", "set", name, "mtu", str(mtu)]))
    for name in added.downs:
        link = host.links.get(name)
        if link is None or name in gone or not link.up or link.addresses or link.master not in (None, bridge.name):
            continue
        if name not in host.ssh | host.routed and not any(
            other.parent == name and other.name not in gone for other in host.links.values()
        ):
            steps.append(Step(["ip", "link", "set", name, "down"]))
    return steps


def add_address(namespace: str | None, device: str, text: str) -> list[str]:
    if ":" in text:
        return ip(namespace, "addr", "add", text, "dev", device, "nodad")
    return ip(namespace, "addr", "add", text, "brd", "+", "dev", device)
