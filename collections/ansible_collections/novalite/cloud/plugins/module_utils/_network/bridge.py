# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""What a bridge needs on a host: what `ip -j` reports as data in, the commands that are missing out. Pure.

The bridge is in the host's own namespace, where libvirt plugs guests into it. Its addresses are there too, or, for an
isolated network, in a namespace of its own that a pair of veth devices joins to the bridge; two such networks may use
the same addresses.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import os
import re
import typing as t

from .._errors import ConflictError, NotFoundError, NovaliteError
from . import move, namespaces
from .links import Host, Link, Living, Step, flood, ip

VXLAN_PORT = 4789
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")  # the kernel's limit is 15 characters


@dataclasses.dataclass(frozen=True)
class Vxlan:
    """`local` is this host's tunnel end point, `remotes` those of the other hosts that have guests on the network."""

    vni: int
    local: str = ""
    remotes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Bridge:
    """`interface` is the physical port; with `vlan` the port is `vlan<ID>` on top of it, named as Nova names it, and
    with `vxlan` it is `vxlan<VNI>`. `addresses` are the host's own in this network (CIDR), in `namespace` if there is
    one. `mtu` in bytes."""

    name: str
    interface: str | None = None
    addresses: tuple[str, ...] = ()
    vlan: int | None = None
    vxlan: Vxlan | None = None
    namespace: str | None = None
    mtu: int | None = None
    taps: tuple[str, ...] = ()  # guests' devices, plugged in again where they are on no bridge or on another one

    @property
    def port(self) -> str | None:
        if self.vxlan is not None:
            return f"vxlan{self.vxlan.vni}"
        return self.interface if self.vlan is None else f"vlan{self.vlan}"


def parse(values: t.Iterable[t.Mapping[str, t.Any]], state: str = "present") -> list[Bridge]:
    """The module's `bridges`. Raises NovaliteError for a name, VLAN, address or MTU that cannot be."""
    bridges = [_parse_one(value) for value in values]
    for bridge in bridges:
        if state == "present" and bridge.vxlan is not None and not bridge.vxlan.local:
            raise NovaliteError(f"bridge {bridge.name}: vxlan needs local, this host's address for its tunnels")
    for what, found in (("bridge", [bridge.name for bridge in bridges]),
                        ("namespace", [bridge.namespace for bridge in bridges if bridge.namespace])):
        if len(set(found)) != len(found):
            raise NovaliteError(f"a {what} is given twice; give each {what} once")
    return bridges


def _parse_one(value: t.Mapping[str, t.Any]) -> Bridge:
    name = value["name"]
    for device in (name, value.get("interface")):
        if device is not None and not _NAME.fullmatch(device):
            raise NovaliteError(f"{device!r} is no name of a network device; use up to 15 letters, digits, - _ .")
    vlan, mtu, tunnel = value.get("vlan"), value.get("mtu"), value.get("vxlan")
    if vlan is not None and (value.get("interface") is None or not 1 <= vlan <= 4094):
        raise NovaliteError(f"bridge {name}: VLAN {vlan} needs an interface and an id from 1 to 4094")
    if mtu is not None and not 576 <= mtu <= 65535:
        raise NovaliteError(f"bridge {name}: MTU {mtu} is not between 576 and 65535 bytes")
    if tunnel is not None and value.get("interface") is not None:
        raise NovaliteError(f"bridge {name}: give either an interface ({value['interface']}) or vxlan")
    return Bridge(
        name=name,
        interface=value.get("interface"),
        addresses=tuple(_interface(name, text) for text in value.get("addresses") or ()),
        vlan=vlan,
        vxlan=None if tunnel is None else _vxlan(name, tunnel),
        namespace=namespaces.check_name(value["namespace"]) if value.get("namespace") else None,
        mtu=mtu,
        taps=tuple(value.get("taps") or ()),
    )


def _vxlan(name: str, value: t.Mapping[str, t.Any]) -> Vxlan:
    if not 1 <= value["vni"] < 2**24:
        raise NovaliteError(f"bridge {name}: VXLAN identifier {value['vni']} is not between 1 and 16777215")
    if value.get("local") is None:
        return Vxlan(value["vni"])
    ends = []
    for text in (value["local"], *(value.get("remotes") or ())):
        try:
            ends.append(ipaddress.ip_address(str(text)))
        except ValueError:
            raise NovaliteError(f"bridge {name}: {text!r} is no address of a VXLAN tunnel's end") from None
    local, remotes = ends[0], sorted(set(ends[1:]), key=int)
    if any(remote.version != local.version or remote == local for remote in remotes):
        raise NovaliteError(
            f"bridge {name}: the remote tunnel ends {', '.join(map(str, remotes))} must be other hosts' "
            f"IPv{local.version} addresses, as the local end is {local}"
        )
    return Vxlan(value["vni"], str(local), tuple(map(str, remotes)))


def _interface(name: str, text: str) -> str:
    try:
        address = str(ipaddress.ip_interface(text))
    except ValueError:
        address = ""
    if "/" not in text or not address:
        raise NovaliteError(f"bridge {name}: {text!r} is no address with a prefix; write it as 10.20.0.2/24")
    return address


def plan_present(bridge: Bridge, host: Host, move_address: bool = False) -> list[Step]:
    """The steps that are missing, in order. Raises NovaliteError where one would cut the host off or take away
    somebody else's device. With `move_address` what the host has on the port (`host.living`) moves to the bridge
    first; what else is missing shows when it has moved."""
    links = host.links
    found = links.get(bridge.name)
    if found is not None and found.kind != "bridge":
        raise ConflictError(f"{bridge.name} exists and is no bridge ({found.kind or 'a device'}); give another name")
    port = _port(bridge, host, move_address)
    mac = port.mac if port is not None and bridge.vxlan is None else None
    steps = []  # type: list[Step]
    if found is None:
        # No spanning tree and no delay: a guest's first DHCP request must pass.
        create = ["ip", "link", "add", "name", bridge.name, "address", mac or _random_mac(),
                  "type", "bridge", "stp_state", "0", "forward_delay", "0"]
        steps.append(Step(create, ["ip", "link", "del", bridge.name]))
    elif not found.permanent_mac or (mac is not None and found.mac != mac):
        # Without a MAC of its own the bridge takes the lowest of its ports', and changes it with every guest.
        steps.append(Step(["ip", "link", "set", bridge.name, "address", mac or found.mac]))
    up = [Step(["ip", "link", "set", bridge.name, "up"])] if found is None or not found.up else []
    if bridge.vxlan is not None:
        steps += _tunnel(bridge, bridge.vxlan, links)
    elif port is not None:
        steps += _physical(bridge, port, links)
        moving = host.living.get(port.name)
        if moving is not None and port.master is None and (moving.addresses or moving.routes):
            return [*steps, *up, move.to_bridge(bridge.name, port.name, moving)]
        steps += _enslave(bridge, port)
    if bridge.mtu is not None and (found is None or found.mtu != bridge.mtu):
        undo = ["ip", "link", "set", bridge.name, "mtu", str(found.mtu)] if found else None
        steps.append(Step(["ip", "link", "set", bridge.name, "mtu", str(bridge.mtu)], undo))
    if bridge.namespace is not None:
        return steps + _joined(bridge, bridge.namespace, host) + up + _plugged(bridge, links)
    steps += _own_link_local(bridge, None, found) + up + _plugged(bridge, links)
    # Addresses that the host lives by are not taken away to be put back behind ours.
    in_use = bridge.name in host.ssh or bridge.name in host.routed
    return steps + _addresses(bridge, None, found, links, reorder=not in_use)


def _plugged(bridge: Bridge, links: t.Mapping[str, Link]) -> list[Step]:
    """A bridge that went took its ports' membership with it, and libvirt plugs a guest in only when it starts."""
    steps = []
    for name in bridge.taps:
        tap = links.get(name)
        if tap is not None and tap.master != bridge.name:
            if not _NAME.fullmatch(name):
                raise NovaliteError(f"{name!r} is no name of a network device")
            undo = ["ip", "link", "set", name, *(["master", tap.master] if tap.master else ["nomaster"])]
            steps.append(Step(["ip", "link", "set", name, "master", bridge.name], undo))
    return steps


def plan_absent(bridge: Bridge, host: Host) -> tuple[list[Step], list[str]]:
    """The steps that remove the bridge and its namespace, or none and what still uses it."""
    found = host.links.get(bridge.name)
    if found is None:
        return ([Step(["ip", "netns", "del", bridge.namespace])] if bridge.namespace in host.inside else []), []
    if found.kind != "bridge":
        raise ConflictError(f"{bridge.name} is no bridge ({found.kind or 'a device'}) and is left alone")
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
    steps += [Step(["ip", "link", "set", name, "nomaster"]) for name in ports]
    # A process that is left in a namespace keeps it, and would keep these in it.
    steps += [Step(["ip", "link", "del", name])
              for name in (namespaces.port_name(bridge.name), namespaces.transit_name(bridge.name))
              if name in host.links]
    if (bridge.vlan is not None or bridge.vxlan is not None) and bridge.port in host.links:
        steps.append(Step(["ip", "link", "del", bridge.port]))
    steps.append(Step(["ip", "link", "del", bridge.name]))
    if bridge.namespace in host.inside:
        steps.append(Step(["ip", "netns", "del", bridge.namespace]))
    return steps, []


def _moved(bridge: Bridge, living: Living) -> bool:
    foreign = {f"{row['local']}/{row['prefixlen']}" for row in living.addresses} - set(bridge.addresses)
    return bool(foreign or living.routes)


def summary(bridge: Bridge, host: Host) -> dict[str, t.Any]:
    """The bridge as the diff shows it; empty when it does not exist."""
    found = host.links.get(bridge.name)
    if found is None:
        return {}
    port = host.links.get(bridge.port) if bridge.port else None
    shown = {"mac": found.mac if found.permanent_mac else f"{found.mac} (not fixed)", "mtu": found.mtu, "up": found.up,
             "addresses": [*found.addresses, *found.link_local],
             "port": port.name if port and port.master == bridge.name else None}  # type: dict[str, t.Any]
    if bridge.taps:
        shown["taps"] = [name for name in bridge.taps if name in host.links and host.links[name].master == bridge.name]
    if port is not None and port.kind == "vxlan":
        shown["vxlan"] = {"local": port.local, "remotes": sorted(port.remotes)}
    if bridge.namespace is not None:
        inner = host.inside.get(bridge.namespace, {}).get(bridge.name)
        shown["namespace"] = {bridge.namespace: [*inner.addresses, *inner.link_local]} if inner else None
    return shown


def _port(bridge: Bridge, host: Host, move_address: bool) -> Link | None:
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
        port = known or Link(bridge.port, parent.mac, parent.mtu, up=False, kind="vlan", parent=parent.name)
    if port.master == bridge.name:
        return port
    if port.master is not None:
        raise ConflictError(f"bridge {bridge.name}: {port.name} already belongs to {port.master}")
    if not move_address:
        move.refuse(bridge.name, port, host)
    return port


def _physical(bridge: Bridge, port: Link, links: t.Mapping[str, Link]) -> list[Step]:
    """The port, there and up, with the MTU that is asked for."""
    steps = []
    parent = links[t.cast(str, bridge.interface)]
    if port.name not in links:
        steps.append(Step(
            ["ip", "link", "add", "link", parent.name, "name", port.name, "type", "vlan", "id", str(bridge.vlan)],
            ["ip", "link", "del", port.name],
        ))
    if bridge.mtu is not None:
        for link in (parent, port) if parent.mtu < bridge.mtu else (port,):
            if link.mtu != bridge.mtu:
                steps.append(Step(["ip", "link", "set", link.name, "mtu", str(bridge.mtu)],
                                  ["ip", "link", "set", link.name, "mtu", str(link.mtu)]))
    for link in {parent.name: parent, port.name: port}.values():
        if not link.up:
            steps.append(Step(["ip", "link", "set", link.name, "up"],
                              ["ip", "link", "set", link.name, "down"] if link.name in links else None))
    return steps


def _enslave(bridge: Bridge, port: Link) -> list[Step]:
    if port.master == bridge.name:
        return []
    steps = [Step(["ip", "link", "set", port.name, "master", bridge.name],
                  ["ip", "link", "set", port.name, "nomaster"])]
    if port.advertised:
        # Dead on a port, and their prefix would compete with the bridge's own.
        steps.append(Step(["ip", "-6", "addr", "flush", "dev", port.name, "scope", "global"]))
    return steps


def _tunnel(bridge: Bridge, vxlan: Vxlan, links: t.Mapping[str, Link]) -> list[Step]:
    """The VXLAN device, in the bridge, flooding to exactly the remotes.

    No multicast group and no controller: the ledger knows which hosts have guests on a network, so the list of ends is
    static, and what is behind which end is learned from traffic.
    """
    name = t.cast(str, bridge.port)
    found = links.get(name)
    if found is not None and (found.kind != "vxlan" or found.number != vxlan.vni):
        raise ConflictError(f"bridge {bridge.name}: {name} exists, but is not VXLAN {vxlan.vni}")
    if found is not None and found.master not in (None, bridge.name):
        raise ConflictError(f"bridge {bridge.name}: {name} already belongs to {found.master}")
    steps = []  # type: list[Step]
    if found is not None and found.local != vxlan.local:
        # The tunnel end moved: what was learned and flooded belongs to the old one.
        steps.append(Step(["ip", "link", "del", name]))
        found = None
    if found is None:
        create = ["ip", "link", "add", "name", name, "type", "vxlan", "id", str(vxlan.vni),
                  "local", vxlan.local, "dstport", str(VXLAN_PORT)]
        steps.append(Step(create, ["ip", "link", "del", name]))
    mtu = None if found is None else found.mtu
    if bridge.mtu is not None and mtu != bridge.mtu:
        steps.append(Step(["ip", "link", "set", name, "mtu", str(bridge.mtu)],
                          ["ip", "link", "set", name, "mtu", str(mtu)] if mtu else None))
    known = found.remotes if found else ()
    for remote in known:
        if remote not in vxlan.remotes:
            steps.append(Step(flood("del", name, remote), flood("append", name, remote)))
    for remote in vxlan.remotes:
        if remote not in known:
            steps.append(Step(flood("append", name, remote), flood("del", name, remote)))
    port = found or Link(name, "", 0, up=False)
    return steps + _enslave(bridge, port) + ([] if port.up else [Step(["ip", "link", "set", name, "up"])])


def _joined(bridge: Bridge, namespace: str, host: Host) -> list[Step]:
    """The namespace, the veth pair that joins it to the bridge, and the addresses in it."""
    steps = []  # type: list[Step]
    inside = host.inside.get(namespace)
    port = namespaces.port_name(bridge.name)
    outer, inner = host.links.get(port), (inside or {}).get(bridge.name)
    if outer is not None and (outer.kind != "veth" or outer.master not in (None, bridge.name)):
        raise ConflictError(f"bridge {bridge.name}: {port} exists and is no way into {namespace}; remove it")
    if inside is None:
        steps.append(Step(["ip", "netns", "add", namespace], ["ip", "netns", "del", namespace]))
    if not (inside or {}).get("lo", Link("lo", "", 0, up=False)).up:
        steps.append(Step(ip(namespace, "link", "set", "lo", "up")))
    if outer is not None and inner is None:
        steps.append(Step(["ip", "link", "del", port]))  # it leads into a namespace that is gone
        outer = None
    if inner is not None and outer is None:
        raise ConflictError(f"bridge {bridge.name}: {namespace} has a {bridge.name} that does not lead to the bridge")
    if outer is None:
        create = ["ip", "link", "add", "name", port, "type", "veth", "peer", "name", bridge.name, "netns", namespace]
        steps.append(Step(create, ["ip", "link", "del", port]))
    if bridge.mtu is not None:
        for where, name, link in ((None, port, outer), (namespace, bridge.name, inner)):
            if link is None or link.mtu != bridge.mtu:
                steps.append(Step(ip(where, "link", "set", name, "mtu", str(bridge.mtu))))
    steps += _own_link_local(bridge, namespace, inner)
    if inner is None or not inner.up:
        steps.append(Step(ip(namespace, "link", "set", bridge.name, "up")))
    steps += _addresses(bridge, namespace, inner, inside or {}, reorder=True)
    outer = outer or Link(port, "", 0, up=False)
    return steps + _enslave(bridge, outer) + ([] if outer.up else [Step(["ip", "link", "set", port, "up"])])


def _own_link_local(bridge: Bridge, namespace: str | None, found: Link | None) -> list[Step]:
    """Where a link-local address is given it is the only one: guests know their router by it."""
    ours = [text for text in bridge.addresses if ipaddress.ip_interface(text).is_link_local and ":" in text]
    if not ours or (found is not None and all(text in ours for text in found.link_local) and found.link_local):
        return []
    steps = [Step(ip(namespace, "link", "set", bridge.name, "addrgenmode", "none"))]
    return steps + [Step(ip(namespace, "addr", "del", text, "dev", bridge.name))
                    for text in (found.link_local if found else ()) if text not in ours]


def _addresses(
    bridge: Bridge, namespace: str | None, found: Link | None, links: t.Mapping[str, Link], reorder: bool
) -> list[Step]:
    steps = []  # type: list[Step]
    for version in (4, 6):
        ours = [text for text in bridge.addresses if ipaddress.ip_interface(text).version == version]
        own = {ipaddress.ip_interface(text).ip for text in ours}
        for link in links.values():
            for text in link.addresses:
                if link.name != bridge.name and ipaddress.ip_interface(text).ip in own:
                    raise ConflictError(
                        f"bridge {bridge.name}: the address {ipaddress.ip_interface(text).ip} is on {link.name} "
                        "already; remove it there"
                    )
        have = [text for text in (*found.addresses, *found.link_local)
                if ipaddress.ip_interface(text).version == version] if found else []
        if version == 4 and ours and have[: len(ours)] != ours and reorder:
            # Ours come first: dnsmasq answers from the first. The others are put back behind them, in their order.
            going, coming = have, [*ours, *(text for text in have if ipaddress.ip_interface(text).ip not in own)]
        else:
            going = [text for text in have if text not in ours and ipaddress.ip_interface(text).ip in own]
            coming = [text for text in ours if text not in have]
        steps += [Step(ip(namespace, "addr", "del", text, "dev", bridge.name), _add(namespace, bridge.name, text))
                  for text in going]
        steps += [Step(_add(namespace, bridge.name, text), ip(namespace, "addr", "del", text, "dev", bridge.name))
                  for text in coming]
    return steps


def _add(namespace: str | None, device: str, text: str) -> list[str]:
    if ":" in text:
        return ip(namespace, "addr", "add", text, "dev", device, "nodad")
    return ip(namespace, "addr", "add", text, "brd", "+", "dev", device)


def _random_mac() -> str:
    return ":".join(f"{byte:02x}" for byte in (0x02, *os.urandom(5)))  # 02: locally administered, unicast
