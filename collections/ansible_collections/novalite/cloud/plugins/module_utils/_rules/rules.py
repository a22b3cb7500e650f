# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security group rules as plain data: what a user may write, and the one form in which it is stored and compared."""

from __future__ import annotations

import typing as t

from .._addressing.texts import parse_network
from .._errors import NovaliteError
from .._firewall.rules import NAMES, NUMBERS
from .._json import JsonMapping
from .records import check_range


class Rule(t.TypedDict):
    """A rule in its stored form. Of ICMP the ports are type and code."""

    direction: str
    ethertype: str
    protocol: str
    port_min: int | None
    port_max: int | None
    cidr: str | None  # None: the rule is about a group
    remote_group: str | None  # the name of a group


# Neutron's names for protocols that are stored as numbers (neutron_lib.constants.IP_PROTOCOL_MAP)
NUMBERED = {
    **{"igmp": "2", "ipip": "4", "egp": "8", "dccp": "33", "ipv6-encap": "41", "ipv6-route": "43", "ipv6-frag": "44"},
    **{"rsvp": "46", "ipv6-nonxt": "59", "ipv6-opts": "60", "ospf": "89", "vrrp": "112", "pgm": "113"},
    "udplite": "136",
}
# How people write protocols, and their numbers, to the name that the firewall renders
PROTOCOLS = {
    **dict.fromkeys(("any", "-1", "all"), "any"),
    **NUMBERED,
    **{word: NAMES[number] for name, number in NUMBERS.items() for word in (name, str(number))},
}
EVERYONE = {"IPv4": "0.0.0.0/0", "IPv6": "::/0"}
COLUMNS = ("direction", "ethertype", "protocol", "port_min", "port_max", "cidr", "remote_group")


def normalised(rule: JsonMapping) -> Rule:
    """`rule` (protocol, port_min, port_max, icmp_type, icmp_code, cidr, ethertype, remote_group, direction) in its
    stored form.

    For ICMP, port_min holds the type and port_max the code, as in Nova; None is any. Without cidr and remote_group
    the other end is everyone. Raises NovaliteError.
    """
    protocol = _protocol(str(rule["protocol"]))
    cidr, ethertype = _source(rule, protocol)
    icmp = protocol in ("icmp", "icmpv6")
    if (protocol == "icmp" and ethertype == "IPv6") or (protocol == "icmpv6" and ethertype == "IPv4"):
        raise NovaliteError(f"rule: {protocol} does not exist in {ethertype}: write icmp for IPv4, icmpv6 for IPv6")
    low, high = (_icmp if icmp else _ports)(rule, protocol)
    return {
        "direction": rule.get("direction") or "ingress",
        "ethertype": ethertype,
        "protocol": protocol,
        "port_min": low,
        "port_max": high,
        "cidr": cidr,
        "remote_group": rule.get("remote_group"),
    }


def ordered(rules: t.Iterable[Rule]) -> list[Rule]:
    """`rules` in an order that does not depend on how they were written down."""
    return sorted(rules, key=identity)


def identity(rule: JsonMapping) -> tuple[str, ...]:
    """The values that make two rules the same. One that was recorded without an address range is for everyone."""
    values = {column: rule[column] for column in COLUMNS}
    if rule["remote_group"] is None:
        values["cidr"] = range_of(rule)
    return tuple("" if value is None else str(value) for value in values.values())


def range_of(rule: JsonMapping) -> str:
    """The addresses that a stored rule without a remote group is about. Null: nobody said any."""
    return str(rule["cidr"] or EVERYONE[rule["ethertype"]])


def _protocol(text: str) -> str:
    folded = text.strip().lower()
    if folded in PROTOCOLS:
        return PROTOCOLS[folded]
    # isdecimal: int() takes "+6", "1_7" and other scripts' digits as well
    if folded.isascii() and folded.isdecimal() and 1 <= int(folded) <= 255:  # to iptables 0 is any
        number = str(int(folded))
        return PROTOCOLS.get(number, number)
    raise NovaliteError(
        f"rule: unknown protocol {text[:40]!r}: write one of {', '.join((*NUMBERS, *NUMBERED))}, any, or 1 to 255"
    )


def canonical_range(text: str) -> str:
    """Return the address range without bits beyond its prefix, as Nova, Neutron and EC2 understand 10.2.3.124/24.

    What is no range is returned as it is: normalised() refuses it.
    """
    try:
        return str(parse_network(text, strict=False).cidr)
    except ValueError:
        return text


def _source(rule: JsonMapping, protocol: str) -> tuple[str | None, str]:
    text, ethertype, group = rule.get("cidr"), rule.get("ethertype"), rule.get("remote_group")
    if group is not None and text is not None:
        raise NovaliteError(f"rule: cidr {text!r} and remote_group {group!r}: give one of them")
    if text is None:
        ethertype = ethertype or ("IPv6" if protocol == "icmpv6" else "IPv4")
        return None if group is not None else EVERYONE[ethertype], ethertype
    try:
        network = parse_network(text, strict=False)
    except ValueError:
        raise NovaliteError(f"rule: {text[:60]!r} is not an address range: write for example 10.0.0.0/8") from None
    if network.ip != network.network:
        raise NovaliteError(
            f"rule: {text} has bits set beyond its prefix: write {network.cidr}, or one address with /32"
        )
    if ethertype is not None and ethertype != f"IPv{network.version}":
        raise NovaliteError(f"rule: {text} is not an {ethertype} range: leave ethertype out")
    return str(network), f"IPv{network.version}"


def _ports(rule: JsonMapping, protocol: str) -> tuple[int | None, int | None]:
    first, last = rule.get("port_min"), rule.get("port_max")
    if rule.get("icmp_type") is not None or rule.get("icmp_code") is not None:
        raise NovaliteError(f"rule: icmp_type and icmp_code mean nothing to {protocol}: leave them out")
    ports = [port for port in (first, last) if port is not None]
    if not ports:
        return None, None
    if protocol not in ("tcp", "udp", "sctp"):
        raise NovaliteError(f"rule: ports mean nothing to protocol {protocol}: leave port_min and port_max out")
    low, high = ports[0], ports[-1]
    for port in (low, high):
        check_range("rule: port", port, 1, 65535)
    if low > high:
        raise NovaliteError(f"rule: port_min {low} is larger than port_max {high}: swap them")
    return low, high


def _icmp(rule: JsonMapping, protocol: str) -> tuple[int | None, int | None]:
    # Nova's clients write -1 for any
    kind, code = (None if rule.get(key) == -1 else rule.get(key) for key in ("icmp_type", "icmp_code"))
    if rule.get("port_min") is not None or rule.get("port_max") is not None:
        raise NovaliteError(f"rule: {protocol} has no ports: write icmp_type and icmp_code")
    if kind is None and code is not None:
        raise NovaliteError(f"rule: icmp_code {code} needs an icmp_type")
    if kind is not None:
        check_range("rule: icmp_type", kind, 0, 254)  # to iptables 255 is any
    if code is not None:
        check_range("rule: icmp_code", code, 0, 255)
    return kind, code
