# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host that drops what nobody accepts (Docker makes FORWARD so, administrators INPUT): what guests send still has to
get through, and what they ask of the host itself. Pure.

Nova accepts both for its bridges on every host. Here it is said only where it makes a difference, and as late as that
is possible: whatever else the host's own rules drop stays dropped. What reaches guests is judged long before.
"""

from __future__ import annotations

import re
import typing as t

SENT, ASKED = "nova-sent", "nova-asked"
METADATA = "169.254.169.254"
CALLED_FROM = {SENT: "FORWARD", ASKED: "INPUT"}

_BRIDGE = re.compile(r"(?:^| )-[io] (\S+) ")
_SOLICITATIONS = ("133", "135", "136")  # of routers and neighbours, and the answers
_DHCP = {"IPv4": 67, "IPv6": 547}


def end_of(rules: t.Sequence[str]) -> int | None:
    """The place of the first rule that drops whatever comes so far."""
    return next((place for place, rule in enumerate(rules) if rule == "-j DROP" or rule.startswith("-j REJECT")), None)


def dropping(policies: t.Mapping[str, str], chains: t.Mapping[str, t.Sequence[str]]) -> frozenset[str]:
    """Those of the built-in chains that guests pass which drop what nobody accepts."""
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
                _sent(bridge, isolated) if name == SENT else _asked(bridge, isolated, bridge in serving, family)
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


def _asked(bridge: str, isolated: bool, serving: bool, family: str) -> list[str]:
    if isolated:
        return []  # its servers are in the namespace
    rules = []
    if family == "IPv4":
        rules.append(f"-d {METADATA}/32 -i {bridge} -p tcp -m tcp --dport 80 -j ACCEPT")
    else:
        rules += [f"-i {bridge} -p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j ACCEPT" for kind in _SOLICITATIONS]
    if serving:
        rules += [
            f"-i {bridge} -p {protocol} -m {protocol} --dport {port} -j ACCEPT"
            for protocol, port in (("udp", _DHCP[family]), ("udp", 53), ("tcp", 53))
        ]
    return rules
