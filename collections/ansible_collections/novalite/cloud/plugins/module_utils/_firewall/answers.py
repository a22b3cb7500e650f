# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the answers of this host's DHCP servers come from. dnsmasq leaves that to the kernel, which takes the device's
first address: on a bridge with an operator's address that one, and not the server's."""

from __future__ import annotations

import contextlib
import dataclasses
import ipaddress
import json
import typing as t

from .._command import CommandError, run
from .policy import Instance


def with_sources(instances: t.Iterable[Instance]) -> list[Instance]:
    """The instances, whose DHCP servers on this host (IPv4) are joined by the addresses that those answer from."""
    known = list(instances)
    servers = {server for instance in known for server in instance.dhcp_servers if ":" not in server}
    if not servers:
        return known
    sources: dict[str, list[str]] = {}
    with contextlib.suppress(CommandError, ValueError, KeyError):
        for row in json.loads(run(["ip", "-4", "-j", "address", "show"]).stdout or "[]"):
            sources |= _of_device(
                [f"{address['local']}/{address['prefixlen']}" for address in row.get("addr_info", ())], servers
            )
    return [
        dataclasses.replace(
            instance,
            dhcp_servers=tuple(
                dict.fromkeys(
                    address for server in instance.dhcp_servers for address in (server, *sources.get(server, ()))
                )
            ),
        )
        for instance in known
    ]


def _of_device(addresses: t.Sequence[str], servers: t.Collection[str]) -> dict[str, list[str]]:
    """By server, of a device's addresses (in the kernel's order) those that packets leave with: to everybody the first
    of all, to somebody of the server's network the first in that."""
    interfaces = [ipaddress.IPv4Interface(text) for text in addresses]
    sources = {}
    for interface in interfaces:
        if str(interface.ip) in servers:
            first = next(candidate for candidate in interfaces if interface.ip in candidate.network)
            ahead = dict.fromkeys((interfaces[0], first))
            sources[str(interface.ip)] = [str(candidate.ip) for candidate in ahead if candidate != interface]
    return sources
