# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What guests may ask of the host that they are on. Pure.

A guest reaches every port of a hypervisor that has an address on the guest's bridge: ssh, libvirt, migration. Neutron's
hosts have none there. So a host lets its guests ask for metadata, DHCP, names and neighbours, and what its operator
opens beside. It is about packets that come in by a guest's tap device: others on the same bridge are the operator's::

    INPUT         -j nova-host
    nova-host     -m physdev --physdev-in tap0a1b2c3d-4e -g nova-to-host
    nova-to-host  answers, what is on its way, what is open -> RETURN, to the host's own rules; DROP
"""

from __future__ import annotations

import re
import typing as t

from .._errors import NovaliteError
from .passage import METADATA

EVERYTHING = "any"

_OPENED = re.compile(r"(tcp|udp|sctp)/([0-9]{1,5})(?:-([0-9]{1,5}))?")
_ANSWERS = "-m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -j RETURN"
# A guest that comes by live migration goes on with what it had. The connections of its address are forgotten then, and
# if the guest speaks next, the kernel takes it for who began. Without SYN none begins, and no port is told from others.
_ON_THE_WAY = "-p tcp -m tcp --tcp-flags SYN,ACK ACK -j RETURN"
_ICMP = {"IPv4": "icmp", "IPv6": "ipv6-icmp"}
_DHCP = {"IPv4": 67, "IPv6": 547}
_NEIGHBOURS = ("133", "135", "136")  # solicitations of routers and neighbours, and advertisements


def parse(values: t.Iterable[str] | None) -> tuple[str, ...] | None:
    """The module's `open_to_guests`; None where it is not said. Raises NovaliteError."""
    if values is None:
        return None
    opened = sorted({str(value).strip().lower() for value in values})
    for value in opened:
        match = _OPENED.fullmatch(value)
        if match and 0 < int(match[2]) <= int(match[3] or match[2]) <= 65535:
            continue
        if value not in ("icmp", EVERYTHING):
            raise NovaliteError(f"open_to_guests: {value!r} is not tcp/<port>, udp/<port>-<port>, icmp or any")
    return tuple(opened)


def chain(family: str, opened: t.Collection[str] = ()) -> tuple[str, ...]:
    """The rules for what guests ask of this host; `opened` is what parse() returns."""
    if EVERYTHING in opened:
        return ("-j RETURN",)
    rules = [_ANSWERS, _ON_THE_WAY]
    if family == "IPv4":
        rules.append(f"-d {METADATA}/32 -p tcp -m tcp --dport 80 -j RETURN")
    else:
        rules += [f"-p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j RETURN" for kind in _NEIGHBOURS]
    ports = [("udp", str(_DHCP[family])), ("udp", "53"), ("tcp", "53")]
    for match in filter(None, map(_OPENED.fullmatch, opened)):
        first, last = int(match[2]), int(match[3] or match[2])
        ports.append((match[1], str(first) if first == last else f"{first}:{last}"))
    rules += [f"-p {protocol} -m {protocol} --dport {port} -j RETURN" for protocol, port in dict.fromkeys(ports)]
    if "icmp" in opened:
        rules.append(f"-p {_ICMP[family]} -j RETURN")
    return (*rules, "-j DROP")
