# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compute's proxies of the network service until microversion 2.35: security groups, networks, floating IPs."""

from __future__ import annotations

import typing as t
import uuid

from flask import request

from ansible_collections.novalite.cloud.plugins.module_utils._errors import (
    ConflictError,
    NotFoundError,
    UnreachableError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.call import Call
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import (
    floating_ips,
    security_groups,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.security_groups import (
    RuleRequest,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.group_records import groups_of
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.network_records import (
    FloatingIp,
    Network,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.pool_records import pools_seen
from ansible_collections.novalite.cloud.plugins.module_utils._model.rows import InstanceRow
from ansible_collections.novalite.cloud.plugins.module_utils._rules.rules import canonical_range

from ....web import policy
from ....web.bodies import Answer, Body, Record, same, the_one
from ....web.context import current
from ....web.errors import BadRequestError, Words, as_bad_request, in_words
from ....web.ledger import reading_ledger
from ....web.schemas import NAME, OPTIONAL, TEXT, Schema, an_object, or_null, wrapped
from ....web.services import reads, takes, writes, writes_checked
from ....work.calls import calling
from ....work.networks import groups_seen
from ..blueprint import compute_legacy, microversion, part, since
from ..servers.routes_actions import ACTIONS, Action

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
    rows = groups_seen()
    if "all_tenants" in request.args and policy.allowed("network:security_groups:all_projects"):
        with reading_ledger() as connection:
            rows = groups_of(connection, None)
    names = {row["id"]: row["name"] for row in rows}
    return {"security_groups": [_group(row, names) for row in part(rows)]}, 200


@compute_legacy.get("/os-security-groups/<group_id>", "network:security_groups:read", OLD, reads)
def show_security_group_here(connection: Connection, group_id: str) -> Answer:
    return {"security_group": _shown_group(connection, group_id)}, 200


@compute_legacy.post("/os-security-groups", "network:security_groups:write", OLD, takes(GROUP), writes_checked)
def create_security_group_here(connection: Connection, body: Record) -> Answer:
    with in_words(WORDS):
        number = security_groups.create(calling(connection), {}, body["name"], body["description"])
    return {"security_group": _shown_group(connection, number)}, 200


@compute_legacy.put(
    "/os-security-groups/<group_id>", "network:security_groups:write", OLD, takes(GROUP), writes_checked
)
def update_security_group_here(connection: Connection, body: Record, group_id: str) -> Answer:
    _shown_group(connection, group_id)
    with in_words(WORDS):
        security_groups.update(calling(connection), group_id, body["name"], body["description"])
    return {"security_group": _shown_group(connection, group_id)}, 200


@compute_legacy.delete("/os-security-groups/<group_id>", "network:security_groups:write", OLD, writes)
def delete_security_group_here(connection: Connection, group_id: str) -> Answer:
    _shown_group(connection, group_id)
    with in_words(WORDS):
        security_groups.delete(calling(connection), group_id)
    return "", 202


@compute_legacy.post("/os-security-group-rules", "network:security_groups:write", OLD, takes(RULE), writes_checked)
def create_security_group_rule_here(connection: Connection, body: Record) -> Answer:
    low, high = (_port(body.get(key)) for key in ("from_port", "to_port"))
    protocol = (body.get("ip_protocol") or "any").lower()
    icmp = protocol in ("icmp", "icmpv6", "ipv6-icmp", "1", "58")
    names = ("icmp_type", "icmp_code") if icmp else ("port_min", "port_max")
    cidr = body.get("cidr") or None
    canonical = cidr and canonical_range(cidr)
    ports: Record = dict(zip(names, (low, high)))
    rule = RuleRequest(
        protocol=protocol,
        cidr=canonical,
        cidr_said=cidr if cidr and "/" in cidr and canonical != cidr else None,
        remote_group_uuid=body.get("group_id") or None,
        **ports,
    )
    parent = body["parent_group_id"]
    try:
        uuid.UUID(parent)
    except ValueError:
        raise BadRequestError("Security group id should be uuid") from None
    with in_words(WORDS):
        (number,) = security_groups.add_rules(calling(connection), parent, [rule])
    group_row = _shown_group(connection, parent)
    return {"security_group_rule": next(entry for entry in group_row["rules"] if entry["id"] == number)}, 200


@compute_legacy.delete("/os-security-group-rules/<rule_id>", "network:security_groups:write", OLD, writes)
def delete_security_group_rule_here(connection: Connection, rule_id: str) -> Answer:
    security_groups.delete_rules(calling(connection), [rule_id])
    return "", 202


def _port(value: int | str | None) -> int | None:
    """A port, an ICMP type or code; -1 is any."""
    return None if value in (None, -1, "-1") else int(value)


def _shown_group(connection: Connection, group_id: str) -> Record:
    rows = groups_of(connection, current().project)
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
        "ip_range": {} if rule["cidr"] is None else {"cidr": rule["cidr_said"] or rule["cidr"]},
        "group": {} if remote is None else {"name": names.get(remote, ""), "tenant_id": row["project_id"]},
    }


# --- Networks -------------------------------------------------------------------------------------------------------


@compute_legacy.get("/<any('os-networks', 'os-tenant-networks'):kind>", "network:read", OLD, reads)
def list_networks_here(connection: Connection, kind: str) -> Answer:
    rows = network_records.networks_seen(connection, current().project)
    return {"networks": [_network(row) for row in rows]}, 200


@compute_legacy.get("/<any('os-networks', 'os-tenant-networks'):kind>/<network_id>", "network:read", OLD, reads)
def show_network_here(connection: Connection, kind: str, network_id: str) -> Answer:
    rows = network_records.networks_seen(connection, current().reach)
    return {"network": _network(the_one(rows, "uuid", network_id, NotFoundError("Network not found")))}, 200


def _network(row: Network) -> Body:
    return {"id": row.uuid, "label": row.name, "cidr": row.cidr}


# --- Floating IPs, and the two actions of a server until 2.43 -------------------------------------------------------

LAST_ACTION = (2, 43)
ADDRESS: Schema = {"type": "string", "format": "ipv4", "minLength": 1, "maxLength": 64}
POOL = or_null(an_object({"pool": OPTIONAL}))
ADD = an_object({"address": ADDRESS, "fixed_address": ADDRESS}, ["address"])
REMOVE = an_object({"address": ADDRESS}, ["address"])


@compute_legacy.get("/os-floating-ip-pools", "network:floating_ips:read", OLD, reads)
def list_floating_ip_pools_here(connection: Connection) -> Answer:
    rows = pools_seen(connection)
    return {"floating_ip_pools": [{"name": row.shown_name} for row in rows]}, 200


@compute_legacy.get("/os-floating-ips", "network:floating_ips:read", OLD, reads)
def list_floating_ips_here(connection: Connection) -> Answer:
    rows = network_records.floating_ips_of(connection, current().project)
    return {"floating_ips": [_floating_body(row) for row in rows]}, 200


@compute_legacy.get("/os-floating-ips/<floating_ip_id>", "network:floating_ips:read", OLD, reads)
def show_floating_ip_here(connection: Connection, floating_ip_id: str) -> Answer:
    return {"floating_ip": _floating_body(_floating_ip(connection, floating_ip_id))}, 200


@compute_legacy.post("/os-floating-ips", "network:floating_ips:write", OLD, takes(POOL), writes_checked)
def create_floating_ip_here(connection: Connection, body: Record) -> Answer:
    pool = body.get("pool")
    if pool is not None:
        pool = _pool(connection, pool)
    row = floating_ips.create(calling(connection), {}, {"pool": pool})
    return {"floating_ip": _floating_body(row)}, 200


@compute_legacy.delete("/os-floating-ips/<floating_ip_id>", "network:floating_ips:write", OLD, writes_checked)
def delete_floating_ip_here(connection: Connection, floating_ip_id: str) -> Answer:
    floating_ips.release(calling(connection), _floating_ip(connection, floating_ip_id))
    return "", 202


def _add(call: Call, server: InstanceRow, value: Record) -> None:
    """The action addFloatingIp."""
    _check_action()
    floating = _of_address(call.connection, value["address"])
    ports = network_records.interfaces_of(call.connection, current().project, server.uuid)
    ports = [port for port in ports if port.ip is not None]
    if not ports:
        raise BadRequestError("No fixed IPs associated to instance")
    if "fixed_address" in value:
        ports = [port for port in ports if port.ip == value["fixed_address"]]
        if not ports:
            raise BadRequestError("Specified fixed address not assigned to instance")
    with as_bad_request():
        try:
            floating_ips.associate(call, floating, ports[0])
        except (ConflictError, UnreachableError) as error:
            raise BadRequestError(f"Unable to associate floating IP {value['address']}: {error}") from error


def _remove(call: Call, server: InstanceRow, value: Record) -> None:
    """The action removeFloatingIp."""
    _check_action()
    floating = _of_address(call.connection, value["address"])
    if floating.instance_uuid != server.uuid:
        raise ConflictError(f"Floating IP {value['address']} is not associated with instance {server.uuid}.")
    with as_bad_request():
        floating_ips.associate(call, floating, None)


def _check_action() -> None:
    if microversion() > LAST_ACTION:
        raise BadRequestError("There is no such action: use the Network service for floating IPs.")


def _of_address(connection: Connection, address: str) -> FloatingIp:
    rows = network_records.floating_ips_of(connection, current().reach)
    return the_one(rows, "address", address, NotFoundError(f"floating IP {address} not found"))


def _pool(connection: Connection, name_or_id: str) -> str:
    """The pool's name; clients give that of its network, or the network's id."""
    for row in pools_seen(connection):
        if name_or_id in (row.shown_name, row.uuid):
            return row.name
    raise NotFoundError("Floating IP pool not found.")


def _floating_ip(connection: Connection, number: str) -> FloatingIp:
    rows = network_records.floating_ips_of(connection, current().reach, number)
    return the_one(rows, "id", number, NotFoundError(f"Floating IP not found for ID {number[:255]}"))


def _floating_body(row: FloatingIp) -> Body:
    return {
        "id": row.id,
        "ip": row.address,
        **same(row, "fixed_ip"),
        "pool": row.pool_name,
        "instance_id": row.instance_uuid,
    }


ACTIONS["addFloatingIp"] = Action("network:floating_ips:write", ADD, _add)
ACTIONS["removeFloatingIp"] = Action("network:floating_ips:write", REMOVE, _remove)
