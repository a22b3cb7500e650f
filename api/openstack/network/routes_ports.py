# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports: those that a project makes by itself, and the interfaces of its servers."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ForbiddenError, NotFoundError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.compute import server_changes
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import network_choices, ports
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network.pool_claims import (
    AddressInUseError,
    PoolExhaustedError,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import server_listing
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import Network, Port

from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import in_words
from ...web.services import takes, writes, writes_checked
from . import records, schemas, views
from .blueprint import network, refused, word
from .changes import owner_of, tell_hosts

CREATE = schemas.one_or_many("port", schemas.CREATE_PORT, ["network_id"])
UPDATE = schemas.wrapped("port", schemas.UPDATE_PORT)
DEFAULTS: Record = {
    "name": "",
    "description": "",
    "admin_state_up": True,
    "device_id": "",
    "device_owner": "",
    "security_groups": None,
    "allowed_address_pairs": None,
    "fixed_ips": None,
}
in_use = word(409, "PortInUse")
RESERVED = "network:"  # owners of what the cloud itself makes
# Neutron's words for what the ledger refuses
WORDS = {
    AddressInUseError: word(409, "IpAddressInUse"),
    PoolExhaustedError: word(409, "IpAddressGenerationFailure"),
    NotFoundError: word(404, "SecurityGroupNotFound"),
}

records.put_into(network, "ports", "network:ports:read")


@network.post("/ports", "network:ports:write", takes(CREATE), writes_checked)
def create_ports(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        owner = owner_of(connection, item)
        _check(item)
        row = records.network_row(connection, item["network_id"])
        _check_choices(row, item)
        with in_words(WORDS):
            values = {**DEFAULTS, **item, "mac": item.get("mac_address")}
            return ports.create_port(connection, owner, row, values)

    return records.create_some(connection, "ports", body, create), 201


@network.put("/ports/<port_id>", "network:ports:write", takes(UPDATE), writes_checked)
def update_port(connection: Connection, wanted: Record, port_id: str) -> Answer:
    _check(wanted)
    seen = records.port_row(connection, port_id)
    if "fixed_ips" in wanted and _has_already(seen, wanted["fixed_ips"] or []):
        del wanted["fixed_ips"]
    if seen.router_id is not None and {"device_id", "device_owner", "fixed_ips"} & set(wanted):
        raise in_use(f"Port {seen.id} is a router's: take it from the router first.")
    if seen.instance_uuid is not None:
        _check_attached(seen, wanted)
    row = records.network_row(connection, seen.network_uuid)
    _check_choices(row, wanted)
    with in_words(WORDS):
        ports.update_port(connection, seen.project_id, row, seen, wanted)
        if "security_groups" in wanted and seen.instance_uuid is not None:
            groups = [group.lower() for group in wanted["security_groups"] or ()]
            _change_groups(connection, seen, seen.instance_uuid, groups)
    return {"port": records.find(connection, "ports", seen.id)}, 200


@network.delete("/ports/<port_id>", "network:ports:write", writes)
def delete_port(connection: Connection, port_id: str) -> Answer:
    ports.delete_port(connection, records.port_row(connection, port_id))
    return "", 204


def _check(wanted: Record) -> None:
    """Who makes what belongs to the cloud itself is no tenant."""
    if wanted.get("device_owner", "").startswith(RESERVED) and not current().is_admin:
        raise refused(f"device_owner {wanted['device_owner'][:60]} is the cloud's own")


def _check_choices(row: Network, wanted: Record) -> None:
    caller = current()
    with in_words({ForbiddenError: refused}):
        network_choices.check_port(row, caller.project, wanted, caller.is_admin)


def _has_already(seen: Port, wanted: t.Sequence[Record]) -> bool:
    """Whether the addresses asked for, which may name no more than their subnets, are those of the port."""
    there = views.fixed_ips(seen)
    return len(wanted) == len(there) and all(any(address.items() <= own.items() for own in there) for address in wanted)


def _check_attached(seen: Port, wanted: Record) -> None:
    """What a running guest's host would have to be told is changed with the server."""
    if not wanted.get("admin_state_up", True):
        raise in_use(f"Port {seen.id} is a server's: detach it instead of taking it down.")
    if "allowed_address_pairs" in wanted:
        before = [(pair["ip_address"], pair.get("mac_address")) for pair in seen.allowed_address_pairs or ()]
        after = ports.checked_pairs(wanted["allowed_address_pairs"] or [])
        if before != [(pair["ip_address"], pair["mac_address"]) for pair in after]:
            raise in_use(f"Port {seen.id} is a server's: its address pairs stay while the server has it.")


def _change_groups(connection: Connection, seen: Port, server_uuid: str, wanted: list[str]) -> None:
    """Groups are a server's: all of its interfaces have the same."""
    project = seen.project_id
    server = server_listing.one(connection, server_uuid, project)
    before = set(seen.security_groups)
    joined = [server_changes.security_group_of(connection, project, uuid) for uuid in wanted if uuid not in before]
    left = [server_changes.security_group_of(connection, project, uuid) for uuid in sorted(before - set(wanted))]
    for group in joined:
        server_changes.join_group(connection, server, group.id)
    for group in left:
        server_changes.leave_group(connection, server, group.id)
    changed = {
        key: [{"name": server.name, "security_groups": [group.name for group in groups]}]
        for key, groups in (("join", joined), ("leave", left))
        if groups
    }
    if changed and (server.host is not None or server.vm_state == "building"):
        tell_hosts(connection, "security_groups", changed, project)
