# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What Compute had of other services' until microversion 2.35: security groups, networks."""

from __future__ import annotations

import typing as t
import uuid

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import Network
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security.security_groups import (
    DEFAULT_GROUP,
    ensure_default_group,
)

from ....web import validation
from ....web.bodies import Answer, Body, Record, same, the_one
from ....web.context import current
from ....web.errors import BadRequestError, Words, as_bad_request, in_words
from ....web.ledger import reading_ledger, writing_ledger
from ....web.schemas import NAME, OPTIONAL, TEXT, Schema, wrapped
from ...network.changes import tell_group_hosts
from ...network.routes_groups import TEMPLATES, delete_group_and_tell
from ..blueprint import compute_legacy
from ..microversions import since

OLD = since("2.1", "2.35")


# --- Security groups ------------------------------------------------------------------------------------------------

GROUP = wrapped("security_group", {"name": NAME, "description": TEXT}, ["name", "description"])
PORT: Schema = {"anyOf": [{"type": ["integer", "null"]}, {"type": "string", "pattern": "^-?[0-9]{1,5}$"}]}
RULE = wrapped(
    "security_group_rule",
    {
        "parent_group_id": NAME,
        "ip_protocol": {"type": ["string", "null"], "maxLength": 40},
        "from_port": PORT,
        "to_port": PORT,
        "cidr": {"type": ["string", "null"], "maxLength": 64},
        "group_id": OPTIONAL,
    },
    ["parent_group_id"],
)


WORDS: Words = {ConflictError: BadRequestError}  # Nova's answer here


@compute_legacy.get("/os-security-groups", "network:security_groups:read", OLD)
def list_security_groups_here() -> Answer:
    caller = current()
    project = caller.project
    with reading_ledger() as connection:
        rows = group_rules.groups_of(connection, project)
    if not any(row["name"] == DEFAULT_GROUP for row in rows):
        with writing_ledger() as connection:
            ensure_default_group(connection, project)
            rows = group_rules.groups_of(connection, project)
    if caller.is_admin and "all_tenants" in request.args:
        with reading_ledger() as connection:
            rows = group_rules.groups_of(connection, None)
    names = {row["id"]: row["name"] for row in rows}
    return {"security_groups": [_group(row, names) for row in rows]}, 200


@compute_legacy.get("/os-security-groups/<group_id>", "network:security_groups:read", OLD)
def show_security_group_here(group_id: str) -> Answer:
    with reading_ledger() as connection:
        return {"security_group": _found(connection, group_id)}, 200


@compute_legacy.post("/os-security-groups", "network:security_groups:write", OLD)
def create_security_group_here() -> Answer:
    wanted = validation.body(GROUP)["security_group"]
    _check_name(wanted["name"])
    with writing_ledger() as connection, as_bad_request():
        with in_words(WORDS):
            number = group_rules.create_group(connection, current().project, wanted["name"], wanted["description"])
        return {"security_group": _found(connection, number)}, 200


@compute_legacy.put("/os-security-groups/<group_id>", "network:security_groups:write", OLD)
def update_security_group_here(group_id: str) -> Answer:
    wanted = validation.body(GROUP)["security_group"]
    _check_name(wanted["name"])
    with writing_ledger() as connection, as_bad_request():
        _found(connection, group_id)
        with in_words(WORDS):
            group_rules.update_group(connection, current().project, group_id, wanted["name"], wanted["description"])
        return {"security_group": _found(connection, group_id)}, 200


@compute_legacy.delete("/os-security-groups/<group_id>", "network:security_groups:write", OLD)
def delete_security_group_here(group_id: str) -> Answer:
    with writing_ledger() as connection:
        _found(connection, group_id)
        with in_words(WORDS):
            delete_group_and_tell(connection, group_id)
    return "", 202


@compute_legacy.post("/os-security-group-rules", "network:security_groups:write", OLD)
def create_security_group_rule_here() -> Answer:
    wanted = validation.body(RULE)["security_group_rule"]
    low, high = (_port(wanted.get(key)) for key in ("from_port", "to_port"))
    protocol = (wanted.get("ip_protocol") or "any").lower()
    icmp = protocol in ("icmp", "icmpv6", "ipv6-icmp", "1", "58")
    names = ("icmp_type", "icmp_code") if icmp else ("port_min", "port_max")
    rule = {
        "direction": "ingress",
        "protocol": protocol,
        "cidr": wanted.get("cidr") or None,
        "remote_group_uuid": wanted.get("group_id") or None,
        **dict(zip(names, (low, high))),
    }
    project = current().project
    with writing_ledger() as connection, as_bad_request():
        parent = wanted["parent_group_id"]
        try:
            uuid.UUID(parent)
        except ValueError:
            raise BadRequestError("Security group id should be uuid") from None
        with in_words(WORDS):
            number, group = group_rules.add_rule(connection, project, parent, rule)
        group_row = _found(connection, parent)
        tell_group_hosts(connection, group, group_row["name"])
    return {"security_group_rule": next(entry for entry in group_row["rules"] if entry["id"] == number)}, 200


@compute_legacy.delete("/os-security-group-rules/<rule_id>", "network:security_groups:write", OLD)
def delete_security_group_rule_here(rule_id: str) -> Answer:
    project = current().project
    with writing_ledger() as connection:
        group = group_rules.delete_rule(connection, project, rule_id)
        names = {row["id"]: row["name"] for row in group_rules.groups_of(connection, project)}
        tell_group_hosts(connection, group, names[group])
    return "", 202


def _port(value: int | str | None) -> int | None:
    """A port, an ICMP type or code; -1 is any."""
    return None if value in (None, -1, "-1") else int(value)


def _check_name(name: str) -> None:
    if any(mark in name for mark in TEMPLATES):
        raise BadRequestError(f"'{name[:60]}' holds the beginning of a template")


def _found(connection: Connection, group_id: str) -> Record:
    rows = group_rules.groups_of(connection, current().project)
    names = {row["id"]: row["name"] for row in rows}
    row = the_one(rows, "uuid", group_id, NotFoundError(f"Security group {group_id[:255]} not found."))
    return _group(row, names)


def _group(row: Record, names: t.Mapping[int, str]) -> Record:
    return {
        "id": row["uuid"],
        **same(row, "name", "description"),
        "tenant_id": row["project_id"],
        # Nova knew no other direction
        "rules": [_rule(rule, row, names) for rule in row["rules"] if rule["direction"] == "ingress"],
    }


def _rule(rule: Record, row: Record, names: t.Mapping[int, str]) -> Body:
    any_port = rule["protocol"] != "any"
    remote = rule["remote_group_id"]
    return {
        "id": rule["id"],
        "parent_group_id": row["uuid"],
        "ip_protocol": None if rule["protocol"] == "any" else rule["protocol"],
        "from_port": -1 if any_port and rule["port_min"] is None else rule["port_min"],
        "to_port": -1 if any_port and rule["port_max"] is None else rule["port_max"],
        "ip_range": {} if rule["cidr"] is None else {"cidr": rule["cidr"]},
        "group": {} if remote is None else {"name": names.get(remote, ""), "tenant_id": row["project_id"]},
    }


# --- Networks --------------------------------------------------------------------------------------------------------


@compute_legacy.get("/<any('os-networks', 'os-tenant-networks'):kind>", "network:read", OLD)
def list_networks_here(kind: str) -> Answer:
    with reading_ledger() as connection:
        rows = network_records.networks_seen(connection, current().project)
    return {"networks": [_network(row) for row in rows]}, 200


@compute_legacy.get("/<any('os-networks', 'os-tenant-networks'):kind>/<network_id>", "network:read", OLD)
def show_network_here(kind: str, network_id: str) -> Answer:
    with reading_ledger() as connection:
        rows = network_records.networks_seen(connection, current().reach)
    return {"network": _network(the_one(rows, "uuid", network_id, NotFoundError("Network not found")))}, 200


def _network(row: Network) -> Body:
    return {"id": row.uuid, "label": row.name, "cidr": row.cidr}
