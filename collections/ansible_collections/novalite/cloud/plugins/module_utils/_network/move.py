# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The addresses and routes of an interface that becomes a bridge's port: refused, or moved to the bridge in one go.

A port's own addresses and routes stop working once it belongs to a bridge. On a host with one interface they have to
move, and the session that does it comes by that very interface. So all of it is one `ip -batch`, which takes
milliseconds and needs nobody at the other end, and a second one takes everything back.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from .._errors import ConflictError
from .._host.command import run
from .._json import JsonMapping
from .links import Host, Link, Living, Step

# as `ip route` takes them -> as `ip -j route` shows them
_ROUTE_OPTIONS = {"proto": "protocol", "scope": "scope", "src": "prefsrc", "metric": "metric", "table": "table"}
_FOREVER = 4294967295  # how the kernel says that an address does not expire


def use_of(port: Link, host: Host) -> str | None:
    """The use that the host has of the port, and would lose, as the end of a sentence; None for none."""
    if port.name in host.ssh:
        return "carries the ssh session that Ansible came by"
    if port.addresses:
        return f"carries the address {port.addresses[0]}"
    return "has routes of this host" if port.name in host.routed else None


def living(device: str) -> Living:
    """The addresses and routes that the host has on a device, as `ip -j` rows. Raises CommandError."""
    shown = json.loads(run(["ip", "-j", "addr", "show", "dev", device]).stdout or "[]")
    addresses = [
        entry
        for row in shown
        for entry in row.get("addr_info", ())
        if entry.get("scope") == "global" and not entry.get("temporary")
    ]
    routes = []
    for family in ("-4", "-6"):
        text = run(["ip", "-j", family, "route", "show", "table", "all"], ok=(0, 2)).stdout
        for row in json.loads(text or "[]"):
            of_device = row.get("dev") == device and row.get("protocol") != "kernel" and row.get("table") != "local"
            if of_device or any(hop.get("dev") == device for hop in row.get("nexthops", ())):
                routes.append({**row, "family": family})
    return Living(addresses, routes)


def to_bridge(bridge: str, port: str, carried: Living) -> Step:
    """Make the port a member of the bridge, and move what the port carried to the bridge."""
    forth = [f"link set dev {port} master {bridge}", *_move(port, bridge, carried)]
    back = [f"link set dev {port} nomaster", *_move(bridge, port, carried)]
    return Step(["ip", "-batch", "-"], ["ip", "-force", "-batch", "-"], "\n".join(forth) + "\n", "\n".join(back) + "\n")


def from_bridge(bridge: str, port: str, carried: Living, ours: t.Collection[str]) -> Step:
    """The reverse; `ours` are the addresses (CIDR) that go with the bridge."""
    kept = [row for row in carried.addresses if f"{row['local']}/{row['prefixlen']}" not in ours]
    step = to_bridge(bridge, port, Living(kept, carried.routes))
    return dataclasses.replace(step, stdin=step.undo_stdin, undo_stdin=step.stdin)


def _move(source: str, target: str, carried: Living) -> list[str]:
    """The lines that move addresses and then, since some vanish with their address, set all routes again."""
    lines = []
    for row in carried.addresses:
        cidr = f"{row['local']}/{row['prefixlen']}"
        lines.append(f"addr del {cidr} dev {source}")
        words = ["addr", "replace", cidr, "dev", target]
        if "broadcast" in row:
            words[3:3] = ["brd", row["broadcast"]]
        for option, key in (("valid_lft", "valid_life_time"), ("preferred_lft", "preferred_life_time")):
            if row.get(key, _FOREVER) != _FOREVER:
                words += [option, str(row[key])]
        if row.get("family") == "inet6":
            words.append("nodad")  # it was ours a moment ago
        lines.append(" ".join(words))
    # On-link routes first: the kernel takes no gateway that it cannot reach.
    for row in sorted(carried.routes, key=lambda row: "gateway" in row or "via" in row):
        if "nexthops" in row:
            raise ConflictError(
                f"the route to {row['dst']} has several next hops, one of them through {source}: move it by hand"
            )
        lines.append(" ".join(_route(row, target)))
    return lines


def _route(row: JsonMapping, device: str) -> list[str]:
    # A line of a batch cannot say -6; only `default` would need it.
    words = ["route", "replace", "::/0" if (row["dst"], row["family"]) == ("default", "-6") else row["dst"]]
    if "via" in row:
        words += ["via", row["via"]["family"], row["via"]["host"]]
    elif "gateway" in row:
        words += ["via", row["gateway"]]
    words += ["dev", device]
    for option, key in _ROUTE_OPTIONS.items():
        words += [option, str(row[key])] if key in row else []
    return words + (["onlink"] if "onlink" in row.get("flags", ()) else [])
