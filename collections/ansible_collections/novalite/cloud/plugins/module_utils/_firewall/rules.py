# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security group rules: checked, and as the words that `iptables-save` uses for them. Pure."""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import socket
import typing as t

from .._errors import NovaliteError
from .._json import JsonMapping

FAMILIES = ("IPv4", "IPv6")
DIRECTIONS = ("ingress", "egress")
MAX_RANGE = 256  # addresses of an allowed address pair: each has a rule of its own


_AF = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}
# protocols as people write them, by their numbers (iana.org's protocol-numbers)
NAMES = {6: "tcp", 17: "udp", 132: "sctp", 1: "icmp", 58: "icmpv6", 47: "gre", 50: "esp", 51: "ah"}
NUMBERS = {**{name: number for number, name in NAMES.items()}, "ipv6-icmp": 58}
WITH_PORTS = (6, 17, 132)
# What answers an ICMP type, where anything does; conntrack knows the same pairs.
_ANSWERS = {1: {8: 0, 13: 14, 15: 16, 17: 18}, 58: {128: 129, 139: 140}}


@dataclasses.dataclass(frozen=True)
class Rule:
    """A rule for what may come in or go out. For ICMP `port_min` is the type and `port_max` the code, as in Nova's API.

    `cidr` or the members of `remote_group_id` are the other end: the source of what comes in, the destination of what
    goes out. Neither: anybody.
    """

    ethertype: str
    protocol: int | None = None  # None: any
    port_min: int | None = None
    port_max: int | None = None
    cidr: str | None = None
    remote_group_id: int | None = None
    direction: str = "ingress"


def parse_rule(group: int, value: JsonMapping) -> Rule:
    """Parse one rule of the module's `security_groups`. Raises NovaliteError, which names the group and the value."""
    family = {"ipv4": "IPv4", "ipv6": "IPv6"}.get(str(value.get("ethertype") or "IPv4").lower())
    if family is None:
        raise NovaliteError(f"security group {group}: ethertype {value['ethertype']!r} is neither IPv4 nor IPv6")
    direction = str(value.get("direction") or "ingress").lower()
    if direction not in DIRECTIONS:
        raise NovaliteError(f"security group {group}: direction {value['direction']!r} is neither ingress nor egress")
    protocol = _protocol(group, value.get("protocol"), family)
    low, high = _ports(group, protocol, value)
    cidr, remote = value.get("cidr") or None, value.get("remote_group_id")
    if cidr is not None and remote is not None:
        raise NovaliteError(f"security group {group}: a rule names cidr {cidr} or a remote group, not both")
    if cidr is not None:
        _network(str(cidr), f"security group {group}: ", family)
    return Rule(family, protocol, low, high, cidr, None if remote is None else int(remote), direction)


def inexpressible(rule: Rule) -> str | None:
    """Return why iptables cannot express the rule, or None. Such a rule stays closed: rendered, it opens far more."""
    # To iptables `-p 0` is "all" and `--icmp-type 255` is "any".
    if rule.protocol == 0:
        return "iptables cannot match protocol 0 (it means any)"
    if rule.protocol == 1 and rule.port_min == 255:
        return "iptables cannot match ICMP type 255 (it means any)"
    return None


def texts(rule: Rule, sources: t.Callable[[int], t.Sequence[str]], answers: bool = False) -> list[str]:
    """The rule as lines that ACCEPT what it allows, without `-A <chain> `.

    With `answers` what comes back for it instead: the other end and the ports on the other side of the packet.
    `sources(group)` says how a remote group is matched: as one match of a set, `-m set --match-set <name>`, to which
    the side is added, or as the members' label and addresses (`10.0.0.9/32`), for a line that does nothing but say
    what by_members() makes lines of, and these.
    """
    match = _match(rule, answers)
    if match is None:
        return []
    from_there = (rule.direction == "ingress") != answers
    option, side = ("-s", "src") if from_there else ("-d", "dst")
    if rule.remote_group_id is None:
        return [_join(_range(option, rule), match, "-j ACCEPT")]
    first, *addresses = sources(rule.remote_group_id)
    if first.startswith("-m set "):
        return [_join(match, f"{first} {side}", "-j ACCEPT")]
    return by_members(_join(match, first), option, addresses)


def label(name: str) -> str:
    """The mark of the lines that are about the members of a group: the name of their set, which is not there."""
    return f"-m comment --comment {name.replace('.', '_')}"  # iptables-save puts dots into quotes


def by_members(template: str, option: str, addresses: t.Iterable[str]) -> list[str]:
    """The lines for a rule about a group's members where there is no set of them, with the one they are made of."""
    return [template, *(f"{option} {address} {template} -j ACCEPT" for address in addresses)]


def of_members(rules: t.Sequence[str], option: str, labelled: str, addresses: t.Sequence[str]) -> tuple[str, ...]:
    """A group's chain with other members behind a label."""
    templates = [rule for rule in rules if rule.endswith(labelled)]
    if not templates:
        return tuple(rules)
    others = [rule for rule in rules if not rule.endswith((labelled, f"{labelled} -j ACCEPT"))]
    return tuple(
        sorted({*others, *(line for template in templates for line in by_members(template, option, addresses))})
    )


def members_in(rules: t.Iterable[str], option: str, labelled: str) -> frozenset[str]:
    """The members behind a label of whom a group's chain has lines."""
    words = (rule.split(" ", 2) for rule in rules if rule.endswith(f"{labelled} -j ACCEPT"))
    return frozenset(address.partition("/")[0] for first, address, _rest in words if first == option)


def hosts(addresses: t.Iterable[str], family: str) -> tuple[str, ...]:
    """The addresses of one family as `<address>/32` or `/128`, each once, in the given order."""
    pairs = (host(address) for address in addresses)
    return tuple(dict.fromkeys(text for its_family, text in pairs if its_family == family))


@functools.lru_cache(maxsize=65536)
def host(address: str) -> tuple[str, str]:
    """Family and `<address>/32` or `/128`. Raises NovaliteError for what is no single address."""
    family, bits = ("IPv6", "128") if ":" in address else ("IPv4", "32")
    text, slash, length = address.partition("/")
    try:
        # Not `ipaddress`, which takes ten times as long; iptables prints with inet_ntop.
        packed = socket.inet_pton(_AF[family], text)
    except (OSError, ValueError):
        raise NovaliteError(f"{address!r} is not an IP address; write it as 10.0.0.5 or fd00::5") from None
    if slash and length != bits:
        raise NovaliteError(f"{address!r} is a range; write one address, as {text}")
    return family, f"{socket.inet_ntop(_AF[family], packed)}/{bits}"


def expanded(cidr: str) -> tuple[str, ...]:
    """The addresses of a range that several instances may use. Raises NovaliteError for too many, and for no range."""
    try:
        network = ipaddress.ip_network(cidr)
    except ValueError:
        raise NovaliteError(f"{cidr!r} is not an address or range; write 10.0.0.9/32") from None
    if network.num_addresses > MAX_RANGE:
        raise NovaliteError(
            f"the allowed address pair {cidr} has more than {MAX_RANGE} addresses, which security groups cannot judge: "
            "name smaller ranges"
        )
    return tuple(map(str, network))


def _protocol(group: int, value: str | int | None, family: str) -> int | None:
    # Folded: Nova compared "TCP" with "tcp" and opened nothing or, worse, did not close (CVE-2012-2654).
    name = str(value if value is not None else "any").strip().lower()
    if name in ("any", "all", "-1", ""):
        return None
    number = int(name) if name.isascii() and name.isdecimal() else NUMBERS.get(name)
    if number is None or number > 255:
        raise NovaliteError(
            f"security group {group}: protocol {value!r} is unknown; give tcp, udp, sctp, icmp, icmpv6, gre, esp, ah, "
            "any or 0 to 255"
        )
    if family == "IPv6" and number == 1:
        return 58  # `icmp` in an IPv6 rule means ICMPv6, in every API
    if family == "IPv4" and number == 58:
        raise NovaliteError(f"security group {group}: protocol {value!r} does not go with IPv4; give icmp")
    return number


def _ports(group: int, protocol: int | None, value: JsonMapping) -> tuple[int | None, int | None]:
    low, high = (
        None if port is None or int(port) == -1 else int(port)
        for port in (value.get("port_min"), value.get("port_max"))
    )
    if protocol in (1, 58):
        for number, what in ((low, "type"), (high, "code")):
            if number is not None and not 0 <= number <= 255:
                raise NovaliteError(f"security group {group}: ICMP {what} {number} is not between 0 and 255")
        if low is None and high is not None:
            raise NovaliteError(f"security group {group}: ICMP code {high} needs a type in port_min")
    elif low is not None or high is not None:
        if protocol not in WITH_PORTS:
            raise NovaliteError(
                f"security group {group}: ports go with tcp, udp and sctp, not with protocol {value.get('protocol')!r}"
            )
        low, high = low if low is not None else high, high if high is not None else low
        if not 0 <= t.cast(int, low) <= t.cast(int, high) <= 65535:
            raise NovaliteError(f"security group {group}: {low}:{high} is not a port range within 0:65535")
    return low, high


def _match(rule: Rule, answers: bool) -> str | None:
    """The protocol part of a rule, `""` for any, None when it must not be rendered."""
    if inexpressible(rule):
        return None
    if rule.protocol is None:
        return ""
    if rule.protocol in (1, 58):
        name, option = ("icmp", "icmp --icmp-type") if rule.protocol == 1 else ("ipv6-icmp", "icmp6 --icmpv6-type")
        if rule.port_min is None:
            return f"-p {name}"
        if answers:
            answer = _ANSWERS[rule.protocol].get(rule.port_min)
            return None if answer is None else f"-p {name} -m {option} {answer}"
        # Nova renamed the protocol before it asked for its type: `icmpv6 type 128` opened all of ICMPv6.
        return f"-p {name} -m {option} {rule.port_min}{'' if rule.port_max is None else f'/{rule.port_max}'}"
    name = NAMES[rule.protocol] if rule.protocol in WITH_PORTS else str(rule.protocol)
    if rule.port_min is None or (rule.port_min, rule.port_max) == (0, 65535):
        return f"-p {name}"
    ports = str(rule.port_min) if rule.port_min == rule.port_max else f"{rule.port_min}:{rule.port_max}"
    return f"-p {name} -m {name} {'--sport' if answers else '--dport'} {ports}"


def _range(option: str, rule: Rule) -> str:
    if rule.cidr is None:
        return ""
    network = _network(rule.cidr, "", rule.ethertype)
    if network.prefixlen == 0:
        return ""  # iptables-save leaves it out
    address = socket.inet_ntop(_AF[rule.ethertype], network.network_address.packed)
    return f"{option} {address}/{network.prefixlen}"


@functools.lru_cache(maxsize=4096)
def _network(text: str, whose: str, family: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        if "%" in text:  # an IPv6 zone is a matter of one host, and ipaddress would carry it along
            raise ValueError
        network = ipaddress.ip_interface(text).network
    except ValueError:
        raise NovaliteError(f"{whose}{text!r} is not an address range; write it as 10.0.0.0/24 or fd00::/64") from None
    if f"IPv{network.version}" != family:
        raise NovaliteError(f"{whose}{text} is not an {family} address range")
    return network


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
