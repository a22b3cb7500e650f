# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups and their rules: EC2's permissions, of which each stands for several rules, and ours.

A change that hosts must see is a job in the same transaction.
"""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    DefaultGroupError,
    NotFoundError,
    QuotaError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import security_groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.security_groups import (
    RuleRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.ec2 import ec2_attributes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of
from ansible_collections.novalite.cloud.plugins.module_utils._rules.rules import (
    EVERYONE,
    PROTOCOLS,
    canonical_range,
    identity,
    normalised,
)

from ...web.bodies import the_one
from ...web.context import Caller, current
from ...web.errors import in_words
from ...web.ledger import reading_ledger
from ...work.calls import calling
from ...work.networks import groups_seen
from .. import filters, ids
from ..blueprint import action, writes
from ..common import Body, Parameters, Record, check_vpc, forget_tags, keep_tags, tag_set, tags_for, vpc_id
from ..faults import Ec2Error, as_codes, invalid, missing
from ..parameters import LISTING, TAG_SPECIFICATIONS, TEXTS, Group, ListOf, Number, Shape, Text, each

# --- rules, as EC2's permissions ------------------------------------------------------------------------------------

Rule = Record
FindGroup = t.Callable[[str | None, str | None], str]  # (id, name) -> UUID

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
            permission["Groups"] = [{"GroupName": parameters["SourceSecurityGroupName"]}]
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
        remote = find_group(peer.get("GroupId"), peer.get("GroupName"))
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
        key = _key({**normalised({**fields, "remote_group": remote}), "remote_group_uuid": remote})
    return [rule for rule in there if _key(rule) == key]


def _key(rule: Rule) -> tuple[str, ...]:
    """The values that make two rules the same to EC2: one about a group is about both address families there."""
    remote = rule["remote_group_uuid"]
    return identity({**rule, "remote_group": remote, **({} if remote is None else {"ethertype": None})})


def folded(rules: t.Iterable[Rule]) -> list[Rule]:
    """The rules as EC2 shows them: of those that are the same to it, the first."""
    shown: dict[tuple[str, ...], Rule] = {}
    for rule in rules:
        shown.setdefault(_key(rule), rule)
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


# --- groups ---------------------------------------------------------------------------------------------------------

Errors = t.Mapping[type[Exception], str]

KIND, RULE_KIND = "security-group", "security-group-rule"
GROUP_REFUSED: Errors = {ConflictError: "InvalidGroup.Duplicate", QuotaError: "SecurityGroupLimitExceeded"}
RULE_REFUSED: Errors = {
    ConflictError: "InvalidPermission.Duplicate",
    QuotaError: "RulesPerSecurityGroupLimitExceeded",
    NotFoundError: "InvalidGroup.NotFound",
}
_PERMISSION_FILTERS = (
    "protocol=ipProtocol from-port to-port cidr=ipRanges.cidrIp ipv6-cidr=ipv6Ranges.cidrIpv6 "
    "group-id=groups.groupId group-name=groups.groupName user-id=groups.userId"
)
GROUP_FILTERS = {
    **filters.like("group-id group-name owner-id vpc-id description=groupDescription"),
    **filters.like(_PERMISSION_FILTERS, at="ip-permission", element="ipPermissions"),
    **filters.like(_PERMISSION_FILTERS, at="egress.ip-permission", element="ipPermissionsEgress"),
}
RULE_FILTERS = filters.like("group-id security-group-rule-id")
ONE_GROUP = {"GroupId": Text(), "GroupName": Text()}


@action("DescribeSecurityGroups", "network:security_groups:read", {"GroupId": TEXTS, "GroupName": TEXTS, **LISTING})
def describe_security_groups(parameters: Parameters) -> Body:
    project, rows = current().project, groups_seen()
    with reading_ledger() as connection:
        tags = ec2_attributes.tags_of(connection, project)
    if "GroupId" in parameters or "GroupName" in parameters:
        requested_rows = ids.find_all("sg", parameters.get("GroupId", []), _by_id(rows))
        requested_rows += [_named(rows, name) for name in parameters.get("GroupName", [])]
        rows = [row for row in rows if row in requested_rows]
    names = {row["uuid"]: row["name"] for row in rows}
    bodies = [_group(row, project, names, tags) for row in rows]
    return filters.listed(parameters, "securityGroupInfo", "groupId", bodies, GROUP_FILTERS)


def _group(row: Record, project: str, names: t.Mapping[str, str], tags: Record) -> Body:
    number = ids.of("sg", row["uuid"])
    ways = {
        way: permission_set((rule for rule in folded(row["rules"]) if rule["direction"] == way), project, names)
        for way in ("ingress", "egress")
    }
    return {
        "ownerId": project,
        "groupId": number,
        "groupName": row["name"],
        "groupDescription": row["description"],
        "vpcId": vpc_id(project),
        "ipPermissions": ways["ingress"],
        "ipPermissionsEgress": ways["egress"],
        "tagSet": tag_set(tags.get(number, {})),
    }


def _by_id(rows: t.Iterable[Record]) -> dict[str, Record]:
    return {ids.of("sg", row["uuid"]): row for row in rows}


def _named(rows: t.Iterable[Record], name: str) -> Record:
    missing_group = Ec2Error("InvalidGroup.NotFound", f"The security group '{name[:100]}' does not exist")
    return the_one(rows, "name", name, missing_group)


def find_group(rows: t.Sequence[Record], number: str | None, name: str | None) -> Record:
    """Return a project's group, by its id or else by its name. Raises Ec2Error."""
    if number:
        return ids.find("sg", number, _by_id(rows))
    if not name:
        raise missing("GroupId")
    return _named(rows, name)


@writes(
    "CreateSecurityGroup",
    "network:security_groups:write",
    {"GroupName": Text(), "GroupDescription": Text(), "VpcId": Text(), "TagSpecification": TAG_SPECIFICATIONS},
    ["GroupName", "GroupDescription"],
)
def create_security_group(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    name, tags = parameters["GroupName"], tags_for(parameters, KIND)[KIND]
    if name.startswith("sg-"):
        raise invalid("groupName", name)
    reserved = invalid("groupName", name, "Cannot use reserved security group name")
    with as_codes(GROUP_REFUSED), in_words({DefaultGroupError: lambda _message: reserved}):
        check_vpc(caller.project, parameters.get("VpcId"))
        uuid = security_groups.create(calling(connection), {}, name, parameters["GroupDescription"])
        number = ids.of("sg", uuid)
        keep_tags(connection, number, tags)
    return {"return": True, "groupId": number, "tagSet": tag_set(tags)}


@writes("DeleteSecurityGroup", "network:security_groups:write", ONE_GROUP)
def delete_security_group(connection: Connection, caller: Caller, parameters: Parameters) -> Body:
    row = _requested_group(connection, caller, parameters)
    number = ids.of("sg", row["uuid"])
    kept = Ec2Error("CannotDelete", f'the specified group: "{number}" name: "default" cannot be deleted by a user')
    with as_codes({ConflictError: "DependencyViolation"}), in_words({DefaultGroupError: lambda _message: kept}):
        # as with Amazon, whose clients delete the rules first
        security_groups.delete(calling(connection), row["uuid"], naming_rules=False)
    forget_tags(connection, number)
    return {"return": True, "groupId": number}


def _requested_group(connection: Connection, caller: Caller, parameters: Parameters) -> Record:
    return find_group(groups_of(connection, caller.project), parameters.get("GroupId"), parameters.get("GroupName"))


# --- what is done to rules ------------------------------------------------------------------------------------------


@filters.describes(
    "DescribeSecurityGroupRules", "network:security_groups:read", "securityGroupRule", RULE_FILTERS, "sgr"
)
def describe_security_group_rules(connection: Connection, caller: Caller, parameters: Parameters) -> t.Iterable[Body]:
    rows = groups_of(connection, caller.project)
    return [rule_body(rule, caller.project) for row in rows for rule in folded(row["rules"])]


def _authorize(connection: Connection, caller: Caller, parameters: Parameters, direction: str) -> Body:
    if any(tags_for(parameters, RULE_KIND).values()):
        raise invalid("TagSpecification", RULE_KIND, "rules have no tags here")
    rows = groups_of(connection, caller.project)
    row = find_group(rows, parameters.get("GroupId"), parameters.get("GroupName"))
    requested = _requested_rules(parameters, direction, rows)
    wishes = [RuleRequest(**rule) for requested_rule in requested for rule in for_families(requested_rule)]
    with as_codes(RULE_REFUSED):
        made = security_groups.add_rules(calling(connection), row["uuid"], wishes)
    after = groups_of(connection, caller.project, row["uuid"])[0]["rules"]
    return {
        "return": True,
        "securityGroupRuleSet": [rule_body(rule, caller.project) for rule in folded(after) if rule["id"] in made],
    }


def _requested_rules(parameters: Parameters, direction: str, rows: t.Sequence[Record]) -> list[Rule]:
    return requested_rules(parameters, direction, lambda number, name: str(find_group(rows, number, name)["uuid"]))


def _revoke(connection: Connection, caller: Caller, parameters: Parameters, direction: str) -> Body:
    rows = groups_of(connection, caller.project)
    row = find_group(rows, parameters.get("GroupId"), parameters.get("GroupName"))
    there = [rule for rule in row["rules"] if rule["direction"] == direction]
    to_delete: dict[str, Rule] = {}
    if parameters.get("SecurityGroupRuleId"):
        known = {ids.of("sgr", rule["id"]): rule for rule in there}
        keys = {_key(rule) for rule in ids.find_all("sgr", parameters["SecurityGroupRuleId"], known)}
        to_delete = {rule["id"]: rule for rule in there if _key(rule) in keys}
    else:
        for rule in _requested_rules(parameters, direction, rows):
            matching = same(rule, there)
            if not matching:
                message = "The specified rule does not exist in this security group."
                raise Ec2Error("InvalidPermission.NotFound", message)
            to_delete.update({rule["id"]: rule for rule in matching})
    security_groups.delete_rules(calling(connection), to_delete)
    revoked = []
    for rule in folded(to_delete.values()):
        body = rule_body(rule, caller.project)
        referenced = body.pop("referencedGroupInfo")
        revoked.append({**body, "referencedGroupId": referenced and referenced["groupId"]})
    return {"return": True, "revokedSecurityGroupRuleSet": revoked, "unknownIpPermissionSet": []}


for _direction in ("ingress", "egress"):
    for _verb, _do, _more in (
        ("Authorize", _authorize, {"TagSpecification": TAG_SPECIFICATIONS}),
        ("Revoke", _revoke, {"SecurityGroupRuleId": TEXTS}),
    ):
        writes(
            f"{_verb}SecurityGroup{_direction.capitalize()}",
            "network:security_groups:write",
            {**ONE_GROUP, **PARAMETERS, **_more},
        )(functools.partial(_do, direction=_direction))
