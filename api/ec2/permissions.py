# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""EC2's permissions, of which each stands for several of our rules, and our rules as such."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._rules.rules import (
    EVERYONE,
    PROTOCOLS,
    canonical_range,
    identity,
    normalised,
)

from . import ids
from .common import Body, Parameters, Record
from .faults import Ec2Error, as_codes, invalid, missing
from .parameters import Group, ListOf, Number, Shape, Text, each

Rule = Record
FindGroup = t.Callable[[Body], str]  # what a pair names -> UUID

ANY = "-1"
# EC2 names these, and numbers the others
NAMED = ("tcp", "udp", "icmp", "icmpv6")
NUMBERS = {name: number for number, name in PROTOCOLS.items() if number.isdecimal()}
_PORT = Number(-1, 65535)
_DESCRIPTION = Text(255)
_PAIR = Group(
    {**each(Text(), "UserId GroupName GroupId VpcId VpcPeeringConnectionId PeeringStatus"), "Description": _DESCRIPTION}
)
_PERMISSION = Group(
    {
        "IpProtocol": Text(16),
        "FromPort": _PORT,
        "ToPort": _PORT,
        "IpRanges": ListOf(Group({"CidrIp": Text(64), "Description": _DESCRIPTION}, ["CidrIp"])),
        "Ipv6Ranges": ListOf(Group({"CidrIpv6": Text(64), "Description": _DESCRIPTION}, ["CidrIpv6"])),
        "Groups": ListOf(_PAIR),
        "UserIdGroupPairs": ListOf(_PAIR),
        "PrefixListIds": ListOf(Group({"PrefixListId": Text(), "Description": _DESCRIPTION})),
    },
    ["IpProtocol"],
)
# IpPermissions, and the one permission that older tools write beside it
PARAMETERS: t.Mapping[str, Shape] = {
    "IpPermissions": ListOf(_PERMISSION, 100),
    "IpProtocol": Text(16),
    "FromPort": _PORT,
    "ToPort": _PORT,
    "CidrIp": Text(64),
    "SourceSecurityGroupName": Text(),
    "SourceSecurityGroupOwnerId": Text(),
}


def requested_rules(parameters: Parameters, direction: str, find_group: FindGroup) -> list[Rule]:
    """The rules that a request is about, of the fields of RuleRequest. Raises Ec2Error."""
    permissions = list(parameters.get("IpPermissions", []))
    if "CidrIp" in parameters or "SourceSecurityGroupName" in parameters or "IpProtocol" in parameters:
        permission: Body = {name: parameters[name] for name in ("FromPort", "ToPort") if name in parameters}
        permission["IpProtocol"] = parameters.get("IpProtocol", ANY if "SourceSecurityGroupName" in parameters else "")
        if "CidrIp" in parameters:
            permission["IpRanges"] = [{"CidrIp": parameters["CidrIp"]}]
        if "SourceSecurityGroupName" in parameters:
            owner = parameters.get("SourceSecurityGroupOwnerId")
            permission["Groups"] = [{"GroupName": parameters["SourceSecurityGroupName"], "UserId": owner}]
        permissions.append(permission)
    if not permissions:
        raise missing("IpPermissions")
    return [rule for permission in permissions for rule in _rules(permission, direction, find_group)]


def _rules(permission: Body, direction: str, find_group: FindGroup) -> list[Rule]:
    if permission.get("PrefixListIds"):
        raise invalid("PrefixListIds", "", "there are no prefix lists here")
    sources: list[Rule] = []
    for element, address, family in (("IpRanges", "CidrIp", "IPv4"), ("Ipv6Ranges", "CidrIpv6", "IPv6")):
        for ip_range in permission.get(element, []):
            sources.append(
                {
                    "cidr": canonical_range(ip_range[address]),
                    "ethertype": family,
                    "description": ip_range.get("Description", ""),
                }
            )
    for peer in [*permission.get("Groups", []), *permission.get("UserIdGroupPairs", [])]:
        remote = find_group(peer)
        sources.append({"cidr": None, "remote_group_uuid": remote, "description": peer.get("Description", "")})
    if not sources:
        raise missing("IpPermissions.1.IpRanges")
    protocol = permission["IpProtocol"].lower()
    where = _ports(protocol, permission.get("FromPort"), permission.get("ToPort"))
    return [{"direction": direction, "protocol": protocol, **where, **source} for source in sources]


def _ports(protocol: str, low: int | None, high: int | None) -> Rule:
    name = PROTOCOLS.get(protocol, protocol)
    if name in ("icmp", "icmpv6"):
        return {"icmp_type": low, "icmp_code": high}
    if name not in ("tcp", "udp", "sctp"):
        return {"port_min": None, "port_max": None}  # as Amazon, which does not look at them
    if (low is None) != (high is None) or (low is None and name != "sctp"):
        raise Ec2Error("InvalidParameterValue", "Must specify both from and to ports with TCP/UDP.")
    if (low, high) in ((None, None), (-1, -1), (0, 65535)):
        return {"port_min": None, "port_max": None}
    return {"port_min": 1 if low == 0 and high else low, "port_max": high}


def same(requested_rule: Rule, there: t.Sequence[Rule]) -> list[Rule]:
    """List a group's rules that equal the requested rule. Raises Ec2Error for a request that makes no sense."""
    fields = {name: value for name, value in requested_rule.items() if name != "description"}
    remote = requested_rule.get("remote_group_uuid")
    with as_codes({}):
        key = key_of({**normalised({**fields, "remote_group": remote}), "remote_group_uuid": remote})
    return [rule for rule in there if key_of(rule) == key]


def key_of(rule: Rule) -> tuple[str, ...]:
    """The values that make two rules the same to EC2: one about a group is about both address families there."""
    remote = rule["remote_group_uuid"]
    return identity({**rule, "remote_group": remote, **({} if remote is None else {"ethertype": None})})


def folded(rules: t.Iterable[Rule]) -> list[Rule]:
    """The rules as EC2 shows them: of those that are the same to it, the first."""
    shown: dict[tuple[str, ...], Rule] = {}
    for rule in rules:
        shown.setdefault(key_of(rule), rule)
    return list(shown.values())


def for_families(rule: Rule) -> list[Rule]:
    """The rules that the one asked for stands for: one about a group is made for each address family."""
    if rule.get("remote_group_uuid") is None or PROTOCOLS.get(rule["protocol"]) in ("icmp", "icmpv6"):
        return [rule]
    return [{**rule, "ethertype": family} for family in EVERYONE]


# --- views ----------------------------------------------------------------------------------------------------------


def permission_set(rules: t.Iterable[Rule], project: str, names: t.Mapping[str, str]) -> list[Body]:
    """Rules of one direction as permissions: one for each protocol and range of ports. `names` are groups' by UUID."""
    permissions: dict[tuple[object, ...], Body] = {}
    for rule in rules:
        what = _what(rule)
        permission = permissions.setdefault(
            tuple(what.values()), {**what, "groups": [], "ipRanges": [], "ipv6Ranges": [], "prefixListIds": []}
        )
        description = {"description": rule["description"] or None}
        if rule["remote_group_uuid"] is not None:
            remote = rule["remote_group_uuid"]
            pair = {"userId": project, "groupId": ids.of("sg", remote), "groupName": names.get(remote)}
            permission["groups"].append({**pair, **description})
        elif rule["ethertype"] == "IPv6":
            permission["ipv6Ranges"].append({"cidrIpv6": rule["cidr"], **description})
        else:
            permission["ipRanges"].append({"cidrIp": rule["cidr"], **description})
    return list(permissions.values())


def rule_body(rule: Rule, project: str) -> Body:
    """Return a rule as DescribeSecurityGroupRules shows it."""
    v6 = rule["ethertype"] == "IPv6"
    remote = rule["remote_group_uuid"]
    return {
        "securityGroupRuleId": ids.of("sgr", rule["id"]),
        "groupId": ids.of("sg", rule["group_uuid"]),
        "groupOwnerId": project,
        "isEgress": rule["direction"] == "egress",
        **{"fromPort": -1, "toPort": -1, **_what(rule)},
        "cidrIpv4": rule["cidr"] if remote is None and not v6 else None,
        "cidrIpv6": rule["cidr"] if remote is None and v6 else None,
        "referencedGroupInfo": None if remote is None else {"groupId": ids.of("sg", remote), "userId": project},
        "description": rule["description"] or None,
        "tagSet": [],
    }


def _what(rule: Rule) -> Body:
    """Protocol and ports in EC2's words; of ICMP, type and code."""
    name = rule["protocol"]
    if name == "any":
        return {"ipProtocol": ANY}
    shown = name if name in NAMED else NUMBERS.get(name, name)
    low, high = rule["port_min"], rule["port_max"]
    if name in ("icmp", "icmpv6"):
        return {"ipProtocol": shown, "fromPort": -1 if low is None else low, "toPort": -1 if high is None else high}
    if name not in ("tcp", "udp", "sctp"):
        return {"ipProtocol": shown}
    return {"ipProtocol": shown, "fromPort": 0 if low is None else low, "toPort": 65535 if high is None else high}
