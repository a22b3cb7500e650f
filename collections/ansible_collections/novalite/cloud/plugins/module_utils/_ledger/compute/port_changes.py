# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of ports, of those too that a server has: their addresses come and go while it is there.

A server's interface always has an address of IPv4 here, for its host knows the guest by it.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.rows import InstanceRow
from ..db.tables import floating_ip, vif
from ..db.tables_networking import port as port_table
from ..identity import quotas
from ..network import ports
from ..network.addresses import give_addresses
from ..network.tenant_networks import TenantError
from ..queries.compute import state_rules
from ..queries.compute.instance_rows import locked_row
from ..queries.compute.usage import usage
from ..queries.compute.views import instances_by
from ..queries.network import network_records
from ..queries.network.network_records import Network, Port
from . import interfaces


class PortChange(t.NamedTuple):
    """The port that changed, and what its server's host is to be told: of the port, and of floating IPs."""

    port: Port
    for_host: bool
    floating: bool  # and of networks on the host


def update_port(connection: sa.Connection, row: Network, seen: Port, changes: JsonMapping) -> PortChange:
    """Make the `changes` of the port `seen` on the network `row`, as ports.update_port() does.

    Raises ConflictError for addresses of a server that is not at rest, QuotaError for too many of them.
    """
    return _update(connection, row, _locked(connection, seen) if "fixed_ips" in changes else seen, changes)


def delete_port(
    connection: sa.Connection, seen: Port, *, request_id: str, user_id: str | None = None, by_admin: bool = False
) -> InstanceRow | None:
    """Remove the port `seen` with its addresses; returns the server whose host is to pull the interface out first, None
    if there is none. A port that is being detached goes when it is, and one of a server that is being deleted with it.

    Raises TenantError for a router's port, and ConflictError for a server whose interfaces may not change now, and for
    a port that a server got just now.
    """
    if seen.router_id is not None:
        raise TenantError(
            "ServicePortInUse",
            f"Port {seen.id} cannot be deleted directly via the port API: has device owner network:router_interface.",
        )
    if seen.instance_uuid is None:
        holder = sa.select(vif.c.instance_uuid).where(vif.c.id == seen.id).with_for_update()
        if connection.execute(holder).scalar() is not None:
            raise _is_changing(seen)
        ports.drop(connection, [seen.id])
        return None
    server = locked_row(connection, seen.instance_uuid)
    connection.execute(
        sa.update(port_table).where(port_table.c.vif_id == seen.id).values(kept=False)
    )  # gone when it is free
    if server.task_state == "deleting" or seen.status == interfaces.DETACHING:
        return None
    interfaces.begin_detach(connection, server, seen.id, request_id=request_id, user_id=user_id, by_admin=by_admin)
    return server


def _update(connection: sa.Connection, row: Network, seen: Port, changes: JsonMapping) -> PortChange:
    """Change a port as update_port() does; it is locked already where `changes` have addresses."""
    attached = seen.instance_uuid if "fixed_ips" in changes else None
    floating = attached is not None and _is_led_to(connection, seen)
    before = 0 if attached is None else usage(connection, seen.project_id, ["fixed_ips"])["fixed_ips"]
    for_host = ports.update_port(connection, seen.project_id, row, seen, changes)
    if attached is not None:
        used = usage(connection, seen.project_id, ["fixed_ips"])["fixed_ips"]
        if used > before:  # who is over a limit that was lowered gives addresses back
            quotas.check_quota(connection, seen.project_id, "fixed_ips", used)
        floating |= _has_new_range(connection, attached)
    return PortChange(seen, for_host, floating)


def _has_new_range(connection: sa.Connection, uuid: str) -> bool:
    """Give the server's host an address of its own in each range in which the server has one now; returns whether it
    got any: then its bridge and router are to learn of it."""
    servers = [server for server in instances_by(connection, uuids=[uuid]) if server["host"]]
    for server in servers:
        server["nics"] = [nic for nic in server["nics"] if "ranges" in nic["network"]]
    return give_addresses(connection, servers).taken > 0


def add_fixed_ip(
    connection: sa.Connection, server: InstanceRow, network_uuid: str, by_admin: bool = False
) -> PortChange:
    """Give the server one more IPv4 address, on its first interface in this network.

    Raises NotFoundError where it has none there, StateError for a locked server, and what change_fixed_ips() does.
    """
    state_rules.check(connection, state_rules.RULES["change_fixed_ips"], [server], by_admin=by_admin)
    for port in network_records.interfaces_of(connection, server.project_id, server.uuid):
        if port.network_uuid == network_uuid:
            return change_fixed_ips(connection, port, new=[{"ip_version": 4}])
    raise NotFoundError(f"Network {network_uuid} could not be found for instance {server.uuid}.")


def remove_fixed_ip(connection: sa.Connection, server: InstanceRow, address: str, by_admin: bool = False) -> PortChange:
    """Take this IPv4 address from the interface of the server that has it. Raises what add_fixed_ip() does."""
    state_rules.check(connection, state_rules.RULES["change_fixed_ips"], [server], by_admin=by_admin)
    for port in network_records.interfaces_of(connection, server.project_id, server.uuid):
        if address in (port.ip, *port.more_ips):
            return change_fixed_ips(connection, port, going=[address])
    raise NovaliteError(f"Instance {server.uuid} does not have fixed IP '{address}'.")


def change_fixed_ips(
    connection: sa.Connection, port: Port, new: t.Iterable[JsonObject] = (), going: t.Collection[str] = ()
) -> PortChange:
    """Give a port addresses, `new` as in fixed_ips (or {"ip_version"}: of any subnet), and take those of IPv4 away that
    are `going`.

    Raises NovaliteError for one that it has not, for more than a port may have, and where a server's port would have
    none; PoolExhaustedError, and what update_port() does.
    """
    port = _locked(connection, port)
    for address in going:
        if address not in (port.ip, *port.more_ips):
            raise NovaliteError(f"Port {port.id} does not have fixed IP '{address}'.")
    own = [address for address in (port.ip, *port.more_ips, port.ipv6) if address is not None]
    fixed_ips: list[JsonObject] = [{"ip_address": address} for address in own if address not in going]
    fixed_ips += [entry for entry in new if entry.get("ip_address") not in own]
    return _update(connection, network_records.network_of(connection, port), port, {"fixed_ips": fixed_ips})


def _locked(connection: sa.Connection, port: Port) -> Port:
    """The port as it is now; nobody else changes its addresses before this transaction ends.

    Raises ConflictError for a port of a server that is not at rest, and for one that went meanwhile.
    """
    if port.instance_uuid is not None:
        interfaces.check(connection, "update_port", locked_row(connection, port.instance_uuid))
    connection.execute(sa.select(vif.c.id).where(vif.c.id == port.id).with_for_update())
    for now in network_records.ports_of(connection, port.project_id, port.id):
        if now.instance_uuid == port.instance_uuid:
            return now
    raise _is_changing(port)


def _is_changing(port: Port) -> ConflictError:
    return ConflictError(f"port {port.id} is being attached, detached or deleted: try again")


def _is_led_to(connection: sa.Connection, port: Port) -> bool:
    leads = sa.select(floating_ip.c.id).where(floating_ip.c.vif_id == port.id)
    return connection.execute(leads.limit(1)).first() is not None
