# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Passage of guests' packets past the host that they are on, and to the host itself. Pure.

A host that drops what nobody accepts (Docker makes FORWARD so, administrators INPUT) still has to let both through.
Nova accepts both for its bridges on every host. Here it is said only where it makes a difference, and as late as that
is possible: whatever else the host's own rules drop stays dropped. What reaches guests is judged long before.

And a guest reaches every port of a hypervisor that has an address on the guest's bridge: ssh, libvirt, migration.
Neutron's hosts have none there. So a host lets its guests ask for metadata, DHCP, names and neighbours, and what its
operator opens beside. It is about packets that come in by a guest's tap device, or out of an isolated network's
namespace: others on the same bridge are the operator's::

    INPUT         -j nova-host
    nova-host     -i nt-+ -g nova-to-host
                  -m physdev --physdev-in tap0a1b2c3d-4e -g nova-to-host
    nova-to-host  answers, what is on its way, what is open -> RETURN, to the host's own rules; DROP
"""

from __future__ import annotations

import re
import typing as t

from .._errors import NovaliteError

SENT, ASKED = "nova-sent", "nova-asked"
METADATA = "169.254.169.254"
CALLED_FROM = {SENT: "FORWARD", ASKED: "INPUT"}

_BRIDGE = re.compile(r"(?:^| )-[io] (\S+) ")
_NEIGHBOURS = ("133", "135", "136")  # solicitations of routers and neighbours, and advertisements
_SERVED = {family: (("udp", dhcp), ("udp", "53"), ("tcp", "53")) for family, dhcp in (("IPv4", "67"), ("IPv6", "547"))}

EVERYTHING = "any"
_OPENED = re.compile(r"(tcp|udp|sctp)/([0-9]{1,5})(?:-([0-9]{1,5}))?")
_ANSWERS = "-m conntrack --ctstate RELATED,ESTABLISHED --ctdir REPLY -j RETURN"
# A guest that comes by live migration goes on with what it had. The connections of its address are forgotten then, and
# if the guest speaks next, the kernel takes it for who began. Without SYN none begins, and no port is told from others.
_ON_THE_WAY = "-p tcp -m tcp --tcp-flags SYN,ACK ACK -j RETURN"
_ICMP = {"IPv4": "icmp", "IPv6": "ipv6-icmp"}


def end_of(rules: t.Sequence[str]) -> int | None:
    """The place of the first rule that drops whatever comes so far."""
    return next((place for place, rule in enumerate(rules) if rule == "-j DROP" or rule.startswith("-j REJECT")), None)


def dropping(policies: t.Mapping[str, str], chains: t.Mapping[str, t.Sequence[str]]) -> frozenset[str]:
    """Return the built-in chains on the way of guests' packets that drop what nobody accepts."""
    return frozenset(
        chain
        for chain in CALLED_FROM.values()
        if policies.get(chain) == "DROP" or end_of(chains.get(chain, ())) is not None
    )


def chains(
    there: t.Mapping[str, t.Sequence[str]],
    dropped: t.Container[str],
    bridges: t.Mapping[str, bool],
    serving: t.Container[str],
    family: str,
    keep: bool,
) -> dict[str, tuple[str, ...]]:
    """The chains that are needed, from those that are `there`. `bridges`: name -> whether its network is isolated;
    `serving`: on which of them this host is the guests' DHCP and name server. `keep` the others that have rules now."""
    by_name = {}
    for name, built_in in CALLED_FROM.items():
        if built_in not in dropped:
            continue
        rules = {}  # type: dict[str, list[str]]
        for rule in there.get(name, ()) if keep else ():
            bridge = bridge_of(rule)
            if bridge is not None and bridge not in bridges:
                rules.setdefault(bridge, []).append(rule)
        for bridge, isolated in bridges.items():
            rules[bridge] = (
                _sent(bridge, isolated) if name == SENT else _input_rules(bridge, isolated, bridge in serving, family)
            )
        lines = [rule for bridge in sorted(rules) for rule in rules[bridge]]
        if lines:
            by_name[name] = tuple(lines)
    return by_name


def without(there: t.Mapping[str, t.Sequence[str]], bridges: t.Container[str]) -> dict[str, tuple[str, ...]]:
    """The chains that are `there`, without the rules of these bridges, as far as anything is left."""
    left = {name: tuple(rule for rule in there.get(name, ()) if bridge_of(rule) not in bridges) for name in CALLED_FROM}
    return {name: rules for name, rules in left.items() if rules}


def bridge_of(rule: str) -> str | None:
    """The bridge that a rule is about."""
    match = _BRIDGE.search(rule)
    return match[1] if match else None


def _sent(bridge: str, isolated: bool) -> list[str]:
    if isolated:  # nothing is routed out of it here, but in its namespace
        return [f"-i {bridge} -m physdev --physdev-is-bridged -j ACCEPT"]
    # Who is no guest of this host, and on the same network, must get his answers.
    return [f"-i {bridge} -j ACCEPT", f"-o {bridge} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"]


def _input_rules(bridge: str, isolated: bool, serving: bool, family: str) -> list[str]:
    if isolated:
        return []  # its servers are in the namespace
    device = f"-i {bridge} "
    return _needed(family, "ACCEPT", device) + (_at_ports(_SERVED[family], "ACCEPT", device) if serving else [])


def _needed(family: str, verdict: str, device: str = "") -> list[str]:
    """The rules for what no guest can do without: metadata, neighbours."""
    if family == "IPv4":
        return [f"-d {METADATA}/32 {device}-p tcp -m tcp --dport 80 -j {verdict}"]
    return [f"{device}-p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j {verdict}" for kind in _NEIGHBOURS]


def _at_ports(ports: t.Iterable[tuple[str, str]], verdict: str, device: str = "") -> list[str]:
    return [f"{device}-p {protocol} -m {protocol} --dport {port} -j {verdict}" for protocol, port in ports]


# --- what the guests of this host ask of it ---


def parse_opened(values: t.Iterable[str] | None) -> tuple[str, ...] | None:
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


def host_chain(family: str, opened: t.Collection[str] = ()) -> tuple[str, ...]:
    """The rules for what guests ask of this host; `opened` is what parse_opened() returns."""
    if EVERYTHING in opened:
        return ("-j RETURN",)
    ports = list(_SERVED[family])
    for match in filter(None, map(_OPENED.fullmatch, opened)):
        first, last = int(match[2]), int(match[3] or match[2])
        ports.append((match[1], str(first) if first == last else f"{first}:{last}"))
    icmp = [f"-p {_ICMP[family]} -j RETURN"] if "icmp" in opened else []
    rules = [*_needed(family, "RETURN"), *_at_ports(dict.fromkeys(ports), "RETURN"), *icmp]
    return (_ANSWERS, _ON_THE_WAY, *rules, "-j DROP")
