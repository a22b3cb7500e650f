# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Translation of instances and security groups into Nova's iptables chains, in the very words of `iptables-save`.

Pure: plain data in, chains out. The text is canonical (what `iptables-save` 1.8 prints for the rule), so that a chain
that is already on the host compares equal without a second parser.

One instance's packets, IPv4 (IPv6 has neighbour discovery and router advertisements in front)::

    FORWARD, OUTPUT   -j nova-local
    nova-local        -d <address>/32 -j nova-inst-<id>     (more than 64: see dispatch.py)
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

An instance may send anything, unless one of its groups has an egress rule. Then, in table `security`, which packets
come to after `filter` and where ACCEPT ends nothing but this question::

    FORWARD, INPUT    -j nova-out
    nova-out          -s <address>/32 -j nova-out-<id>
    nova-out-<id>     DHCP, neighbour discovery -> ACCEPT; INVALID -> DROP; RELATED -> ACCEPT
                      answers (--ctdir REPLY) -j nova-ri-<group> ...: what its ingress rules allow, seen backwards
                      -j nova-eg-<group> ...; DROP

and answers to what it opened are no longer accepted wholesale, but by `nova-re-<group>`, its egress rules seen
backwards. So a rule that is removed cuts its flows here too, whichever end sends next.

Isolated networks may use the same addresses, so for an instance on one the chains of its groups, and the sets of
members that these compare with, are those of that network: `nova-sg-<group>.<zone>`, `nova-g-<group>.<zone>-v4`. One
that is on several networks has a section for each, by the bridge (`-o <bridge> -j nova-sg-<group>.<zone>`).
"""

from __future__ import annotations

import dataclasses
import functools
import re
import typing as t

from .dispatch import IN, OUT
from .ports import Port
from .rules import FAMILIES, Rule, hosts, inexpressible, texts

LOCAL = IN.root
OUTGOING = OUT.root
ZONES = "nova-zone"  # table raw: the conntrack zone of each isolated bridge
FALLBACK = {"IPv4": "nova-ipv4-fallback", "IPv6": "nova-ipv6-fallback"}
FALLBACK_NAMES = frozenset(FALLBACK.values())
INSTANCE = IN.target
OUT_OF = OUT.target
NEW = "nova-new-"
GROUP = "nova-sg-"
EGRESS = "nova-eg-"
INGRESS_ANSWERS = "nova-ri-"
EGRESS_ANSWERS = "nova-re-"
SET = "nova-g-"
SET_SUFFIX = {"IPv4": "-v4", "IPv6": "-v6"}

# prefix of a group's chain -> the rules in it, and whether they are seen backwards
GROUP_CHAINS = {
    GROUP: ("ingress", False),
    EGRESS: ("egress", False),
    INGRESS_ANSWERS: ("ingress", True),
    EGRESS_ANSWERS: ("egress", True),
}

_SERVER = re.compile(
    r"-s (\S+)/(?:32|128) -p "
    r"(?:udp -m udp --sport (?:67|547) --dport (?:68|546)|ipv6-icmp -m icmp6 --icmpv6-type (134)) -j ACCEPT"
)
_OPEN_NETWORK = re.compile(r"-s (\S+) -i (\S+) -j ACCEPT")
_MARKED = "-m comment --comment "  # begins the last rule of an instance's chain; its UUID follows
_DHCP = {"IPv4": "--sport 67 --dport 68", "IPv6": "--sport 547 --dport 546"}
# What a guest needs before it can be spoken to at all. They are UNTRACKED or INVALID to conntrack, hence in front.
_NEIGHBOUR_DISCOVERY = ("135", "136")
# What a guest may always send: the same, router solicitation, and reports of the multicast groups it listens to.
_NEIGHBOURLY = ("133", "135", "136", "131", "132", "143")


class Chain(t.NamedTuple):
    """`rules` without `-A <name> `."""

    name: str
    rules: tuple[str, ...]


Chains = dict[str, tuple[str, ...]]
Zones = t.Mapping[str, t.Optional[int]]  # of the scopes of an instance: its bridge -> conntrack zone, "" -> None


class Content(t.NamedTuple):
    """The members of a group in a scope: `members`, or, where these are None, those that are known, with `joining` and
    without `leaving`. It is false where nothing was said."""

    members: tuple[str, ...] | None = None
    joining: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.members is not None or bool(self.joining or self.leaving)

    def of(self, there: frozenset[str], family: str) -> frozenset[str]:
        """The addresses of this family, where those that are `there` are known."""
        if self.members is not None:
            return _plain(self.members, family)
        return (there - _plain(self.leaving, family)) | _plain(self.joining, family)


def _plain(addresses: t.Iterable[str], family: str) -> frozenset[str]:
    return frozenset(host.partition("/")[0] for host in hosts(addresses, family))


@dataclasses.dataclass(frozen=True)
class Group:
    """`members` are the addresses that carry this group, for rules that name it, by scope as in Instance. Rules or
    members that are None were not said; what the host has stays, but for those that are `joining` and `leaving`."""

    id: int
    rules: tuple[Rule, ...] | None = None
    members: t.Mapping[str, tuple[str, ...]] | None = None
    joining: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    leaving: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def content(self, scope: str) -> Content:
        """Return what was said of the group's members in a scope."""
        members = None if self.members is None else tuple(self.members.get(scope, ()))
        return Content(members, self.joining.get(scope, ()), self.leaving.get(scope, ()))

    @property
    def tells_members(self) -> bool:
        return self.members is not None or bool(self.joining or self.leaving)

    @property
    def restricts(self) -> bool:
        """Tell whether its instances may send only what egress rules say."""
        return any(rule.direction == "egress" for rule in self.rules or ())

    @property
    def remotes(self) -> set[int]:
        return {rule.remote_group_id for rule in self.rules or () if rule.remote_group_id is not None}


@dataclasses.dataclass(frozen=True)
class Instance:
    """`addresses` by scope: "" is where addresses are nobody else's, otherwise the bridge of an isolated network.

    `shared` are addresses, by scope, that it may use beside others that may (an allowed address pair). `devices` are
    the names of its tap devices, `open_devices` of those whose port security is off. `open_networks` are (bridge, CIDR)
    of networks whose other members reach it whatever its groups say (Nova's allow_same_net_traffic). Its chain is
    marked with the `uuid`: another instance may have the same number, in a ledger that was restored.
    """

    id: int
    uuid: str | None = None
    addresses: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    shared: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    dhcp_servers: tuple[str, ...] = ()
    ra_servers: tuple[str, ...] = ()
    security_groups: tuple[int, ...] = ()
    ports: tuple[Port, ...] = ()
    devices: tuple[str, ...] = ()
    open_devices: tuple[str, ...] = ()
    open_networks: tuple[tuple[str, str], ...] = ()

    def of(self, family: str) -> list[tuple[str, str]]:
        """(scope, address as a CIDR of a single host) of one family, the shared ones not."""
        return self._hosts[family][0]

    def shared_of(self, family: str) -> list[tuple[str, str]]:
        return self._hosts[family][1]

    @functools.cached_property
    def _hosts(self) -> dict[str, list[list[tuple[str, str]]]]:
        return {
            family: [
                [(scope, cidr) for scope, of_scope in addresses.items() for cidr in hosts(of_scope, family)]
                for addresses in (self.addresses, self.shared)
            ]
            for family in FAMILIES
        }

    def is_in(self, family: str) -> bool:
        """Tell whether there is anything of this family to judge: what reaches a device is of both."""
        return bool(self.devices) or bool(self.of(family))

    def scopes(self, family: str) -> set[str]:
        """Scopes in which it has addresses of one family."""
        return {scope for scope, _cidr in (*self.of(family), *self.shared_of(family))}


def zoned(group: int, zone: int | None) -> str:
    """A group's part in the names of chains and sets: `3`, or `3.7` for those of the isolated network of zone 7."""
    return str(group) if zone is None else f"{group}.{zone}"


def group_of(part: str) -> tuple[int, int | None]:
    """The group and the zone of zoned()."""
    group, _dot, zone = part.partition(".")
    return int(group), int(zone) if zone else None


def set_name(part: str, family: str) -> str:
    return f"{SET}{part}{SET_SUFFIX[family]}"


def group_chain(
    prefix: str, group: Group, zone: int | None, family: str, sources: t.Callable[[int], t.Sequence[str]]
) -> Chain:
    """A group's chain: one ACCEPT for each rule of this family, sorted, so that the order of the rows is no change."""
    direction, answers = GROUP_CHAINS[prefix]
    lines: set[str] = set()
    for rule in group.rules or ():
        if rule.ethertype == family and rule.direction == direction:
            lines.update(texts(rule, sources, answers))
    if prefix == EGRESS and not lines and group.restricts:
        lines.add("-j RETURN")  # does nothing, and says that egress rules apply, if only those of the other family
    return Chain(f"{prefix}{zoned(group.id, zone)}", tuple(sorted(lines)))


def inbound_chains(
    who: str,
    family: str,
    groups: t.Iterable[int],
    zones: Zones,
    restricted: bool,
    dhcp_servers: t.Iterable[str] = (),
    ra_servers: t.Iterable[str] = (),
    open_networks: t.Iterable[tuple[str, str]] = (),
    uuid: str | None = None,
) -> list[Chain]:
    """`nova-inst-<who>`, marked with the `uuid`, and `nova-new-<who>`; `restricted`: egress rules apply to it."""
    groups = list(groups)
    first = []
    dhcp = [f"-s {server} -p udp -m udp {_DHCP[family]} -j ACCEPT" for server in hosts(dhcp_servers, family)]
    # by the bridge, too: whoever is elsewhere may write any source
    dhcp += [f"-s {cidr} -i {bridge} -j ACCEPT" for bridge, cidr in _of_family(open_networks, family)]
    if family == "IPv6":
        first = [f"-p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j ACCEPT" for kind in _NEIGHBOUR_DISCOVERY]
        # A router advertises from its link-local address only (RFC 4861, 6.1.2).
        routers = hosts(ra_servers, family) or ("fe80::/10",)
        first += [f"-s {router} -p ipv6-icmp -m icmp6 --icmpv6-type 134 -j ACCEPT" for router in routers]
    end = f"-j {FALLBACK[family]}"
    judged = _sections("-o", zones, groups, [f"-j {GROUP}{{group}}"], dhcp, end)
    everything = judged
    answers = ["-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"]
    if restricted:
        answers = ["-m conntrack --ctstate RELATED -j ACCEPT"]
        backwards = f"-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j {EGRESS_ANSWERS}{{group}}"
        everything = _sections("-o", zones, groups, [backwards, f"-j {GROUP}{{group}}"], dhcp, end)
    return [
        Chain(
            f"{INSTANCE}{who}",
            (
                *first,
                "-m conntrack --ctstate INVALID -j DROP",
                f"-m conntrack --ctstate ESTABLISHED --ctdir ORIGINAL -j {NEW}{who}",
                *answers,
                *everything[:-1],
                # in the last rule: no packet that is let through meets the mark
                f"{_MARKED}{uuid} {end}" if uuid else end,
            ),
        ),
        Chain(f"{NEW}{who}", tuple(judged)),
    ]


def uuid_of(rules: t.Sequence[str]) -> str | None:
    """The UUID that the chain of an instance is marked with, from its rules."""
    last = rules[-1] if rules else ""
    return last[len(_MARKED) :].partition(" ")[0] if last.startswith(_MARKED) else None


def servers_of(rules: t.Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The DHCP servers and routers of an instance, from its chain that inbound_chains() made."""
    servers: dict[str, list[str]] = {"dhcp": [], "ra": []}
    for rule in rules:
        match = _SERVER.fullmatch(rule)
        if match:
            servers["dhcp" if match[2] is None else "ra"].append(match[1])
    return tuple(servers["dhcp"]), tuple(servers["ra"])


def open_networks_of(rules: t.Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The open networks of an instance, from its chain that inbound_chains() made."""
    return tuple((match[2], match[1]) for match in map(_OPEN_NETWORK.fullmatch, rules) if match)


def _of_family(open_networks: t.Iterable[tuple[str, str]], family: str) -> list[tuple[str, str]]:
    return [(bridge, cidr) for bridge, cidr in open_networks if (":" in cidr) == (family == "IPv6")]


def outbound_chain(
    who: str, family: str, groups: t.Iterable[int], zones: Zones, open_networks: t.Iterable[tuple[str, str]] = ()
) -> Chain:
    """`nova-out-<who>`: what an instance to which egress rules apply may send."""
    if family == "IPv4":
        always = ["-p udp -m udp --sport 68 --dport 67 -j ACCEPT"]
    else:
        always = [f"-p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j ACCEPT" for kind in _NEIGHBOURLY]
        always.append("-p udp -m udp --sport 546 --dport 547 -j ACCEPT")
    return Chain(
        f"{OUT_OF}{who}",
        (
            *always,
            "-m conntrack --ctstate INVALID -j DROP",
            "-m conntrack --ctstate RELATED -j ACCEPT",
            *(
                f"-d {cidr} -o {bridge} -m conntrack --ctstate ESTABLISHED --ctdir REPLY -j ACCEPT"
                for bridge, cidr in _of_family(open_networks, family)
            ),
            *_sections(
                "-i",
                zones,
                list(groups),
                [
                    f"-m conntrack --ctstate ESTABLISHED --ctdir REPLY -j {INGRESS_ANSWERS}{{group}}",
                    f"-j {EGRESS}{{group}}",
                ],
                [],
                "-j DROP",
            ),
        ),
    )


def _sections(
    device: str, zones: Zones, groups: t.Sequence[int], jumps: t.Sequence[str], further: t.Sequence[str], end: str
) -> list[str]:
    """The jumps of each network that an instance is on, to the chains for that network, and what ends them all.

    Of several networks, those that are isolated have their bridge before their jumps and an end of their own.
    """
    several = len(zones) > 1
    lines = list(further) if several else []
    for bridge in sorted(zones, reverse=True):  # "", which knows no bridge, comes last
        ours = [jump.format(group=zoned(group, zones[bridge])) for jump in jumps for group in groups]
        if several and bridge:
            lines += [f"{device} {bridge} {line}" for line in (*ours, end)]
        else:
            lines += ours
    return [*lines, *([] if several else further), end]


def unsupported(groups: t.Iterable[Group]) -> list[str]:
    """A warning for each rule that iptables cannot tell from `any`; such a rule stays closed instead."""
    return [
        f"security group {group.id}: {reason}; the rule is left out"
        for group in groups
        for reason in (inexpressible(rule) for rule in group.rules or ())
        if reason
    ]
