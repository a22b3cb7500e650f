# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Security groups and their rules. A change that hosts must see is a job in the same transaction."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security.security_groups import DEFAULT_GROUP

from ...web.bodies import Answer, Record, the_one
from ...web.context import current
from ...web.errors import BadRequestError, in_words
from ...web.ledger import reading_ledger
from ...web.services import takes, writes, writes_checked
from . import records, schemas, views
from .blueprint import NeutronError, network, not_found, word
from .changes import check_owner, groups_seen, tell_group_hosts

ICMP = ("icmp", "1", "icmpv6", "ipv6-icmp", "58")
ICMP_FIELDS = {"port_range_min": "type", "port_range_max": "code"}
invalid_icmp = word(400, "SecurityGroupInvalidIcmpValue")
TEMPLATES = ("{{", "{%", "{#")  # a name goes through Ansible, which would take these for a template

records.put_into(network, "security_groups", "network:security_groups:read", lists=False)
records.put_into(network, "security_group_rules", "network:security_groups:read")


# --- Groups ---------------------------------------------------------------------------------------------------------


@network.get("/security-groups", "network:security_groups:read")
def list_groups() -> Answer:
    """As in Neutron, a project has the default one from the first time that somebody looks."""
    groups_seen()
    with reading_ledger() as connection:
        return records.list_kind(connection, "security_groups"), 200


@network.post("/security-groups", "network:security_groups:write", takes(schemas.CREATE_GROUP), writes_checked)
def create_group(connection: Connection, wanted: Record) -> Answer:
    check_owner(wanted)
    _check_name(wanted["name"])
    project = current().project
    with in_words({ConflictError: word(409, "SecurityGroupNameExists")}):
        number = group_rules.create_group(connection, project, wanted["name"], wanted.get("description", ""))
    return {"security_group": views.security_group(_group(connection, number))}, 201


@network.put(
    "/security-groups/<group_id>", "network:security_groups:write", takes(schemas.UPDATE_GROUP), writes_checked
)
def update_group(connection: Connection, wanted: Record, group_id: str) -> Answer:
    _check_name(wanted.get("name", ""))
    _group(connection, group_id)
    with in_words({ConflictError: word(409, "SecurityGroupCannotUpdateDefault")}):
        group_rules.update_group(connection, current().project, group_id, wanted.get("name"), wanted.get("description"))
    return {"security_group": views.security_group(_group(connection, group_id))}, 200


@network.delete("/security-groups/<group_id>", "network:security_groups:write", writes_checked)
def delete_group(connection: Connection, group_id: str) -> Answer:
    if _group(connection, group_id)["name"] == DEFAULT_GROUP:
        raise NeutronError(
            409, "SecurityGroupCannotRemoveDefault", "Insufficient rights for removing default security group."
        )
    in_use = word(409, "SecurityGroupInUse")
    with in_words({ConflictError: lambda message: in_use(f"Security Group {group_id} in use: {message}")}):
        delete_group_and_tell(connection, group_id)
    return "", 204


def delete_group_and_tell(connection: Connection, number: str) -> None:
    """As in Neutron, the rules of others that name a group go with it."""
    for group, name in group_rules.delete_group(connection, current().project, number, naming_rules=True):
        tell_group_hosts(connection, group, name)


# --- Rules ----------------------------------------------------------------------------------------------------------


@network.post("/security-group-rules", "network:security_groups:write", takes(schemas.CREATE_RULE), writes_checked)
def create_rule(connection: Connection, wanted: Record) -> Answer:
    check_owner(wanted)
    project = current().project
    number = wanted["security_group_id"].lower()
    _group(connection, number)
    if wanted.get("remote_group_id"):
        _group(connection, wanted["remote_group_id"].lower())
    with in_words({ConflictError: word(409, "SecurityGroupRuleExists")}):
        rule_id, group = group_rules.add_rule(connection, project, number, _as_rule(wanted))
    shown = records.find(connection, "security_group_rules", rule_id)
    tell_group_hosts(connection, group, _group(connection, number)["name"])
    return {"security_group_rule": shown}, 201


@network.delete("/security-group-rules/<rule_id>", "network:security_groups:write", writes)
def delete_rule(connection: Connection, rule_id: str) -> Answer:
    project = current().project
    found = records.find(connection, "security_group_rules", rule_id)
    with in_words({NotFoundError: lambda _message: not_found("Security Group Rule", rule_id)}):
        group = group_rules.delete_rule(connection, project, rule_id)
    tell_group_hosts(connection, group, _group(connection, found["security_group_id"])["name"])
    return "", 204


def _group(connection: Connection, number: str) -> Record:
    rows = group_rules.groups_of(connection, current().project, number)
    return the_one(rows, "uuid", number, not_found("Security Group", number))


def _as_rule(wanted: Record) -> Record:
    """Neutron's attributes as ours. Raises BadRequestError for what Neutron refuses, too."""
    version = (wanted.get("ethertype") or "IPv4")[-1]
    protocol = wanted.get("protocol")
    name = "any" if protocol in (None, "", 0, "0") else str(protocol).lower()
    if version == "6" and name in ("icmp", "1"):  # Neutron's legacy spelling
        name = "icmpv6"
    if name in ("icmpv6", "ipv6-icmp", "58") and version == "4" and wanted.get("ethertype"):
        raise BadRequestError(f"Invalid ethertype IPv4 for protocol {name}.")
    if wanted.get("remote_ip_prefix") and wanted.get("remote_group_id"):
        raise NeutronError(
            400,
            "SecurityGroupRemoteGroupAndRemoteIpPrefix",
            "Only remote_ip_prefix or remote_group_id may be provided.",
        )
    low, high = _range(wanted, ICMP_FIELDS if name in ICMP else None)
    given = wanted.get("remote_ip_prefix") or ""
    if given and (":" in given) != (version == "6"):
        raise NeutronError(
            400, "SecurityGroupRuleParameterConflict", f"Conflicting value ethertype IPv{version} for CIDR {given}"
        )
    rule: Record = {
        "direction": wanted["direction"],
        "ethertype": f"IPv{version}",
        "protocol": name,
        "description": wanted.get("description") or "",
        "cidr": wanted.get("remote_ip_prefix") or None,
        "remote_group_uuid": wanted["remote_group_id"].lower() if wanted.get("remote_group_id") else None,
    }
    if name in ICMP:
        if low is None and high is not None:
            raise NeutronError(
                400,
                "SecurityGroupMissingIcmpType",
                f"ICMP code (port-range-max) {high} is provided but ICMP type (port-range-min) is missing.",
            )
        return {**rule, "icmp_type": low, "icmp_code": high}
    if (low, high) in ((-1, -1), (0, 0)):
        low = high = None
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        raise NeutronError(
            400, "SecurityGroupInvalidPortRange", "For TCP/UDP protocols, port_range_min must be <= port_range_max"
        )
    return {**rule, "port_min": low, "port_max": high}


def _range(wanted: Record, icmp: t.Mapping[str, str] | None) -> tuple[int | None, int | None]:
    """Two numbers of a rule: of ports, or of ICMP (`icmp`: type, code). Raises NeutronError for one that is none."""
    found: list[int | None] = []
    for key in ICMP_FIELDS:
        value = None if wanted.get(key) is None else int(wanted[key])
        if icmp is not None and value is not None and not -1 <= value <= 255:
            raise invalid_icmp(f"Invalid value for ICMP {icmp[key]} ({key}) {value}. It must be 0 to 255.")
        if icmp is None and value is not None and not -1 <= value <= 65535:
            raise NeutronError(400, "SecurityGroupInvalidPortValue", f"Invalid value for port {value}")
        found.append(value)
    low, high = found
    if icmp is not None and low == -1 and high not in (None, -1):
        raise invalid_icmp(f"Invalid value for ICMP type {low} with code {high}")
    return low, high


def _check_name(name: str) -> None:
    if any(mark in name for mark in TEMPLATES):
        raise BadRequestError(f"Invalid input for name. '{name[:60]}' holds the beginning of a template")
