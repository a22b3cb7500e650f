# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network devices of a host as data, read from `ip -j` and `bridge -j`."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import typing as t

from .._addressing.places import Place
from .._host import places
from .._host.command import CommandError, run
from .._host.files import read_text
from .._json import JsonMapping, JsonObject
from . import additions, namespaces
from .additions import Additions

_PERMANENT_MAC = "3"  # NET_ADDR_SET: an address that does not change when ports come and go
_EVERYWHERE = "00:00:00:00:00:00"  # a VXLAN device floods to the destinations of this entry


@dataclasses.dataclass
class Link:
    """`local` is the tunnel end point of a VXLAN device, `number` a VLAN's or VXLAN's identifier."""

    name: str
    mac: str
    mtu: int
    up: bool
    kind: str | None = None
    master: str | None = None
    parent: str | None = None
    number: int | None = None
    addresses: tuple[str, ...] = ()  # global ones, in the kernel's order
    permanent_mac: bool = False
    link_local: tuple[str, ...] = ()
    local: str | None = None
    remotes: tuple[str, ...] = ()  # of a VXLAN device: where it floods to
    advertised: bool = False  # has addresses that some router's advertisement gave it
    alias: str | None = None  # the place of marks (ownership.py)
    dstport: int | None = None  # of a VXLAN device


@dataclasses.dataclass
class Host:
    """The state of the host. `ssh` are the links that the session that runs this module depends on, `routed` those
    with routes that somebody has set, `inside` the links of each namespace that was asked for and exists, `added` what
    novalite did to the bridge in question and its ports, `places` where the host lives."""

    links: dict[str, Link]
    routed: frozenset[str] = frozenset()
    ssh: frozenset[str] = frozenset()
    inside: dict[str, dict[str, Link]] = dataclasses.field(default_factory=dict)
    living: dict[str, Living] = dataclasses.field(default_factory=dict)
    added: Additions = dataclasses.field(default_factory=Additions)
    places: tuple[Place, ...] = ()


class Living(t.NamedTuple):
    """The global addresses and the routes on a device, as `ip -j` shows them."""

    addresses: list[JsonObject]
    routes: list[JsonObject]


@dataclasses.dataclass
class Step:
    """Command, and the one that takes it back. A command that reads several lines (`stdin`) may fail half-way, so it is
    taken back when it fails, too. `adds` is what is to be remembered before it runs."""

    argv: list[str]
    undo: list[str] | None = None
    stdin: str | None = None
    undo_stdin: str | None = None
    adds: Additions | None = None

    def shown(self) -> list[str]:
        """Lines for the diff."""
        return [" ".join(self.argv)] if self.stdin is None else [f"ip {line}" for line in self.stdin.splitlines()]


def ip(namespace: str | None, *words: str) -> list[str]:
    """The `ip` command, in a namespace (None: the host's own)."""
    return ["ip", *(("-n", namespace) if namespace else ()), *words]


def set_link(device: str, words: str, undo: str | None = None, adds: Additions | None = None) -> Step:
    """`ip link set` with these words, and with those that take it back."""
    back = None if undo is None else ["ip", "link", "set", device, *undo.split()]
    return Step(["ip", "link", "set", device, *words.split()], back, adds=adds)


def read_links(text: str, permanent: t.Container[str] = ()) -> dict[str, Link]:
    """The output of `ip -d -j addr show` as links by name."""
    links = {}
    for row in json.loads(text or "[]"):
        if "ifname" not in row:
            continue
        kind = row.get("linkinfo", {}).get("info_kind")
        data = row.get("linkinfo", {}).get("info_data", {})
        entries = [entry for entry in row.get("addr_info", ()) if "local" in entry and not _advertised(entry)]
        links[row["ifname"]] = Link(
            name=row["ifname"],
            mac=row.get("address", ""),
            mtu=row.get("mtu", 0),
            up="UP" in row.get("flags", ()),
            kind=kind,
            master=row.get("master"),
            parent=row.get("link") if kind != "veth" else None,  # there it is the other end
            number=data.get("id") if kind in ("vlan", "vxlan") else None,
            addresses=_cidrs(entry for entry in entries if entry.get("scope") == "global"),
            permanent_mac=row["ifname"] in permanent,
            link_local=_cidrs(
                entry for entry in entries if (entry.get("scope"), entry.get("family", "inet6")) == ("link", "inet6")
            ),
            local=data.get("local", data.get("local6")) if kind == "vxlan" else None,
            advertised=any(_advertised(entry) for entry in row.get("addr_info", ())),
            alias=row.get("ifalias"),
            dstport=data.get("port") if kind == "vxlan" else None,
        )
    return links


def _cidrs(entries: t.Iterable[JsonMapping]) -> tuple[str, ...]:
    return tuple(f"{entry['local']}/{entry['prefixlen']}" for entry in entries)


def _advertised(entry: JsonMapping) -> bool:
    """Tell whether a router's advertisement gave this address, which on a wire full of guests may be anybody's."""
    return bool(entry.get("temporary") or entry.get("mngtmpaddr") or entry.get("protocol") == "kernel_ra")


def read_flood(text: str) -> tuple[str, ...]:
    """The output of `bridge -j fdb show dev <vxlan device>` as the end points that it floods to."""
    return tuple(row["dst"] for row in json.loads(text or "[]") if row.get("mac") == _EVERYWHERE and "dst" in row)


def flood(operation: str, device: str, remote: str) -> list[str]:
    """The command that appends a destination to a VXLAN device's flooding, or deletes it."""
    return ["bridge", "fdb", operation, _EVERYWHERE, "dev", device, "dst", remote, "self"]


def look(namespace_names: t.Iterable[str | None] = (), tunnels: t.Iterable[str | None] = ()) -> Host:
    """Read links, routes, the way of this ssh session, these namespaces, and where VXLAN `tunnels` flood."""
    text = run(["ip", "-d", "-j", "addr", "show"]).stdout
    names = [row["ifname"] for row in json.loads(text) if "ifname" in row]
    kinds = {name: read_text(f"/sys/class/net/{name}/addr_assign_type") or "" for name in names}
    links = read_links(text, [name for name, kind in kinds.items() if kind.strip() == _PERMANENT_MAC])
    for name in tunnels:
        if name in links:
            links[name].remotes = read_flood(run(["bridge", "-j", "fdb", "show", "dev", name]).stdout)
    routes = places.routes()
    main = [row for row in routes if "table" not in row and row.get("protocol") not in ("kernel", "ra")]
    routed = {row["dev"] for row in main if "dev" in row}
    inside = {
        name: read_links(run(["ip", "-n", name, "-d", "-j", "addr", "show"]).stdout)
        for name in namespace_names
        if name and namespaces.exists(name)
    }
    session = places.ssh_session(os.environ)
    # they lead floating IPs into networks' namespaces: the host does not live there
    transits = {name for name in links if name.startswith(namespaces.transit_name("")) and links[name].alias}
    here = places.of_rows(json.loads(text), routes, session, additions.addresses(), transits)
    return Host(links, frozenset(routed), frozenset(ssh_links(links, session)), inside, places=tuple(here))


def ssh_links(links: t.Mapping[str, Link], session: t.Sequence[str]) -> set[str]:
    """The links that this ssh session comes by."""
    if not session:
        return set()
    client, server = session[0], session[2]
    names = {link.name for link in links.values() if any(text.partition("/")[0] == server for text in link.addresses)}
    with contextlib.suppress(CommandError):
        names |= {
            row["dev"] for row in json.loads(run(["ip", "-j", "route", "get", client]).stdout or "[]") if "dev" in row
        }
    return names
