# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Changes of ports, of those too that a server has: their addresses come and go while it is there.

A server's interface always has an address of IPv4 here, for its host knows the guest by it.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._model.rows import InstanceRow
from ..db.tables import floating_ip
from ..identity import quotas
from ..network import ports
from ..queries import network_records
from ..queries.network_records import Network, Port, subnet_id
from ..queries.usage import usage
from . import interfaces


class PortChange(t.NamedTuple):
    """The port that changed, and what its server's host is to be told: of the port, and of floating IPs."""

    port: Port
    for_host: bool
    floating: bool


def update_port(connection: sa.Connection, row: Network, seen: Port, given: JsonMapping) -> PortChange:
    """Change what is `given` of the port `seen` on the network `row`, as ports.update_port() does.

    Raises ConflictError for addresses of a server that is not at rest, QuotaError for too many of them.
    """
    attached = seen.instance_uuid if "fixed_ips" in given else None
    if attached is not None:
        interfaces.check(connection, "update_port", interfaces.server_row(connection, attached))
    floating = attached is not None and _is_led_to(connection, seen)
    for_host = ports.update_port(connection, seen.project_id, row, seen, given)
    if attached is not None:
        used = usage(connection, seen.project_id, ["fixed_ips"])
        quotas.check_quota(connection, seen.project_id, "fixed_ips", used["fixed_ips"])
    return PortChange(seen, for_host, floating)


def add_fixed_ip(connection: sa.Connection, server: InstanceRow, network_uuid: str) -> PortChange:
    """Give the server one more IPv4 address, on its first interface in this network.

    Raises NotFoundError where it has none there, NovaliteError where the pool has none left or the interface has as
    many as it may, and what update_port() does.
    """
    for port in network_records.interfaces_of(connection, server.project_id, server.uuid):
        if port.network_uuid == network_uuid:
            return _with_addresses(connection, port, [*_addresses(port), {"subnet_id": subnet_id(network_uuid, 4)}])
    raise NotFoundError(f"Network {network_uuid} could not be found for instance {server.uuid}.")


def remove_fixed_ip(connection: sa.Connection, server: InstanceRow, address: str) -> PortChange:
    """Take this IPv4 address from the interface of the server that has it.

    Raises NovaliteError where none has it or it is the only one, and what update_port() does.
    """
    for port in network_records.interfaces_of(connection, server.project_id, server.uuid):
        kept = [entry for entry in _addresses(port) if entry["ip_address"] != address]
        if len(kept) < len(_addresses(port)) and address != port.ipv6:
            return _with_addresses(connection, port, kept)
    raise NovaliteError(f"Instance {server.uuid} does not have fixed IP '{address}'.")


def _with_addresses(connection: sa.Connection, port: Port, wanted: t.Sequence[JsonObject]) -> PortChange:
    return update_port(connection, network_records.network_of(connection, port), port, {"fixed_ips": wanted})


def _addresses(port: Port) -> list[JsonObject]:
    """The port's addresses, in the words of a change of them."""
    own = (port.ip, *port.more_ips, port.ipv6)
    return [{"ip_address": address} for address in own if address is not None]


def _is_led_to(connection: sa.Connection, port: Port) -> bool:
    leads = sa.select(floating_ip.c.id).where(floating_ip.c.vif_id == port.id)
    return connection.execute(leads.limit(1)).first() is not None
