# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, security groups and floating IPs, as several doors change them; hosts are told."""

from __future__ import annotations

from ansible_collections.novalite.cloud.plugins.module_utils._errors import ConflictError
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.network import (
    external_networks,
    floating_ips,
    routers,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.hosts import update_hosts
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import security_groups
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries import network_records, projects
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network_records import (
    FloatingIp,
    Network,
    Port,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security import group_rules
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.security.security_groups import DEFAULT_GROUP

from ..web import policy
from ..web.bodies import Record, the_one
from ..web.context import current
from ..web.dialects import NeutronError, not_found
from ..web.ledger import reading_ledger, writing_ledger
from .calls import calling


def project_name(connection: Connection, project_id: str) -> str:
    caller = current()
    if project_id == caller.project and caller.project_name is not None:
        return caller.project_name
    return str(projects.project_name(connection, project_id))


# --- Networks -------------------------------------------------------------------------------------------------------


def network_row(connection: Connection, number: str) -> Network:
    """The ledger's row of a network that the asker sees. Raises NeutronError."""
    for row in network_records.networks_seen(connection, current().reach, bare=True):
        if row.uuid == number.lower():
            return row
    if external_networks.find_pool(connection, number.lower()) is not None:
        raise NeutronError(403, "PolicyNotAuthorized", f"network {number} is the cloud's operator's floating pool")
    raise not_found("Network", number)


# --- Security groups ------------------------------------------------------------------------------------------------


def groups_seen() -> list[Record]:
    """The caller's project's security groups. It has a default one from the first time that somebody looks."""
    project = current().project
    with reading_ledger() as connection:
        rows = group_rules.groups_of(connection, project)
    if not any(row["name"] == DEFAULT_GROUP for row in rows):
        with writing_ledger() as connection:
            security_groups.ensure_default(calling(connection))
            rows = group_rules.groups_of(connection, project)
    return rows


# --- Floating IPs ---------------------------------------------------------------------------------------------------


def floating_ip(connection: Connection, number: str) -> FloatingIp:
    """A floating IP that the caller may name by id. Raises NeutronError."""
    rows = network_records.floating_ips_of(connection, current().reach, number)
    return the_one(rows, "id", number, not_found("Floating IP", number))


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


def release(connection: Connection, before: FloatingIp) -> None:
    """Take a floating IP from the project."""
    item = {"address": before.address, "pool": None, "server": None, "fixed_ip": None}
    floating_ips.release_floating_ips(connection, project_name(connection, before.project_id), [item])
    tell_hosts_of(connection, before, None)


def associate(connection: Connection, number: str, port: Port | None) -> None:
    """Let the floating IP lead to `port` at its address `ip`, or nowhere."""
    before = floating_ip(connection, number)
    if port is not None and (before.vif_id, before.fixed_ip) == (port.id, port.ip):
        return
    if port is not None:
        if not routers.reaches(connection, port.network_uuid, port.subnet_ids[str(port.ip)], before.pool):
            raise NeutronError(
                404,
                "ExternalGatewayForFloatingIPNotFound",
                f"External network {before.pool_uuid} is not reachable from the network "
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
    after = floating_ip(connection, number)
    if port is not None and after.vif_id != port.id:
        raise ConflictError(f"the server has {port.ip} on several interfaces: no floating IP can tell them apart")
    tell_hosts_of(connection, before, after)


def tell_hosts_of(connection: Connection, before: FloatingIp, after: FloatingIp | None) -> None:
    """The host that had it stops, then the host of its server translates; both learn from a job what the ledger says.

    The address is not named: when the job runs, it may be another project's.
    """
    holders = [after.host] if after is not None and after.host else []
    hosts = sorted({*holders, *([before.host] if before.host else [])})
    if hosts:
        update_hosts(
            calling(connection), "floating_ips", {"network_hosts": hosts, "holders": holders}, before.project_id
        )
