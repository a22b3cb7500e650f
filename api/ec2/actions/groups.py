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
from ..parameters import LISTING, TAG_SPECIFICATIONS, TEXTS, Text
from ..permissions import (
    PARAMETERS,
    Rule,
    folded,
    for_families,
    key_of,
    permission_set,
    requested_rules,
    rule_body,
    same,
)

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
    requested = _requested_rules(parameters, direction, caller.project, rows)
    wishes = [RuleRequest(**rule) for requested_rule in requested for rule in for_families(requested_rule)]
    with as_codes(RULE_REFUSED):
        made = security_groups.add_rules(calling(connection), row["uuid"], wishes)
    after = groups_of(connection, caller.project, row["uuid"])[0]["rules"]
    return {
        "return": True,
        "securityGroupRuleSet": [rule_body(rule, caller.project) for rule in folded(after) if rule["id"] in made],
    }


def _requested_rules(parameters: Parameters, direction: str, project: str, rows: t.Sequence[Record]) -> list[Rule]:
    def find(peer: Body) -> str:
        check_vpc(project, peer.get("VpcId") or None)
        owned = rows if peer.get("UserId") in (None, "", project) else ()  # never the caller's own of the same name
        return str(find_group(owned, peer.get("GroupId"), peer.get("GroupName"))["uuid"])

    return requested_rules(parameters, direction, find)


def _revoke(connection: Connection, caller: Caller, parameters: Parameters, direction: str) -> Body:
    rows = groups_of(connection, caller.project)
    row = find_group(rows, parameters.get("GroupId"), parameters.get("GroupName"))
    there = [rule for rule in row["rules"] if rule["direction"] == direction]
    to_delete: dict[str, Rule] = {}
    if parameters.get("SecurityGroupRuleId"):
        known = {ids.of("sgr", rule["id"]): rule for rule in there}
        keys = {key_of(rule) for rule in ids.find_all("sgr", parameters["SecurityGroupRuleId"], known)}
        to_delete = {rule["id"]: rule for rule in there if key_of(rule) in keys}
    else:
        for rule in _requested_rules(parameters, direction, caller.project, rows):
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
