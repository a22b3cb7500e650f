# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating IPs. A change that hosts must see is a job in the same transaction."""

from __future__ import annotations

import dataclasses

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import floating_ips, routers
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import FloatingIp, Port

from ...web import policy
from ...web.bodies import Answer, Record, the_one
from ...web.context import current
from ...web.errors import BadRequestError
from ...web.services import takes, writes_checked
from . import records, schemas, views
from .blueprint import NeutronError, network, not_found
from .changes import owner_of, project_name, tell_hosts

records.put_into(network, "floatingips", "network:floating_ips:read")


@network.post("/floatingips", "network:floating_ips:write", takes(schemas.CREATE_FLOATING), writes_checked)
def create_floating_ip(connection: Connection, body: Record) -> Answer:
    owner = owner_of(connection, body)
    pool = _pool(connection, body["floating_network_id"].lower())
    port = _port(connection, body)
    number = allocate(connection, pool, body.get("floating_ip_address"), owner)
    if port is not None:
        associate(connection, number, port)
    _describe(connection, number, body)
    return {"floatingip": views.floating_ip(_row(connection, number))}, 201


def allocate(connection: Connection, pool: str | None, address: str | None = None, owner: str | None = None) -> str:
    """Give a project (None: the caller's) an address of `pool` (None: the only one), a certain one or any.

    Returns its id.
    """
    project_id = owner or current().project
    if address is not None and floating_ips.is_chosen(connection, project_id, address):
        policy.check("network:floating_ips:choose")
    project = project_name(connection, project_id)
    item = {"address": address, "pool": pool, "server": None, "fixed_ip": None, "new": address is None}
    done = floating_ips.write_floating_ips(connection, project, [item])
    if not done["changed"]:
        raise NeutronError(409, "FloatingIpAddressInUse", f"the project has the floating IP {address} already")
    return str(done["floating_ips"][0]["id"])


@network.put(
    "/floatingips/<floatingip_id>", "network:floating_ips:write", takes(schemas.UPDATE_FLOATING), writes_checked
)
def update_floating_ip(connection: Connection, body: Record, floatingip_id: str) -> Answer:
    _row(connection, floatingip_id)
    if "port_id" in body:
        associate(connection, floatingip_id, _port(connection, body))
    _describe(connection, floatingip_id, body)
    return {"floatingip": views.floating_ip(_row(connection, floatingip_id))}, 200


@network.delete("/floatingips/<floatingip_id>", "network:floating_ips:write", writes_checked)
def delete_floating_ip(connection: Connection, floatingip_id: str) -> Answer:
    release(connection, _row(connection, floatingip_id))
    return "", 204


def release(connection: Connection, before: FloatingIp) -> None:
    """Take a floating IP from the project."""
    item = {"address": before.address, "pool": None, "server": None, "fixed_ip": None}
    floating_ips.release_floating_ips(connection, project_name(connection, before.project_id), [item])
    tell_hosts_of(connection, before, None)


def associate(connection: Connection, number: str, port: Port | None) -> None:
    """Let the floating IP lead to `port` at its address `ip`, or nowhere."""
    before = _row(connection, number)
    if port is not None and (before.vif_id, before.fixed_ip) == (port.id, port.ip):
        return
    if port is not None:
        if not routers.reaches(connection, port.network_uuid, port.subnet_ids[str(port.ip)], before.pool):
            raise NeutronError(
                404,
                "ExternalGatewayForFloatingIPNotFound",
                f"External network {network_records.pool_network_id(before.pool)} is not reachable from the network "
                f"{port.network_uuid}. Therefore, cannot associate Port {port.id} with a Floating IP.",
            )
        others = network_records.floating_ips_of(connection, before.project_id)
        taken = [(other.vif_id, other.fixed_ip) for other in others if other.pool == before.pool]
        if (port.id, port.ip) in taken:
            raise NeutronError(
                409,
                "FloatingIPPortAlreadyAssociated",
                f"Cannot associate floating IP {before.address} ({number}) with port {port.id} using fixed IP "
                f"{port.ip}, as that fixed IP already has a floating IP on that external network.",
            )
    item = {"address": before.address, "pool": None, "server": "", "fixed_ip": None}
    attached = port is not None and port.instance_name is not None
    if port is not None and attached:
        item.update(server=port.instance_name, fixed_ip=port.ip)
    floating_ips.write_floating_ips(connection, project_name(connection, before.project_id), [item])
    if port is not None and not attached:
        floating_ips.lead_to_port(connection, before.project_id, number, port.id, port.ip)
    after = _row(connection, number)
    if port is not None and after.vif_id != port.id:
        raise ConflictError(f"the server has {port.ip} on several interfaces: no floating IP can tell them apart")
    tell_hosts_of(connection, before, after)


def _describe(connection: Connection, number: str, body: Record) -> None:
    if body.get("description") is not None:
        owner = _row(connection, number).project_id
        floating_ips.describe(connection, owner, number, body["description"])


def tell_hosts_of(connection: Connection, before: FloatingIp, after: FloatingIp | None) -> None:
    """The host that had it stops, then the host of its server translates; both learn from a job what the ledger says.

    The address is not named: when the job runs, it may be another project's.
    """
    holders = [after.host] if after is not None and after.host else []
    hosts = sorted({*holders, *([before.host] if before.host else [])})
    if hosts:
        tell_hosts(connection, "floating_ips", {"network_hosts": hosts, "holders": holders}, before.project_id)


def _row(connection: Connection, number: str) -> FloatingIp:
    rows = network_records.floating_ips_of(connection, current().reach, number)
    return the_one(rows, "id", number, not_found("Floating IP", number))


def _pool(connection: Connection, number: str) -> str:
    for pool in network_records.pools_seen(connection):
        if network_records.pool_network_id(pool.name) == number:
            return pool.name
    for row in network_records.networks_seen(connection, current().reach):
        if row.uuid == number:
            raise BadRequestError(f"Network {number} is not a valid external network")
    raise not_found("Network", number)


def _port(connection: Connection, body: Record) -> Port | None:
    number, fixed = body.get("port_id"), body.get("fixed_ip_address")
    if not number:
        if fixed:
            raise BadRequestError("fixed_ip_address cannot be specified without a port_id")
        return None
    for row in network_records.ports_of(connection, current().reach, number.lower()):
        if row.id == number.lower():
            if row.ip is None:
                raise BadRequestError(f"Port {number} has no fixed IPv4 address yet: no floating IP can lead to it")
            if not fixed and row.more_ips:
                raise BadRequestError(
                    f"Port {number} has multiple fixed IPv4 addresses. Must provide a specific IPv4 address when "
                    "assigning a floating IP: name one in fixed_ip_address."
                )
            if fixed and fixed not in (row.ip, *row.more_ips):
                raise BadRequestError(f"Port {number} does not have fixed ip {fixed[:60]}.")
            return dataclasses.replace(row, ip=fixed or row.ip, more_ips=[])
    raise not_found("Port", number)
