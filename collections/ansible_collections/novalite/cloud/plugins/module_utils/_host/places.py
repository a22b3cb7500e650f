# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The places where this host lives (_addressing/places.py), read from its links, its routes and its files."""

from __future__ import annotations

import contextlib
import glob
import ipaddress
import json
import os
import typing as t
from xml.etree import ElementTree

from .._addressing import places
from .._addressing.places import ADDRESS, CLIENT, GATEWAY, LIBVIRT, ROUTE, SERVER, Place
from .._json import JsonMapping, JsonObject
from .command import run
from .files import read_text

_RESOLVERS = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")
_LIBVIRTS = "/etc/libvirt/qemu/networks/*.xml"  # also those that are not started, of which no link tells
_MOST_FILES = 64
_MOST_ANCESTORS = 32  # of a process: from here to sshd there are three to six

_Hop = tuple[JsonMapping, JsonMapping]  # a route, and one of its next hops, which may be itself


def routes() -> list[JsonObject]:
    """List all routes of this namespace but those of the kernel's own table, as `ip -j route` shows them."""
    rows: list[JsonObject] = json.loads(run(["ip", "-j", "route", "show", "table", "all"]).stdout or "[]")
    return [row for row in rows if row.get("table") != "local"]


def of_rows(
    links: t.Iterable[JsonMapping],
    routes: t.Iterable[JsonMapping],
    session: t.Sequence[str],
    added: t.Container[str] = (),
    ours: t.Container[str] = (),
) -> list[Place]:
    """Places by these rows of `ip -j addr` and `ip -j route`, this ssh session, and the files of resolver and libvirt:
    machines first, then the widest ranges. `added` are addresses (CIDR) that novalite gave to links of others, `ours`
    are links that do not count."""
    entries = [(row["ifname"], entry) for row in links for entry in row.get("addr_info", ()) if "local" in entry]
    own = {entry["local"] for _device, entry in entries}
    lasting = [
        (name, entry) for name, entry in entries if entry.get("scope") == "global" and not entry.get("temporary")
    ]
    addresses = [(ADDRESS, f"{entry['local']}/{entry['prefixlen']}", name) for name, entry in lasting]
    # what leads nowhere (blackhole, unreachable, prohibit) is no place to live in
    hops: list[_Hop] = [(row, hop) for row in routes if "type" not in row for hop in row.get("nexthops") or [row]]
    others = [(CLIENT, address) for address in session[:1]] + [(SERVER, address) for address in _name_servers()]
    machines = _places(
        [
            *((GATEWAY, hop["gateway"], hop.get("dev")) for _row, hop in hops if "gateway" in hop),
            *(address for address in addresses if address[1] not in added),
            *((kind, address, _device(address, hops)) for kind, address in others if address not in own),
        ]
    )
    follows = {(device, places.range_of(cidr)) for _kind, cidr, device in addresses}
    ranges = _places(
        [
            *((LIBVIRT, cidr, device) for cidr, device in _libvirts()),
            *((ROUTE, row["dst"], hop.get("dev")) for row, hop in hops if row["dst"] != "default"),
        ]
    )
    wide = sorted(ranges, key=lambda place: (place.bounds[0] - place.bounds[1], place.cidr))
    here = [*machines, *(place for place in wide if (place.device, places.range_of(place.cidr)) not in follows)]
    return [place for place in here if place.device not in ours]


def ssh_session(environment: t.Mapping[str, str]) -> list[str]:
    """The words of SSH_CONNECTION, which begin with the client's address; none without ssh. sudo takes the variable out
    of the environment: a process further up has it."""
    text = environment.get("SSH_CONNECTION")
    pid = os.getpid()
    for _generation in range(_MOST_ANCESTORS):
        if text is not None or pid <= 1:
            break
        with contextlib.suppress(ValueError, IndexError):
            pid = int((read_text(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()[1])
        variables = dict(line.partition("=")[::2] for line in (read_text(f"/proc/{pid}/environ") or "").split("\0"))
        text = variables.get("SSH_CONNECTION")
    words = [word.partition("%")[0] for word in (text or "").split()]
    return words if len(words) == 4 else []


def _places(entries: t.Iterable[tuple[str, str, str | None]]) -> list[Place]:
    """The places in `entries`, each once; without those of loopback, links and multicast, which no network may have."""
    here: dict[Place, None] = {}
    for kind, cidr, device in entries:
        with contextlib.suppress(ValueError):
            place = Place(kind, cidr, device)
            network = ipaddress.ip_interface(cidr).network
            if not (network.is_loopback or network.is_link_local or network.is_multicast):
                here[place] = None
    return list(here)


def _device(address: str, hops: t.Iterable[_Hop]) -> str | None:
    """The device of the longest route of the main table to the address."""
    longest, device = -1, None
    with contextlib.suppress(ValueError):
        there = ipaddress.ip_address(address)
        for row, hop in hops:
            network = _destination(row, hop, there.version)
            if "table" not in row and network is not None and there in network and network.prefixlen > longest:
                longest, device = network.prefixlen, hop.get("dev")
    return device


def _destination(
    row: JsonMapping, hop: JsonMapping, version: int
) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The destination of a route of this version of IP; of a default route its gateway tells which it is."""
    if row["dst"] == "default":
        other = (version == 4 and ":" in hop.get("gateway", "")) or (version == 6 and "." in hop.get("gateway", ""))
        return None if other else ipaddress.ip_network("0.0.0.0/0" if version == 4 else "::/0")
    network = ipaddress.ip_network(row["dst"])
    return network if network.version == version else None


def _name_servers() -> list[str]:
    lines = [line.split() for path in _RESOLVERS for line in (read_text(path) or "").splitlines()[:100]]
    return [words[1].partition("%")[0] for words in lines if len(words) > 1 and words[0] == "nameserver"]


def _libvirts() -> list[tuple[str, str]]:
    """Ranges of libvirt's own networks, and their bridges. A file is read rather than virtnetworkd asked: to be asked
    starts it, and networks with it."""
    ranges = []
    for path in sorted(glob.glob(_LIBVIRTS))[:_MOST_FILES]:
        with contextlib.suppress(ElementTree.ParseError, ValueError):
            tree = ElementTree.fromstring(read_text(path) or "")
            bridge = tree.find("bridge")
            device = bridge.get("name", "") if bridge is not None else ""
            for ip in tree.iter("ip"):
                length = ip.get("prefix") or ip.get("netmask") or ("64" if ip.get("family") == "ipv6" else "32")
                ranges.append((str(ipaddress.ip_interface(f"{ip.get('address')}/{length}").network), device))
    return ranges
