# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What security groups mean, written from their definition and from what they are documented to do.

It shares no code with the firewall that it judges, and knows nothing of chains. A policy is what the module `firewall`
takes: `{"instances": [...], "security_groups": [...]}`.

1. What is not addressed to an instance is none of the firewall's business.
2. Neighbour discovery, and advertisements of the routers that an instance has (any link-local one when none is named),
   reach it whatever its groups say. They are what it needs before anybody can speak to it.
3. Answers to what an instance itself opened, and errors about that, reach it.
4. What is malformed, or belongs to no connection though it claims to, does not.
5. Of the rest that reaches it which one of its groups' rules allows, and answers of its DHCP servers (IPv6: of any on
   its network).
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

Policy = t.Mapping[str, t.Any]

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
    """Whether the packet shall come out at its receiver."""
    return why(policy, probe)[0]


def why(policy: Policy, probe: Probe) -> tuple[bool, str]:
    """The verdict and its reason."""
    if probe.style == "lone fragment":
        return False, "a piece without its beginning is no packet"
    owner = owner_of(policy, probe.destination)
    if owner is None:
        return True, "not addressed to an instance"
    if probe.protocol == 58:
        if probe.port in (135, 136):
            return True, "neighbour discovery"
        if probe.port == 134 and _is_router(owner, probe.source):
            return True, "an advertisement of its router"
    for earlier, what in ((probe.answers, "an answer to"), (probe.error_about, "an error about")):
        if earlier is not None and passes(policy, earlier):
            return True, f"{what} what the instance sent"
    if not _makes_sense(probe):
        return False, "belongs to no connection"
    if _is_dhcp_answer(owner, probe):
        return True, "an answer of its DHCP server"
    groups = {group["id"]: group for group in policy["security_groups"]}
    for number in owner["security_groups"]:
        for rule in groups[number]["rules"]:
            if allows(rule, probe, groups):
                return True, f"group {number}: {rule}"
    return False, "no rule allows it"


def owner_of(policy: Policy, address: str) -> t.Mapping[str, t.Any] | None:
    wanted = ipaddress.ip_address(address)
    for instance in policy["instances"]:
        if wanted in [ipaddress.ip_address(one) for one in instance["addresses"]]:
            return t.cast("t.Mapping[str, t.Any]", instance)
    return None


def allows(rule: Policy, probe: Probe, groups: t.Mapping[int, Policy]) -> bool:
    """Whether a rule lets in a packet that opens something."""
    if rule.get("direction", "ingress") != "ingress" or rule.get("ethertype", "IPv4") != f"IPv{probe.version}":
        return False
    source = ipaddress.ip_address(probe.source)
    if rule.get("remote_group_id") is not None:
        members = groups[rule["remote_group_id"]].get("members", [])
        if source not in [ipaddress.ip_address(one) for one in members]:
            return False
    elif rule.get("cidr") is not None and source not in ipaddress.ip_network(rule["cidr"], strict=False):
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


def _makes_sense(probe: Probe) -> bool:
    if not probe.valid or probe.error_about is not None:
        return False
    if probe.protocol in (1, 58) and probe.version == (4 if probe.protocol == 1 else 6):
        return probe.port in REQUESTS[probe.version] or (probe.version == 6 and probe.port in UNTRACKED)
    return True


def _is_router(owner: Policy, source: str) -> bool:
    routers = owner.get("ra_servers") or []
    if routers:
        return ipaddress.ip_address(source) in [ipaddress.ip_address(one) for one in routers]
    return ipaddress.ip_address(source).is_link_local


def _is_dhcp_answer(owner: Policy, probe: Probe) -> bool:
    ports = (67, 68) if probe.version == 4 else (547, 546)
    servers = [ipaddress.ip_address(one) for one in owner.get("dhcp_servers") or []]
    if probe.protocol != 17 or (probe.sport, probe.port) != ports:
        return False
    source = ipaddress.ip_address(probe.source)
    return source.is_link_local if probe.version == 6 else source in servers
