# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The meaning of security groups, written from their definition and from what they are documented to do.

It shares no code with the firewall that it judges, and knows nothing of chains. A policy is what the module `firewall`
takes: `{"instances": [...], "security_groups": [...]}`.

What arrives at an instance's address:

1. Neighbour discovery, and advertisements of the routers that an instance has (any link-local one when none is named),
   reach it whatever its groups say. They are what it needs before anybody can speak to it.
2. Answers to what an instance itself opened, and errors about that, reach it. Where egress rules apply to it, what they
   allow now.
3. What is malformed, or belongs to no connection though it claims to, does not.
4. Of the rest that reaches it which one of its groups' rules allows, and answers of its DHCP servers.

What leaves from an instance's address:

5. Anything, as long as none of its groups has an egress rule.
6. Otherwise DHCP, neighbour discovery and multicast reports, errors about what it knows of, answers to what its ingress
   rules allow, and what an egress rule allows.

What concerns no instance is none of the firewall's business. An address that several instances may use (an allowed
address pair) is one of an instance with the groups that all of them have.
"""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import typing as t

Policy = t.Mapping[str, t.Any]

# Thousands of probes ask about the same few texts
ip_address = functools.lru_cache(maxsize=4096)(ipaddress.ip_address)
ip_network = functools.lru_cache(maxsize=4096)(ipaddress.ip_network)


@functools.lru_cache(maxsize=4096)
def canonical(address: str) -> str:
    return str(ipaddress.ip_address(address))


@functools.lru_cache(maxsize=4096)
def canonical_set(*addresses: str) -> frozenset[str]:
    return frozenset(map(canonical, addresses))


NUMBERS = {"icmp": 1, "tcp": 6, "udp": 17, "icmpv6": 58, "ipv6-icmp": 58, "sctp": 132}
REQUESTS = {4: (8, 13, 15, 17), 6: (128, 139)}  # ICMP that opens a conversation
UNTRACKED = (130, 131, 132, 133, 134, 135, 136, 143)  # ICMPv6 without conversations: multicast and neighbours
ICMP_ERRORS = {4: (3, 4, 5, 11, 12), 6: (1, 2, 3, 4)}


@dataclasses.dataclass(frozen=True)
class Probe:
    """A packet, as far as its fate depends on it. `port` is the destination's, or the ICMP type, `sport` the
    source's, or the ICMP code."""

    what: str
    sender: str
    receiver: str
    source: str
    destination: str
    protocol: int
    port: int | None = None
    sport: int | None = None
    valid: bool = True  # False: belongs to no connection though it claims to
    answers: Probe | None = None  # it is an answer to that packet, which was sent just before
    established: bool = False  # and that connection is known, whatever the rules say about it by now
    error_about: Probe | None = None  # it is an ICMP error about that packet
    style: str = ""  # how it is put on the wire; see probes.py

    @property
    def version(self) -> int:
        return 6 if ":" in self.destination else 4

    def __str__(self) -> str:
        ports = "" if self.port is None else f" {self.sport}->{self.port}"
        return (
            f"{self.what}: {self.sender} {self.source} -> {self.receiver} {self.destination} "
            f"protocol {self.protocol}{ports}{' ' + self.style if self.style else ''}"
        )


def passes(policy: Policy, probe: Probe) -> bool:
    """Tell whether the packet shall come out at its receiver."""
    return why(policy, probe)[0]


def why(policy: Policy, probe: Probe) -> tuple[bool, str]:
    """The verdict and its reason."""
    if probe.style == "lone fragment":
        return False, "a piece without its beginning is not a packet"
    leaves, reason = _leaves(policy, probe)
    if not leaves:
        return False, f"may not be sent: {reason}"
    return _arrives(policy, probe)


def owner_of(policy: Policy, address: str) -> t.Mapping[str, t.Any] | None:
    sharing = []
    for instance in policy["instances"]:
        if canonical(address) in canonical_set(*instance["addresses"]):
            return t.cast("t.Mapping[str, t.Any]", instance)
        for pair in instance.get("allowed_pairs") or []:
            if ip_address(address) in ip_network(pair["cidr"]):
                sharing.append(instance)
    if not sharing:
        return None
    common = [
        group
        for group in sharing[0]["security_groups"]
        if all(group in instance["security_groups"] for instance in sharing)
    ]
    every = [group for instance in sharing for group in instance["security_groups"]]
    return {"security_groups": common, "restricting": every}


def allows(rule: Policy, probe: Probe, groups: t.Mapping[int, Policy], direction: str = "ingress") -> bool:
    """Tell whether a rule lets in, or out, a packet that opens something."""
    if rule.get("direction", "ingress") != direction or rule.get("ethertype", "IPv4") != f"IPv{probe.version}":
        return False
    far = probe.source if direction == "ingress" else probe.destination
    if rule.get("remote_group_id") is not None:
        if canonical(far) not in canonical_set(*groups[rule["remote_group_id"]].get("members", [])):
            return False
    elif rule.get("cidr") is not None and ip_address(far) not in ip_network(rule["cidr"], strict=False):
        return False
    name = str(rule.get("protocol") or "any").lower()
    if name == "any":
        return True
    number = int(name) if name.isdecimal() else NUMBERS[name]
    if probe.version == 6 and number == 1:
        number = 58  # icmp in a rule for IPv6 is ICMPv6
    if number != probe.protocol:
        return False
    low, high = rule.get("port_min"), rule.get("port_max")
    if number in (1, 58):
        return low in (None, probe.port) and high in (None, probe.sport)
    ports = [port for port in (low, high) if port is not None]
    return not ports or (probe.port is not None and ports[0] <= probe.port <= ports[-1])


def _arrives(policy: Policy, probe: Probe) -> tuple[bool, str]:
    owner = owner_of(policy, probe.destination)
    if owner is None:
        return True, "not addressed to an instance"
    if probe.protocol == 58:
        if probe.port in (135, 136):
            return True, "neighbour discovery"
        if probe.port == 134 and _is_router(owner, probe.source):
            return True, "an advertisement of its router"
    if probe.error_about is not None and passes(policy, probe.error_about):
        return True, "an error about what the instance sent"
    known = _is_answer(policy, probe)
    if known and (not _restricted(policy, owner) or _rule_for(policy, owner, probe.answers, "egress")):
        return True, "an answer to what the instance sent"
    if not known and not _makes_sense(probe):
        return False, "belongs to no connection"
    if _is_dhcp_answer(owner, probe):
        return True, "an answer of its DHCP server"
    rule = _rule_for(policy, owner, probe, "ingress")
    return bool(rule), rule or "no rule allows it"


def _leaves(policy: Policy, probe: Probe) -> tuple[bool, str]:
    owner = owner_of(policy, probe.source)
    if owner is None or not _restricted(policy, owner):
        return True, "no egress rules apply to it"
    if probe.protocol == 17 and (probe.sport, probe.port) == ((68, 67) if probe.version == 4 else (546, 547)):
        return True, "DHCP"
    if probe.version == 6 and probe.protocol == 58 and probe.port in (131, 132, 133, 135, 136, 143):
        return True, "neighbour discovery"
    if probe.error_about is not None and passes(policy, probe.error_about):
        return True, "an error about what it knows"
    known = _is_answer(policy, probe)
    if known and _rule_for(policy, owner, probe.answers, "ingress"):
        return True, "an answer to what its rules allow"
    if not known and not _makes_sense(probe):
        return False, "belongs to no connection"
    rule = _rule_for(policy, owner, probe, "egress")
    return bool(rule), rule or "no egress rule allows it"


def _restricted(policy: Policy, owner: Policy) -> bool:
    groups = {group["id"]: group for group in policy["security_groups"]}
    return any(
        rule.get("direction") == "egress"
        for number in owner.get("restricting", owner["security_groups"])
        for rule in groups[number]["rules"]
    )


def _rule_for(policy: Policy, owner: Policy, probe: Probe | None, direction: str) -> str:
    """A rule that allows the packet, in words; nothing when there is none."""
    groups = {group["id"]: group for group in policy["security_groups"]}
    for number in owner["security_groups"]:
        for rule in groups[number]["rules"]:
            if probe is not None and allows(rule, probe, groups, direction):
                return f"group {number}: {rule}"
    return ""


def _is_answer(policy: Policy, probe: Probe) -> bool:
    return probe.answers is not None and (probe.established or passes(policy, probe.answers))


def _makes_sense(probe: Probe) -> bool:
    if not probe.valid or probe.error_about is not None:
        return False
    if probe.protocol in (1, 58) and probe.version == (4 if probe.protocol == 1 else 6):
        return probe.port in REQUESTS[probe.version] or (probe.version == 6 and probe.port in UNTRACKED)
    return True


def _is_router(owner: Policy, source: str) -> bool:
    routers = owner.get("ra_servers") or []
    if routers:
        return canonical(source) in canonical_set(*routers)
    return ip_address(source).is_link_local


def _is_dhcp_answer(owner: Policy, probe: Probe) -> bool:
    ports = (67, 68) if probe.version == 4 else (547, 546)
    if probe.protocol != 17 or (probe.sport, probe.port) != ports:
        return False
    return canonical(probe.source) in canonical_set(*owner.get("dhcp_servers") or [])
