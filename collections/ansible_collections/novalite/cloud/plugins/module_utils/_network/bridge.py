# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""A host's bridges: what `ip -j` reports as data in, the `ip` commands that are missing out.

`plan` is pure, so that check mode, the diff and the tests see what a run would do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import os
import re
import typing as t

from .._command import CommandError, run
from .._errors import ConflictError, NotFoundError, NovaliteError
from .._host import locked

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")  # the kernel's limit is 15 characters
_PERMANENT_MAC = "3"  # NET_ADDR_SET: an address that does not change when ports come and go


@dataclasses.dataclass(frozen=True)
class Bridge:
    """`interface` is the physical port; with `vlan` the port is `vlan<ID>` on top of it, named as Nova names it.
    `address` is the host's own in this network (CIDR), `mtu` in bytes."""

    name: str
    interface: str | None = None
    address: str | None = None
    vlan: int | None = None
    mtu: int | None = None

    @property
    def port(self) -> str | None:
        return self.interface if self.vlan is None else f"vlan{self.vlan}"


@dataclasses.dataclass
class Link:
    name: str
    mac: str
    mtu: int
    up: bool
    kind: str | None = None
    master: str | None = None
    parent: str | None = None
    vlan: int | None = None
    addresses: tuple[str, ...] = ()  # global ones, in the kernel's order
    permanent_mac: bool = False


@dataclasses.dataclass
class Host:
    """What the host is like. `ssh` are the links that the session that runs this module depends on."""

    links: dict[str, Link]
    routed: frozenset[str] = frozenset()
    ssh: frozenset[str] = frozenset()


@dataclasses.dataclass
class Step:
    """One command, and the one that takes it back."""

    argv: list[str]
    undo: list[str] | None = None


def parse(values: t.Iterable[t.Mapping[str, t.Any]]) -> list[Bridge]:
    """The module's `bridges`. Raises NovaliteError for a name, VLAN, address or MTU that cannot be."""
    bridges = []
    for value in values:
        bridge = Bridge(value["name"], value.get("interface"), value.get("address"), value.get("vlan"),
                        value.get("mtu"))
        for name in (bridge.name, bridge.interface):
            if name is not None and not _NAME.fullmatch(name):
                raise NovaliteError(f"{name!r} is no name of a network device; use up to 15 letters, digits, - _ .")
        if bridge.vlan is not None and (bridge.interface is None or not 1 <= bridge.vlan <= 4094):
            raise NovaliteError(f"bridge {bridge.name}: VLAN {bridge.vlan} needs an interface and an id from 1 to 4094")
        if bridge.mtu is not None and not 576 <= bridge.mtu <= 65535:
            raise NovaliteError(f"bridge {bridge.name}: MTU {bridge.mtu} is not between 576 and 65535 bytes")
        if bridge.address is not None:
            try:
                address = str(ipaddress.ip_interface(bridge.address))
            except ValueError:
                address = ""
            if "/" not in bridge.address or not address:
                raise NovaliteError(
                    f"bridge {bridge.name}: {bridge.address!r} is no address with a prefix; write it as 10.20.0.2/24"
                )
            bridge = dataclasses.replace(bridge, address=address)
        bridges.append(bridge)
    if len({bridge.name for bridge in bridges}) != len(bridges):
        raise NovaliteError("a bridge is given twice; give each bridge once")
    return bridges


def read_links(text: str, permanent: t.Container[str] = ()) -> dict[str, Link]:
    """The output of `ip -d -j addr show` as links by name."""
    links = {}
    for row in json.loads(text):
        if "ifname" not in row:
            continue
        info = row.get("linkinfo", {})
        links[row["ifname"]] = Link(
            name=row["ifname"],
            mac=row.get("address", ""),
            mtu=row.get("mtu", 0),
            up="UP" in row.get("flags", ()),
            kind=info.get("info_kind"),
            master=row.get("master"),
            parent=row.get("link"),
            vlan=info.get("info_data", {}).get("id") if info.get("info_kind") == "vlan" else None,
            addresses=tuple(f"{entry['local']}/{entry['prefixlen']}" for entry in row.get("addr_info", ())
                            if entry.get("scope") == "global" and not entry.get("temporary")),
            permanent_mac=row["ifname"] in permanent,
        )
    return links


def plan_present(bridge: Bridge, host: Host) -> list[Step]:
    """The steps that are missing, in order. Raises NovaliteError where one would cut the host off or take away
    somebody else's device."""
    links = host.links
    found = links.get(bridge.name)
    if found is not None and found.kind != "bridge":
        raise ConflictError(f"{bridge.name} exists and is no bridge ({found.kind or 'a device'}); give another name")
    port = _port(bridge, host)
    steps = []  # type: list[Step]
    if found is None:
        mac = port.mac if port is not None else _random_mac()
        # No spanning tree and no delay: a guest's first DHCP request must pass.
        create = ["ip", "link", "add", "name", bridge.name, "address", mac,
                  "type", "bridge", "stp_state", "0", "forward_delay", "0"]
        steps.append(Step(create, ["ip", "link", "del", bridge.name]))
    elif port is not None and (found.mac != port.mac or not found.permanent_mac):
        # Without a MAC of its own the bridge takes the lowest of its ports', and changes it with every guest.
        steps.append(Step(["ip", "link", "set", bridge.name, "address", port.mac]))
    elif not found.permanent_mac:
        steps.append(Step(["ip", "link", "set", bridge.name, "address", found.mac]))
    if port is not None:
        steps += _enslave(bridge, port, links)
    if bridge.mtu is not None and (found is None or found.mtu != bridge.mtu):
        undo = ["ip", "link", "set", bridge.name, "mtu", str(found.mtu)] if found else None
        steps.append(Step(["ip", "link", "set", bridge.name, "mtu", str(bridge.mtu)], undo))
    if found is None or not found.up:
        steps.append(Step(["ip", "link", "set", bridge.name, "up"]))
    return steps + _address(bridge, found, links)


def plan_absent(bridge: Bridge, host: Host) -> tuple[list[Step], list[str]]:
    """The steps that remove the bridge, or none and the ports that still use it."""
    found = host.links.get(bridge.name)
    if found is None:
        return [], []
    if found.kind != "bridge":
        raise ConflictError(f"{bridge.name} is no bridge ({found.kind or 'a device'}) and is left alone")
    ports = [link.name for link in host.links.values() if link.master == bridge.name]
    others = [name for name in ports if name != bridge.port]
    if others:
        return [], others
    steps = [Step(["ip", "link", "set", name, "nomaster"]) for name in ports]
    if bridge.vlan is not None and bridge.port in ports:
        steps.append(Step(["ip", "link", "del", bridge.port]))
    steps.append(Step(["ip", "link", "del", bridge.name]))
    return steps, []


def summary(bridge: Bridge, host: Host) -> dict[str, t.Any]:
    """The bridge as the diff shows it; empty when it does not exist."""
    found = host.links.get(bridge.name)
    if found is None:
        return {}
    port = bridge.port if bridge.port and bridge.port in host.links else None
    return {"mac": found.mac if found.permanent_mac else f"{found.mac} (not fixed)", "mtu": found.mtu, "up": found.up,
            "addresses": list(found.addresses),
            "port": port if port and host.links[port].master == bridge.name else None}


def _port(bridge: Bridge, host: Host) -> Link | None:
    """The link to enslave, as it will be; None for a bridge without one."""
    if bridge.interface is None or bridge.port is None:
        return None
    parent = host.links.get(bridge.interface)
    if parent is None:
        raise NotFoundError(f"bridge {bridge.name}: there is no interface {bridge.interface} on this host")
    port = parent
    if bridge.vlan is not None:
        known = host.links.get(bridge.port)
        if known is not None and (known.kind != "vlan" or known.vlan != bridge.vlan or known.parent != parent.name):
            raise ConflictError(
                f"bridge {bridge.name}: {bridge.port} exists, but is not VLAN {bridge.vlan} on {bridge.interface}"
            )
        port = known or Link(bridge.port, parent.mac, parent.mtu, up=False, kind="vlan", parent=parent.name)
    if port.master == bridge.name:
        return port
    if port.master is not None:
        raise ConflictError(f"bridge {bridge.name}: {port.name} already belongs to {port.master}")
    # A port's own addresses and routes stop working once it belongs to a bridge.
    if port.name in host.ssh:
        raise ConflictError(
            f"bridge {bridge.name}: {port.name} carries the ssh session that Ansible came by; give another interface"
        )
    if port.addresses:
        raise ConflictError(
            f"bridge {bridge.name}: {port.name} carries the address {port.addresses[0]}, which would be cut off; "
            "give another interface, or move its addresses to the bridge first"
        )
    if port.name in host.routed:
        raise ConflictError(f"bridge {bridge.name}: routes of this host use {port.name}; give another interface")
    return port


def _enslave(bridge: Bridge, port: Link, links: t.Mapping[str, Link]) -> list[Step]:
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
    if port.master != bridge.name:
        steps.append(Step(["ip", "link", "set", port.name, "master", bridge.name],
                          ["ip", "link", "set", port.name, "nomaster"]))
    for name in dict.fromkeys((parent.name, port.name)):
        if name not in links or not links[name].up:
            steps.append(Step(["ip", "link", "set", name, "up"],
                              ["ip", "link", "set", name, "down"] if name in links else None))
    return steps


def _address(bridge: Bridge, found: Link | None, links: t.Mapping[str, Link]) -> list[Step]:
    if bridge.address is None:
        return []
    ours = ipaddress.ip_interface(bridge.address)
    for link in links.values():
        if link.name != bridge.name and any(ipaddress.ip_interface(text).ip == ours.ip for text in link.addresses):
            raise ConflictError(
                f"bridge {bridge.name}: the address {ours.ip} is on {link.name} already; remove it there"
            )
    have = [text for text in (found.addresses if found else ())
            if ipaddress.ip_interface(text).version == ours.version]
    if have[:1] == [bridge.address]:
        return []
    # Ours comes first: it is the one that dnsmasq answers from. The others are put back behind it, in their order.
    again = [text for text in have if ipaddress.ip_interface(text).ip != ours.ip]
    steps = [Step(["ip", "addr", "del", text, "dev", bridge.name], ["ip", "addr", "add", text, "dev", bridge.name])
             for text in have]
    for text in [bridge.address, *again]:
        argv = ["ip", "addr", "add", text, "dev", bridge.name]
        if ours.version == 4:
            argv[4:4] = ["brd", "+"]
        else:
            argv.append("nodad")
        steps.append(Step(argv, ["ip", "addr", "del", text, "dev", bridge.name]))
    return steps


def _random_mac() -> str:
    return ":".join(f"{byte:02x}" for byte in (0x02, *os.urandom(5)))  # 02: locally administered, unicast


def look() -> Host:
    """Read links, routes and the way of this ssh session."""
    text = run(["ip", "-d", "-j", "addr", "show"]).stdout
    permanent = set()
    for name in (row.get("ifname") for row in json.loads(text)):
        with contextlib.suppress(OSError, TypeError), open(
            os.path.join("/sys/class/net", name, "addr_assign_type"), encoding="ascii"
        ) as handle:
            if handle.read().strip() == _PERMANENT_MAC:
                permanent.add(name)
    links = read_links(text, permanent)
    routed = {row["dev"] for row in json.loads(run(["ip", "-j", "route", "show"]).stdout or "[]") if "dev" in row}
    return Host(links, frozenset(routed), frozenset(_ssh_links(links, os.environ)))


def _ssh_links(links: t.Mapping[str, Link], environment: t.Mapping[str, str]) -> set[str]:
    session = environment.get("SSH_CONNECTION", "").split()
    if len(session) != 4:
        return set()
    client, server = session[0].partition("%")[0], session[2].partition("%")[0]
    names = {link.name for link in links.values()
             if any(text.partition("/")[0] == server for text in link.addresses)}
    with contextlib.suppress(CommandError):
        names |= {row["dev"] for row in json.loads(run(["ip", "-j", "route", "get", client]).stdout or "[]")
                  if "dev" in row}
    return names


def ensure(bridges: t.Sequence[Bridge], state: str, check_mode: bool = False) -> dict[str, t.Any]:
    """Bring the host's bridges to `state`. Returns `changed`, `kept` (bridges that others still use, with those
    ports) and `diff`. Raises NovaliteError; what this call did is taken back then."""
    before, after, kept = {}, {}, {}  # type: dict[str, t.Any], dict[str, t.Any], dict[str, list[str]]
    done = []  # type: list[Step]
    with contextlib.nullcontext() if check_mode else locked("bridge"):
        try:
            for bridge in bridges:
                host = look()
                if state == "present":
                    steps = plan_present(bridge, host)
                else:
                    steps, others = plan_absent(bridge, host)
                    if others:
                        kept[bridge.name] = others
                if steps:
                    before[bridge.name] = summary(bridge, host)
                    after[bridge.name] = [" ".join(step.argv) for step in steps]
                if not check_mode:
                    for step in steps:
                        run(step.argv)
                        done.append(step)
                    if state == "present":
                        _no_autoconfiguration(bridge.name)
                    if steps:
                        after[bridge.name] = summary(bridge, look())
        except BaseException:
            for step in reversed(done):
                if step.undo is not None:
                    with contextlib.suppress(CommandError):
                        run(step.undo)
            raise
        if state == "present" and bridges:
            _forwarding(before, after, check_mode)
    result = {"changed": before != after, "kept": kept}  # type: dict[str, t.Any]
    if before != after:
        result["diff"] = {"before": before, "after": after}
    return result


def _forwarding(before: dict[str, t.Any], after: dict[str, t.Any], check_mode: bool) -> None:
    path = "/proc/sys/net/ipv4/ip_forward"
    with open(path, encoding="ascii") as handle:
        value = handle.read().strip()
    if value != "1":
        before["net.ipv4.ip_forward"], after["net.ipv4.ip_forward"] = value, "1"
        if not check_mode:
            with open(path, "w", encoding="ascii") as handle:
                handle.write("1\n")


def _no_autoconfiguration(name: str) -> None:
    # A guest's router advertisement must not give the host an address or a default route.
    for switch in ("accept_ra", "autoconf"):
        path = f"/proc/sys/net/ipv6/conf/{name}/{switch}"
        with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as handle:
            handle.write("0\n")
