# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The IPv4 ranges of a network, as lines of its dnsmasq's configuration. Pure.

A further range has a tag, and an option with a tag goes before the same one without, which the first range has.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

METADATA = "169.254.169.254"
_MAX_LEASES = 65536
_OWN_ROUTES = (f"{METADATA}/32", "0.0.0.0/0")  # those that are no route of the network's


@dataclasses.dataclass(frozen=True)
class Range:
    """A range of a network, and `listen`, this host's own address in it. `routes`: (destination, next hop) beside that
    by the gateway."""

    cidr: str
    listen: str
    gateway: str | None = None
    dns: tuple[str, ...] = ()
    routes: tuple[tuple[str, str], ...] = ()

    def __contains__(self, address: str) -> bool:
        return ipaddress.IPv4Address(address) in ipaddress.IPv4Network(self.cidr)

    @property
    def is_routed_elsewhere(self) -> bool:
        """Tell whether another machine is the gateway."""
        return bool(self.gateway and self.gateway != self.listen)


def lines(ranges: t.Sequence[Range], lease_seconds: int) -> list[str]:
    """The lines that serve known hosts in each range and name its router."""
    subnets = [ipaddress.IPv4Network(each.cidr) for each in ranges]
    return [
        *(
            f"dhcp-range={f'set:{tag},' if tag else ''}"
            f"{subnet.network_address},static,{subnet.netmask},{lease_seconds}s"
            for tag, subnet in zip(_tags(ranges), subnets)
        ),
        f"dhcp-lease-max={min(sum(subnet.num_addresses for subnet in subnets), _MAX_LEASES)}",
        # without an address: else dnsmasq names itself
        *_options(ranges, "router", [[each.gateway] if each.gateway else [] for each in ranges]),
    ]


def classless_routes(ranges: t.Sequence[Range]) -> list[str]:
    """The lines with the routes of the ranges; none where no range has any. All have their own, or they would get those
    of the first."""
    if not any(each.is_routed_elsewhere or each.routes for each in ranges):
        return []
    return _options(ranges, "classless-static-route", map(_routes, ranges))


def _routes(of: Range) -> list[str]:
    # Metadata is answered here and not by that gateway. Who reads this option takes no other for its routes.
    routes = [(f"{METADATA}/32", of.listen)] if of.is_routed_elsewhere else []
    routes += [*of.routes, ("0.0.0.0/0", of.gateway or of.listen)]
    return [text for route in routes for text in route]


def names_elsewhere(ranges: t.Sequence[Range]) -> list[str]:
    """The words that send guests to their range's own name servers, for a dnsmasq that serves no names."""
    servers = [[server for server in each.dns if ":" not in server] for each in ranges]
    return [f"--{line}" for line, own in zip(_options(ranges, "dns-server", servers), servers) if own]


def read(options: t.Mapping[str, t.Sequence[str]]) -> list[Range]:
    """The ranges in a configuration, given as the values of each of its options. Each has all name servers, since these
    do not say whose they are. Raises ValueError, KeyError."""
    options_by_tag = {}  # type: dict[tuple[str, str], list[str]]
    for value in options.get("dhcp-option", ()):
        words = value.split(",")
        tag = words.pop(0)[len("tag:") :] if value.startswith("tag:") else ""
        options_by_tag[tag, words[0]] = words[1:]
    ranges = []
    for line, listen in zip(options["dhcp-range"], options["listen-address"]):
        *tags, first, _static, mask, _lease = line.split(",")
        if ":" in first:
            continue
        tag = tags[0][len("set:") :] if tags else ""
        words = options_by_tag.get((tag, "option:classless-static-route"), [])
        routes = [route for route in zip(words[::2], words[1::2]) if route[0] not in _OWN_ROUTES]
        cidr = str(ipaddress.IPv4Network(f"{first}/{mask}"))
        gateway = next(iter(options_by_tag.get((tag, "option:router"), ())), None)
        ranges.append(Range(cidr, listen, gateway, tuple(options.get("server", ())), tuple(routes)))
    return ranges


def _tags(ranges: t.Sequence[Range]) -> list[str]:
    return ["", *(f"range-{each.cidr.partition('/')[0]}" for each in ranges[1:])]


def _options(ranges: t.Sequence[Range], name: str, values: t.Iterable[t.Sequence[str]]) -> list[str]:
    """An option with its values for each range."""
    return [
        f"dhcp-option={f'tag:{tag},' if tag else ''}{','.join([f'option:{name}', *of_range])}"
        for tag, of_range in zip(_tags(ranges), values)
    ]
