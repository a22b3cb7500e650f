# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups and their rules. A change that hosts must see is a job in the same transaction."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    DefaultGroupError,
    NotFoundError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import security_groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of

from ...web.bodies import Answer, Record, the_one
from ...web.context import current
from ...web.errors import Words, in_words
from ...web.ledger import reading_ledger
from ...web.services import takes, writes, writes_checked
from ...work.calls import calling
from ...work.networks import groups_seen
from . import records, schemas, views
from .blueprint import NeutronError, network, not_found, word
from .changes import check_owner, named
from .rule_bodies import as_rule

records.put_into(network, "security_groups", "network:security_groups:read", lists=False)
records.put_into(network, "security_group_rules", "network:security_groups:read")

keeps = word(409, "SecurityGroupCannotRemoveDefault")
CREATE_WORDS: Words = {
    DefaultGroupError: word(409, "SecurityGroupDefaultAlreadyExists"),
    ConflictError: word(409, "SecurityGroupNameExists"),
}
repeated = word(409, "DuplicateSecurityGroupRuleInPost")
RULE_WORDS: Words = {
    security_groups.RepeatedRuleError: lambda _message: repeated("Duplicate Security Group Rule in POST."),
    ConflictError: word(409, "SecurityGroupRuleExists"),
    NotFoundError: word(404, "SecurityGroupNotFound"),
}


# --- Groups ---------------------------------------------------------------------------------------------------------


@network.get("/security-groups", "network:security_groups:read")
def list_groups() -> Answer:
    """List the security groups. As in Neutron, a project has its default one as soon as somebody looks."""
    groups_seen()
    with reading_ledger() as connection:
        return records.list_kind(connection, "security_groups"), 200


@network.post("/security-groups", "network:security_groups:write", takes(schemas.CREATE_GROUP), writes_checked)
def create_groups(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        with in_words(CREATE_WORDS):
            text = item.get("description", "")
            return security_groups.create(calling(connection), named(item), item["name"], text)

    return records.create_some(connection, "security_groups", body, create), 201


@network.put(
    "/security-groups/<group_id>", "network:security_groups:write", takes(schemas.UPDATE_GROUP), writes_checked
)
def update_group(connection: Connection, body: Record, group_id: str) -> Answer:
    uuid = _group(connection, group_id)["uuid"]
    with in_words({ConflictError: word(409, "SecurityGroupCannotUpdateDefault")}):
        security_groups.update(calling(connection), uuid, body.get("name"), body.get("description"))
    return {"security_group": views.security_group(_group(connection, group_id))}, 200


@network.delete("/security-groups/<group_id>", "network:security_groups:write", writes_checked)
def delete_group(connection: Connection, group_id: str) -> Answer:
    in_use = word(409, "SecurityGroupInUse")
    words: Words = {
        DefaultGroupError: lambda _message: keeps("Insufficient rights for removing default security group."),
        ConflictError: lambda message: in_use(f"Security Group {group_id} in use: {message}"),
    }
    uuid = _group(connection, group_id)["uuid"]
    with in_words(words):
        security_groups.delete(calling(connection), uuid)
    return "", 204


# --- Rules ----------------------------------------------------------------------------------------------------------


@network.post("/security-group-rules", "network:security_groups:write", takes(schemas.CREATE_RULE), writes_checked)
def create_rules(connection: Connection, body: Record) -> Answer:
    """Create security group rules. As in Neutron, those of one request are of one group, and no two are the same."""
    items = body.get("security_group_rules") or [body["security_group_rule"]]
    if len({item["security_group_id"].lower() for item in items}) > 1:
        raise NeutronError(
            400, "SecurityGroupNotSingleGroupRules", "Only allowed to update rules for one security profile at a time"
        )
    group = _group(connection, items[0]["security_group_id"])
    for item in items:
        check_owner(connection, item)
        if item.get("remote_group_id"):
            _group(connection, item["remote_group_id"])
    with in_words(RULE_WORDS):
        numbers = security_groups.add_rules(calling(connection), group["uuid"], [as_rule(item) for item in items])
    added = iter(numbers)
    return records.create_some(connection, "security_group_rules", body, lambda _item: next(added)), 201


@network.delete("/security-group-rules/<rule_id>", "network:security_groups:write", writes)
def delete_rule(connection: Connection, rule_id: str) -> Answer:
    with in_words({NotFoundError: lambda _message: not_found("Security Group Rule", rule_id)}):
        security_groups.delete_rules(calling(connection), [rule_id.lower()])
    return "", 204


def _group(connection: Connection, number: str) -> Record:
    rows = groups_of(connection, current().project, number.lower())
    return the_one(rows, "uuid", number.lower(), not_found("Security Group", number))
