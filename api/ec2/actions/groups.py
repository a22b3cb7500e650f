# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups and their rules. A change that hosts must see is a job in the same transaction."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError, QuotaError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.ec2 import ec2_tags
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security.security_groups import (
    DEFAULT_GROUP,
    ensure_default_group,
)

from ...openstack.network.changes import tell_group_hosts
from ...openstack.network.routes_groups import TEMPLATES
from ...web.bodies import the_one
from ...web.context import Caller, current
from ...web.ledger import reading_ledger, writing_ledger
from .. import filters, ids, permissions
from ..blueprint import action, writes
from ..common import Asked, Body, Record, check_vpc, keep_tags, tag_set, tags_for, vpc_id
from ..faults import Ec2Error, as_codes, invalid, missing
from ..parameters import FILTERS, PAGING, TAG_SPECIFICATIONS, TEXTS, Text

Errors = t.Mapping[type[Exception], str]

KIND, RULE_KIND = "security-group", "security-group-rule"
GROUP_REFUSED: Errors = {ConflictError: "InvalidGroup.Duplicate", QuotaError: "SecurityGroupLimitExceeded"}
RULE_REFUSED: Errors = {
    ConflictError: "InvalidPermission.Duplicate",
    QuotaError: "RulesPerSecurityGroupLimitExceeded",
    NotFoundError: "InvalidGroup.NotFound",
}
_PERMISSION = (
    "protocol=ipProtocol from-port to-port cidr=ipRanges.cidrIp ipv6-cidr=ipv6Ranges.cidrIpv6 "
    "group-id=groups.groupId group-name=groups.groupName user-id=groups.userId"
)
GROUP_FILTERS = {
    **filters.like("group-id group-name owner-id vpc-id description=groupDescription"),
    **filters.like(_PERMISSION, at="ip-permission", element="ipPermissions"),
    **filters.like(_PERMISSION, at="egress.ip-permission", element="ipPermissionsEgress"),
}
RULE_FILTERS = filters.like("group-id security-group-rule-id")
ONE_GROUP = {"GroupId": Text(), "GroupName": Text()}


@action(
    "DescribeSecurityGroups",
    "network:security_groups:read",
    {"GroupId": TEXTS, "GroupName": TEXTS, "Filter": FILTERS, **PAGING},
)
def describe_security_groups(asked: Asked) -> Body:
    project = current().project
    with reading_ledger() as connection:
        rows = group_rules.groups_of(connection, project)
    if not any(row["name"] == DEFAULT_GROUP for row in rows):
        # a project has one from the first time that somebody looks
        with writing_ledger() as connection:
            ensure_default_group(connection, project)
            rows = group_rules.groups_of(connection, project)
    with reading_ledger() as connection:
        tags = ec2_tags.tags_of(connection, project)
    if "GroupId" in asked or "GroupName" in asked:
        wanted = ids.find_all("sg", asked.get("GroupId", []), _by_id(rows))
        wanted += [_named(rows, name) for name in asked.get("GroupName", [])]
        rows = [row for row in rows if row in wanted]
    names = {row["uuid"]: row["name"] for row in rows}
    bodies = [_group(row, project, names, tags) for row in rows]
    return filters.listed(asked, "securityGroupInfo", "groupId", bodies, GROUP_FILTERS)


def _group(row: Record, project: str, names: t.Mapping[str, str], tags: Record) -> Body:
    number = ids.of("sg", row["uuid"])
    ways = {
        way: permissions.permission_set((rule for rule in row["rules"] if rule["direction"] == way), project, names)
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
    """One of a project's groups, by its id or else its name. Raises Ec2Error."""
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
def create_security_group(connection: Connection, caller: Caller, asked: Asked) -> Body:
    name, tags = asked["GroupName"], tags_for(asked, KIND)[KIND]
    if name == DEFAULT_GROUP:
        raise invalid("groupName", name, "Cannot use reserved security group name")
    if name.startswith("sg-") or any(mark in name for mark in TEMPLATES):
        raise invalid("groupName", name)
    with as_codes(GROUP_REFUSED):
        check_vpc(caller.project, asked.get("VpcId"))
        uuid = group_rules.create_group(connection, caller.project, name, asked["GroupDescription"])
        number = ids.of("sg", uuid)
        keep_tags(connection, caller.project, number, tags)
    return {"return": True, "groupId": number, "tagSet": tag_set(tags)}


@writes("DeleteSecurityGroup", "network:security_groups:write", ONE_GROUP)
def delete_security_group(connection: Connection, caller: Caller, asked: Asked) -> Body:
    row = _asked_group(connection, caller, asked)
    number = ids.of("sg", row["uuid"])
    if row["name"] == DEFAULT_GROUP:
        message = f'the specified group: "{number}" name: "default" cannot be deleted by a user'
        raise Ec2Error("CannotDelete", message)
    with as_codes({ConflictError: "DependencyViolation"}):
        group_rules.delete_group(connection, caller.project, row["uuid"])
    ec2_tags.remove_tags(connection, caller.project, number)
    return {"return": True, "groupId": number}


def _asked_group(connection: Connection, caller: Caller, asked: Asked) -> Record:
    return find_group(group_rules.groups_of(connection, caller.project), asked.get("GroupId"), asked.get("GroupName"))


# --- rules ----------------------------------------------------------------------------------------------------------


@filters.describes(
    "DescribeSecurityGroupRules",
    "network:security_groups:read",
    "securityGroupRuleSet",
    "securityGroupRuleId",
    RULE_FILTERS,
    "sgr",
)
def describe_security_group_rules(connection: Connection, caller: Caller, asked: Asked) -> t.Iterable[Body]:
    rows = group_rules.groups_of(connection, caller.project)
    return [permissions.rule_body(rule, caller.project) for row in rows for rule in row["rules"]]


def _authorize(connection: Connection, caller: Caller, asked: Asked, direction: str) -> Body:
    if any(tags_for(asked, RULE_KIND).values()):
        raise invalid("TagSpecification", RULE_KIND, "rules have no tags here")
    rows = group_rules.groups_of(connection, caller.project)
    row = find_group(rows, asked.get("GroupId"), asked.get("GroupName"))
    made, group = [], 0
    for rule in _asked_rules(asked, direction, rows):
        with as_codes(RULE_REFUSED):
            number, group = group_rules.add_rule(connection, caller.project, row["uuid"], rule)
        made.append(number)
    tell_group_hosts(connection, group, row["name"])
    after = group_rules.groups_of(connection, caller.project, row["uuid"])[0]["rules"]
    return {
        "return": True,
        "securityGroupRuleSet": [permissions.rule_body(rule, caller.project) for rule in after if rule["id"] in made],
    }


def _asked_rules(asked: Asked, direction: str, rows: t.Sequence[Record]) -> list[permissions.Rule]:
    return permissions.asked_rules(asked, direction, lambda number, name: str(find_group(rows, number, name)["uuid"]))


def _revoke(connection: Connection, caller: Caller, asked: Asked, direction: str) -> Body:
    rows = group_rules.groups_of(connection, caller.project)
    row = find_group(rows, asked.get("GroupId"), asked.get("GroupName"))
    there = [rule for rule in row["rules"] if rule["direction"] == direction]
    to_delete: dict[str, permissions.Rule] = {}
    if asked.get("SecurityGroupRuleId"):
        known = {ids.of("sgr", rule["id"]): rule for rule in there}
        to_delete = {rule["id"]: rule for rule in ids.find_all("sgr", asked["SecurityGroupRuleId"], known)}
    else:
        for rule in _asked_rules(asked, direction, rows):
            matching = permissions.same(rule, there)
            if not matching:
                message = "The specified rule does not exist in this security group."
                raise Ec2Error("InvalidPermission.NotFound", message)
            to_delete.update({rule["id"]: rule for rule in matching})
    for rule_id in to_delete:
        group_rules.delete_rule(connection, caller.project, rule_id)
    if to_delete:
        tell_group_hosts(connection, row["id"], row["name"])
    revoked = []
    for rule in to_delete.values():
        body = permissions.rule_body(rule, caller.project)
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
            {**ONE_GROUP, **permissions.PARAMETERS, **_more},
        )(functools.partial(_do, direction=_direction))
