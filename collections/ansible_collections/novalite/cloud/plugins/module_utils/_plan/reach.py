# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reachability: whether A may talk to B, and by which rule of security groups, worked out without a host. Pure.

The same questions in the same order as a packet meets them: what the sender may send, what may reach the receiver.
"""

from __future__ import annotations

import dataclasses
import typing as t

import netaddr

from .._firewall.rules import NAMES, WITH_PORTS, Rule, parse_rule
from .._json import JsonMapping, JsonObject

_ICMP = (1, 58)

Groups = t.Sequence[JsonMapping]  # {"id", "name", "rules"}, as in the record of an instance


@dataclasses.dataclass(frozen=True)
class Address:
    """`network` is the id of an instance's network, `scope` that network's bridge where nothing is routed into it;
    `judged`: port security is on. `bridge`, `device` and `cidr` are where a host finds it."""

    text: str
    network: int | None = None
    scope: str = ""
    bridge: str = ""
    device: str = ""
    cidr: str = ""
    judged: bool = True
    open_network: bool = False  # to its own guests

    @property
    def family(self) -> str:
        return "IPv6" if ":" in self.text else "IPv4"


@dataclasses.dataclass(frozen=True)
class End:
    """Party to a talk. `groups` is None for what is not an instance: nobody judges what it sends and receives. `host`
    is where its chains are, empty where there are none."""

    name: str
    addresses: tuple[Address, ...]
    groups: Groups | None = None
    host: str = ""


@dataclasses.dataclass(frozen=True)
class Talk:
    """The subject of a talk: a protocol as a rule names it, and a port, or for ICMP a type and code."""

    protocol: str
    port: int | None = None
    code: int | None = None

    def number(self, family: str) -> int:
        """The protocol's number. Raises NovaliteError for one that is unknown, or does not go with the family."""
        number = parse_rule(0, {"ethertype": family, "protocol": self.protocol}).protocol
        return -1 if number is None else number

    def text(self, family: str) -> str:
        number = self.number(family)
        name = "any" if number < 0 else NAMES.get(number, str(number))
        kind = " type" if number in _ICMP else ""
        return name if self.port is None else f"{name}{kind} {self.port}"


class Remote(t.NamedTuple):
    """A group that rules name: its name, and by scope the addresses of its members."""

    name: str
    members: t.Mapping[str, t.Collection[str]]


Remotes = t.Mapping[int, Remote]


def answers(source: End, destination: End, talk: Talk, remotes: Remotes) -> list[JsonObject]:
    """List one answer for each pair of addresses of the same family. Raises NovaliteError for an invalid protocol."""
    return [
        _answer(source, here, destination, there, talk, remotes)
        for here in source.addresses
        for there in destination.addresses
        if here.family == there.family
    ]


def ingress_refusal(name: str, groups: Groups, source: Address, talk: Talk) -> str | None:
    """Return why the instance `name` with these security groups lets nothing in from `source`, which is no member of
    any group; None when a rule does."""
    judgement = _judge(End(name, (), groups), "ingress", source, talk, {})
    return None if judgement["allowed"] else str(judgement["reason"])


def describe(rule: Rule, remotes: Remotes) -> str:
    """A rule in a few words: `tcp 22 from 0.0.0.0/0`."""
    far = rule.cidr or ("::/0" if rule.ethertype == "IPv6" else "0.0.0.0/0")
    if rule.remote_group_id is not None:
        there = remotes.get(rule.remote_group_id)
        far = f"group {rule.remote_group_id if there is None else there.name}"
    return f"{subject(rule)} {'to' if rule.direction == 'egress' else 'from'} {far}"


def subject(rule: Rule) -> str:
    """The subject of a rule: `tcp 8000-8080`, `icmp type 8`, `any`."""
    name = "anything" if rule.protocol is None else NAMES.get(rule.protocol, f"protocol {rule.protocol}")
    low, high = rule.port_min, rule.port_max
    if low is None:
        return name
    if rule.protocol in _ICMP:
        return f"{name} type {low}" + ("" if high is None else f" code {high}")
    return f"{name} {low}" if low == high else f"{name} {low}-{high}"


def _answer(source: End, here: Address, destination: End, there: Address, talk: Talk, remotes: Remotes) -> JsonObject:
    apart = here.network != there.network and bool(here.scope or there.scope)
    sides = (
        {}
        if apart
        else {
            "egress": _judge(source, "egress", there, talk, remotes, here),
            "ingress": _judge(destination, "ingress", here, talk, remotes, there),
        }
    )
    allowed = not apart and all(side["allowed"] for side in sides.values())
    if apart:
        reason = "they are on different networks, and one of these is isolated"
    elif allowed:
        reason = ", ".join(side["reason"] for side in sides.values() if side["reason"])
    else:
        reason = "; ".join(side["reason"] for side in sides.values() if not side["allowed"])
    line = (
        f"{source.name} {here.text} -> {destination.name} {there.text} {talk.text(here.family)}: "
        f"{'allowed' if allowed else 'not allowed'}, {reason or 'neither is an instance'}"
    )
    return {
        "family": here.family,
        "source": here.text,
        "destination": there.text,
        "allowed": allowed,
        "rules": {name: side["rule"] for name, side in sides.items()},
        "line": line,
    }


def _judge(
    end: End, direction: str, far: Address, talk: Talk, remotes: Remotes, own: Address | None = None
) -> JsonObject:
    if end.groups is None:
        return {"allowed": True, "rule": None, "reason": ""}
    if direction == "ingress" and own is not None and own.open_network and own.network == far.network:
        return {"allowed": True, "rule": None, "reason": f"the network of {end.name} is open to itself"}
    if own is not None and not own.judged:
        return {"allowed": True, "rule": None, "reason": f"port security of {end.name} is off"}
    rules = [(group, rule, parse_rule(int(group["id"]), rule)) for group in end.groups for rule in group["rules"]]
    mine = [rule for rule in rules if rule[2].direction == direction]
    if direction == "egress" and not mine:
        return {"allowed": True, "rule": None, "reason": f"{end.name} may send anything"}
    for group, rule, parsed in mine:
        if parsed.ethertype == far.family and _about(parsed, talk, far.family) and _covers(parsed, far, remotes):
            return {
                "allowed": True,
                "rule": {**rule, "group": group["name"]},
                "reason": f"{'sent' if direction == 'egress' else 'let in'} by group {group['name']}: "
                f"{describe(parsed, remotes)}",
            }
    named = ", ".join(str(group["name"]) for group in end.groups) or "none"
    verb = "lets it out" if direction == "egress" else "lets it in"
    return {"allowed": False, "rule": None, "reason": f"no rule {verb} (groups of {end.name}: {named})"}


def _about(rule: Rule, talk: Talk, family: str) -> bool:
    if rule.protocol is None:
        return True
    number = talk.number(family)
    if rule.protocol != number:
        return False
    if number in _ICMP:
        return rule.port_min in (None, talk.port) and rule.port_max in (None, talk.code)
    if number not in WITH_PORTS or rule.port_min is None or rule.port_max is None:
        return True
    return talk.port is not None and rule.port_min <= talk.port <= rule.port_max


def _covers(rule: Rule, far: Address, remotes: Remotes) -> bool:
    address = netaddr.IPAddress(far.text)
    if rule.remote_group_id is not None:
        there = remotes.get(rule.remote_group_id)
        members = () if there is None else there.members.get(far.scope, ())
        return any(address == netaddr.IPAddress(member) for member in members)
    return rule.cidr is None or address in netaddr.IPNetwork(rule.cidr)
