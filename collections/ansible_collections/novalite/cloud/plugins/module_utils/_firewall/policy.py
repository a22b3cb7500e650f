# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""From instances and security groups to Nova's iptables chains, in the very words that `iptables-save` uses.

Pure: plain data in, `Chain` objects out. The text is canonical (what `iptables-save` 1.8 prints for the rule), so that
a chain that is already on the host compares equal without a second parser.

One instance's packets, IPv4 (IPv6 has neighbour discovery and router advertisements in front)::

    FORWARD, OUTPUT   -j nova-local
    nova-local        -d <address>/32 -j nova-inst-<id>
    nova-inst-<id>    INVALID -> DROP
                      ESTABLISHED, in the direction that opened the flow -> nova-new-<id>
                      RELATED,ESTABLISHED -> ACCEPT
                      -j nova-sg-<group> ...; answers of the DHCP server -> ACCEPT; -j nova-ipv4-fallback
    nova-new-<id>     the last three again
    nova-ipv4-fallback  DROP

`nova-new-<id>` is what makes a removed rule cut the flows it allowed: packets towards the instance of a flow that was
opened towards it are judged again each time, while answers to what the instance itself opened take the plain
ESTABLISHED accept. Nova has no such line and leaves them open; `conntrack -F` does not help as long as
nf_conntrack_tcp_loose is 1, the kernel's default.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import socket
import typing as t

from .._errors import NovaliteError

FAMILIES = ("IPv4", "IPv6")
LOCAL = "nova-local"
FALLBACK = {"IPv4": "nova-ipv4-fallback", "IPv6": "nova-ipv6-fallback"}
INSTANCE = "nova-inst-"
NEW = "nova-new-"
GROUP = "nova-sg-"
FALLBACK_NAMES = frozenset(FALLBACK.values())
HOOKED = ("FORWARD", "OUTPUT")  # OUTPUT too: the host itself is no more trusted than the network
HOOK = f"-j {LOCAL}"

_HOST_BITS = {"IPv4": 32, "IPv6": 128}
_WITH_PORTS = {6: "tcp", 17: "udp", 132: "sctp"}
_NUMBERS = {"tcp": 6, "udp": 17, "sctp": 132, "icmp": 1, "icmpv6": 58, "ipv6-icmp": 58}
# What a guest needs before it can be spoken to at all. They are UNTRACKED or INVALID to conntrack, hence in front.
_NEIGHBOUR_DISCOVERY = ("135", "136")


class Chain(t.NamedTuple):
    """`rules` without their leading `-A <name> `."""

    name: str
    rules: tuple[str, ...]


Chains = dict[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True)
class Rule:
    """An ingress rule. For icmp `port_min` is the type and `port_max` the code, as in Nova's and Neutron's API."""

    ethertype: str
    protocol: int | None = None  # None: any
    port_min: int | None = None
    port_max: int | None = None
    cidr: str | None = None
    remote_group_id: int | None = None


@dataclasses.dataclass(frozen=True)
class Group:
    id: int
    rules: tuple[Rule, ...] = ()
    members: tuple[str, ...] = ()  # addresses that carry this group, for rules of other groups that name it


@dataclasses.dataclass(frozen=True)
class Instance:
    id: int
    addresses: tuple[str, ...] = ()
    dhcp_servers: tuple[str, ...] = ()
    ra_servers: tuple[str, ...] = ()
    security_groups: tuple[int, ...] = ()

    def of(self, family: str) -> tuple[str, ...]:
        """Its addresses of one family, as CIDRs of a single host."""
        return _hosts(self.addresses, family)


def family_of(address: str) -> str:
    """`IPv4` or `IPv6`; raises NovaliteError for what is no address."""
    return "IPv6" if _interface(address).version == 6 else "IPv4"


def parse_instances(values: t.Iterable[t.Mapping[str, t.Any]]) -> list[Instance]:
    """The module's `instances` as dataclasses. Raises NovaliteError for an id or an address that occurs twice."""
    instances, ids, owners = [], set(), {}  # type: list[Instance], set[int], dict[str, int]
    for value in values:
        instance = Instance(
            id=_identifier("instance", value["id"]),
            addresses=_texts(value.get("addresses")),
            dhcp_servers=_texts(value.get("dhcp_servers")),
            ra_servers=_texts(value.get("ra_servers")),
            security_groups=tuple(dict.fromkeys(int(group) for group in value.get("security_groups") or ())),
        )
        if instance.id in ids:
            raise NovaliteError(f"instance {instance.id} is given twice; give it once, with all its addresses")
        ids.add(instance.id)
        for family in FAMILIES:
            for address in instance.of(family):
                if owners.setdefault(address, instance.id) != instance.id:
                    raise NovaliteError(
                        f"the address {address} is given for instance {owners[address]} and for instance "
                        f"{instance.id}; only one of them can own it"
                    )
        instances.append(instance)
    return instances


def parse_groups(values: t.Iterable[t.Mapping[str, t.Any]]) -> list[Group]:
    """The module's `security_groups` as dataclasses; egress rules are left out, they are not enforced yet."""
    groups = []
    for value in values:
        identifier = _identifier("security group", value["id"])
        rules = tuple(
            _parse_rule(identifier, rule)
            for rule in value.get("rules") or ()
            if (rule.get("direction") or "ingress") == "ingress"
        )
        groups.append(Group(identifier, rules, _texts(value.get("members"))))
    if len({group.id for group in groups}) != len(groups):
        raise NovaliteError("a security group is given twice; give each group once with all its rules")
    return groups


def group_chain(group: Group, groups: t.Mapping[int, Group], family: str) -> Chain:
    """`nova-sg-<id>`: one ACCEPT for each rule of this family, sorted, so that the order of the rows is no change."""
    texts = set()  # type: set[str]
    for rule in group.rules:
        if rule.ethertype != family:
            continue
        match = _match(rule)
        if match is None:
            continue
        if rule.remote_group_id is None:
            texts.add(_join(_source(rule.cidr), match, "-j ACCEPT"))
        elif rule.remote_group_id in groups:
            for member in _hosts(groups[rule.remote_group_id].members, family):
                texts.add(_join(f"-s {member}", match, "-j ACCEPT"))
    return Chain(f"{GROUP}{group.id}", tuple(sorted(texts)))


def instance_chains(instance: Instance, family: str) -> list[Chain]:
    """`nova-inst-<id>` and `nova-new-<id>`; none when the instance has no address of this family."""
    if not instance.of(family):
        return []
    judged = [f"-j {GROUP}{group}" for group in instance.security_groups]
    server_port, client_port = (67, 68) if family == "IPv4" else (547, 546)
    judged += [
        f"-s {server} -p udp -m udp --sport {server_port} --dport {client_port} -j ACCEPT"
        for server in _hosts(instance.dhcp_servers, family)
    ]
    judged.append(f"-j {FALLBACK[family]}")
    first = []
    if family == "IPv6":
        first = [f"-p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j ACCEPT" for kind in _NEIGHBOUR_DISCOVERY]
        # A router advertises from its link-local address only (RFC 4861, 6.1.2).
        routers = _hosts(instance.ra_servers, family) or ("fe80::/10",)
        first += [f"-s {router} -p ipv6-icmp -m icmp6 --icmpv6-type 134 -j ACCEPT" for router in routers]
    return [
        Chain(
            f"{INSTANCE}{instance.id}",
            (
                *first,
                "-m conntrack --ctstate INVALID -j DROP",
                f"-m conntrack --ctstate ESTABLISHED --ctdir ORIGINAL -j {NEW}{instance.id}",
                "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
                *judged,
            ),
        ),
        Chain(f"{NEW}{instance.id}", tuple(judged)),
    ]


def jumps(instance: Instance, family: str) -> list[str]:
    """The instance's lines in nova-local."""
    return [f"-d {address} -j {INSTANCE}{instance.id}" for address in instance.of(family)]


def unsupported(groups: t.Iterable[Group]) -> list[str]:
    """A warning for each rule that iptables cannot tell from `any`; such a rule stays closed instead."""
    return [
        f"security group {group.id}: {reason}; the rule is left out"
        for group in groups
        for reason in (_inexpressible(rule) for rule in group.rules)
        if reason
    ]


def _parse_rule(group: int, value: t.Mapping[str, t.Any]) -> Rule:
    family = {"ipv4": "IPv4", "ipv6": "IPv6"}.get(str(value.get("ethertype") or "IPv4").lower())
    if family is None:
        raise NovaliteError(f"security group {group}: ethertype {value['ethertype']!r} is neither IPv4 nor IPv6")
    protocol = _protocol(group, value.get("protocol"), family)
    low, high = (None if port is None or int(port) == -1 else int(port)
                 for port in (value.get("port_min"), value.get("port_max")))
    if protocol in (1, 58):
        for number, what in ((low, "type"), (high, "code")):
            if number is not None and not 0 <= number <= 255:
                raise NovaliteError(f"security group {group}: ICMP {what} {number} is not between 0 and 255")
        if low is None and high is not None:
            raise NovaliteError(f"security group {group}: ICMP code {high} needs a type in port_min")
    elif low is not None or high is not None:
        if protocol not in _WITH_PORTS:
            raise NovaliteError(
                f"security group {group}: ports go with tcp, udp and sctp, not with protocol {value.get('protocol')!r}"
            )
        low, high = low if low is not None else high, high if high is not None else low
        if not 0 <= t.cast(int, low) <= t.cast(int, high) <= 65535:
            raise NovaliteError(f"security group {group}: {low}:{high} is no port range within 0:65535")
    cidr = value.get("cidr") or None
    remote = value.get("remote_group_id")
    if cidr is not None and remote is not None:
        raise NovaliteError(f"security group {group}: a rule names cidr {cidr} or a remote group, not both")
    if cidr is not None and family_of(cidr) != family:
        raise NovaliteError(f"security group {group}: {cidr} is no {family} address range")
    return Rule(family, protocol, low, high, cidr, None if remote is None else int(remote))


def _protocol(group: int, value: t.Any, family: str) -> int | None:
    # Folded: Nova compared "TCP" with "tcp" and opened nothing or, worse, did not close (CVE-2012-2654).
    name = str(value if value is not None else "any").strip().lower()
    if name in ("any", "all", "-1", ""):
        return None
    number = int(name) if name.isdecimal() else _NUMBERS.get(name)
    if number is None or number > 255:
        raise NovaliteError(
            f"security group {group}: protocol {value!r} is unknown; give tcp, udp, icmp, icmpv6, sctp, any or 0 to 255"
        )
    if family == "IPv6" and number == 1:
        return 58  # `icmp` in an IPv6 rule means ICMPv6, in every API
    if family == "IPv4" and number == 58:
        raise NovaliteError(f"security group {group}: protocol {value!r} does not go with IPv4; give icmp")
    return number


def _inexpressible(rule: Rule) -> str | None:
    # To iptables `-p 0` is "all" and `--icmp-type 255` is "any": rendering them would open far more than asked.
    if rule.protocol == 0:
        return "iptables cannot match protocol 0 (it means any)"
    if rule.protocol == 1 and rule.port_min == 255:
        return "iptables cannot match ICMP type 255 (it means any)"
    return None


def _match(rule: Rule) -> str | None:
    """The protocol part of a rule, `""` for any, None when it must not be rendered."""
    if _inexpressible(rule):
        return None
    if rule.protocol is None:
        return ""
    if rule.protocol in (1, 58):
        name, option = ("icmp", "icmp --icmp-type") if rule.protocol == 1 else ("ipv6-icmp", "icmp6 --icmpv6-type")
        if rule.port_min is None:
            return f"-p {name}"
        # Nova renamed the protocol before it asked for its type: `icmpv6 type 128` opened all of ICMPv6.
        return f"-p {name} -m {option} {rule.port_min}{'' if rule.port_max is None else f'/{rule.port_max}'}"
    name = _WITH_PORTS.get(rule.protocol, str(rule.protocol))
    if rule.port_min is None or (rule.port_min, rule.port_max) == (0, 65535):
        return f"-p {name}"
    ports = str(rule.port_min) if rule.port_min == rule.port_max else f"{rule.port_min}:{rule.port_max}"
    return f"-p {name} -m {name} --dport {ports}"


def _source(cidr: str | None) -> str:
    if cidr is None:
        return ""
    network = _interface(cidr).network
    if network.prefixlen == 0:
        return ""  # iptables-save leaves it out
    return f"-s {_canonical(network.network_address)}/{network.prefixlen}"


def _hosts(addresses: t.Iterable[str], family: str) -> tuple[str, ...]:
    """The addresses of one family as `<address>/32` or `/128`, each once, in the given order."""
    hosts = (_host(address) for address in addresses)
    return tuple(dict.fromkeys(text for its_family, text in hosts if its_family == family))


@functools.lru_cache(maxsize=65536)
def _host(address: str) -> tuple[str, str]:
    parsed = _interface(address).ip
    family = "IPv6" if parsed.version == 6 else "IPv4"
    return family, f"{_canonical(parsed)}/{_HOST_BITS[family]}"


def _interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    try:
        return ipaddress.ip_interface(text)
    except ValueError:
        raise NovaliteError(
            f"{text!r} is no IP address or range; write it as 10.0.0.5, 10.0.0.0/24 or fd00::/64"
        ) from None


def _canonical(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    # iptables prints with inet_ntop, which differs from Python for ::ffff:1.2.3.4.
    return socket.inet_ntop(socket.AF_INET6 if address.version == 6 else socket.AF_INET, address.packed)


def _identifier(what: str, value: t.Any) -> int:
    number = int(value)
    if not 0 <= number < 10**15:  # a chain's name has 28 characters
        raise NovaliteError(f"{what} id {value!r} is no number between 0 and 10^15")
    return number


def _texts(values: t.Iterable[t.Any] | None) -> tuple[str, ...]:
    return tuple(str(value).strip() for value in values or ())


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)
