# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, their subnets, interfaces and floating IPs as a project sees them, for those who show them. Reads only."""

from __future__ import annotations

import typing as t
import uuid

import netaddr
import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._rules import pools
from ..db.tables import (
    fixed_ip,
    floating_ip,
    floating_pool,
    instance,
    instance_security_group,
    network,
    security_group,
    vif,
)
from ..db.tables_networking import port, port_security_group, router_interface, subnet

Record = dict[str, t.Any]

# A floating pool has a name and no UUID; clients of the Network API know it as an external network, which has one.
POOLS = uuid.UUID("a2f9a4ac-8f0e-5f1b-9d53-0f5e8c1b7c11")


def subnet_id(network_uuid: str, version: int) -> str:
    """The UUID of a network's part of one address family (4 or 6). Always the same: there is no record of subnets."""
    return str(uuid.uuid5(uuid.UUID(network_uuid), f"IPv{version}"))


def pool_network_id(name: str) -> str:
    """The UUID under which a floating pool is shown as a network."""
    return str(uuid.uuid5(POOLS, name))


def networks_seen(connection: sa.Connection, project_id: str | None, bare: bool = False) -> list[Record]:
    """The public networks and the project's own (None: all), each with `ranges`: what of its IPv4 pool is handed out.

    With `bare` those, too, to which their project has given no IPv4 addresses yet; no server can be on one.
    """
    seen: sa.ColumnElement[bool] = sa.true()
    if project_id is not None:
        seen = network.c.owner.in_(["", project_id])
    if not bare:
        seen = sa.and_(seen, network.c.cidr.is_not(None))
    rows = [dict(row) for row in connection.execute(sa.select(network).where(seen).order_by(network.c.id)).mappings()]
    kept: dict[int, set[int]] = {row["id"]: set() for row in rows}
    query = sa.select(fixed_ip.c.network_id, fixed_ip.c.ip).where(
        fixed_ip.c.network_id.in_(list(kept)), fixed_ip.c.reserved.is_not(None)
    )
    for network_id, address in connection.execute(query):
        kept[network_id].add(address)
    for row in rows:
        row["ranges"] = [] if row["cidr"] is None else _complement(row["cidr"], kept[row["id"]])
    return rows


def pools_seen(connection: sa.Connection) -> list[Record]:
    """The floating pools, which every project sees, each with `ranges`."""
    rows = connection.execute(sa.select(floating_pool).order_by(floating_pool.c.name)).mappings()
    found = [dict(row) for row in rows]
    addresses: dict[str, list[int]] = {row["name"]: [] for row in found}
    for name, address in connection.execute(sa.select(floating_ip.c.pool, floating_ip.c.address)):
        addresses[name].append(address)
    for row in found:
        row["ranges"] = [(to_text(low), to_text(high)) for low, high in pools.bounds(addresses[row["name"]])]
    return found


def interfaces_of(connection: sa.Connection, project_id: str, instance_uuid: str | None = None) -> list[Record]:
    """The network interfaces of a project's instances (or of one), with addresses and the UUIDs of their groups."""
    mine = [instance.c.project_id == project_id, instance.c.deleted == 0]
    if instance_uuid is not None:
        mine.append(instance.c.uuid == instance_uuid)
    own = fixed_ip.alias("own")
    rows = connection.execute(
        sa.select(
            vif.c.id,
            vif.c.mac,
            vif.c.ipv6,
            vif.c.allowed_address_pairs,
            own.c.ip,
            network.c.uuid.label("network_uuid"),
            instance.c.id.label("instance_id"),
            instance.c.uuid.label("instance_uuid"),
            instance.c.name.label("instance_name"),
            instance.c.project_id,
            instance.c.host,
            instance.c.power_state,
            instance.c.availability_zone,
            instance.c.created_at,
        )
        .select_from(
            vif.join(instance, instance.c.uuid == vif.c.instance_uuid)
            .join(network, network.c.id == vif.c.network_id)
            .outerjoin(own, sa.and_(own.c.network_id == vif.c.network_id, own.c.owner == "vif:" + vif.c.id))
        )
        .where(*mine)
        .order_by(instance.c.id, vif.c.position)
    ).mappings()
    found = [{**row, "ip": None if row["ip"] is None else to_text(row["ip"])} for row in rows]
    link = instance_security_group
    groups: dict[int, list[str]] = {}
    query = (
        sa.select(link.c.instance_id, security_group.c.uuid)
        .select_from(
            link.join(security_group, security_group.c.id == link.c.group_id).join(
                instance, instance.c.id == link.c.instance_id
            )
        )
        .where(*mine)
        .order_by(link.c.instance_id, link.c.group_id)
    )
    for instance_id, group in connection.execute(query):
        groups.setdefault(instance_id, []).append(group)
    for record in found:
        record["security_groups"] = groups.get(record["instance_id"], [])
    return found


def ports_of(connection: sa.Connection, project_id: str | None, number: str | None = None) -> list[Record]:
    """A project's ports (None: all projects'; or the one with this UUID): its servers' interfaces, and what it made.

    `instance_uuid` is null for one that no server has; the groups are the server's where one has it.
    """
    own = fixed_ip.alias("own")
    mine = sa.or_(
        sa.and_(sa.true() if project_id is None else instance.c.project_id == project_id, instance.c.deleted == 0),
        sa.and_(
            vif.c.instance_uuid.is_(None),
            port.c.vif_id.is_not(None) if project_id is None else port.c.project_id == project_id,
        ),
    )
    rows = connection.execute(
        sa.select(
            vif.c.id,
            vif.c.mac,
            vif.c.ipv6,
            vif.c.status,
            vif.c.allowed_address_pairs,
            own.c.ip,
            network.c.id.label("network_id"),
            network.c.uuid.label("network_uuid"),
            instance.c.id.label("instance_id"),
            instance.c.uuid.label("instance_uuid"),
            instance.c.name.label("instance_name"),
            sa.func.coalesce(instance.c.project_id, port.c.project_id).label("project_id"),
            instance.c.host,
            instance.c.power_state,
            instance.c.availability_zone,
            *(port.c[name] for name in ("name", "description", "admin_state_up", "device_id", "device_owner", "kept")),
            router_interface.c.router_id,
            router_interface.c.version.label("router_version"),
            subnet.c.gateway.label("router_address"),
        )
        .select_from(
            vif.join(network, network.c.id == vif.c.network_id)
            .outerjoin(instance, instance.c.uuid == vif.c.instance_uuid)
            .outerjoin(port, port.c.vif_id == vif.c.id)
            .outerjoin(own, sa.and_(own.c.network_id == vif.c.network_id, own.c.owner == "vif:" + vif.c.id))
            .outerjoin(router_interface, router_interface.c.vif_id == vif.c.id)
            .outerjoin(
                subnet,
                sa.and_(
                    subnet.c.network_id == router_interface.c.network_id, subnet.c.version == router_interface.c.version
                ),
            )
        )
        .where(mine if number is None else sa.and_(mine, vif.c.id == number))
        .order_by(instance.c.id, vif.c.position, vif.c.id)
    ).mappings()
    found = [{**row, "ip": None if row["ip"] is None else to_text(row["ip"])} for row in rows]
    servers = _groups_by(connection, instance_security_group.c.instance_id, {record["instance_id"] for record in found})
    alone = [record["id"] for record in found if record["instance_id"] is None]
    ports = _groups_by(connection, port_security_group.c.vif_id, alone)
    for record in found:
        has_server = record["instance_id"] is not None
        record["security_groups"] = (servers if has_server else ports).get(
            record["instance_id" if has_server else "id"], []
        )
        if record["router_id"] is not None:  # at the gateway's address, unless it has one of its own
            key = "ip" if record["router_version"] == 4 else "ipv6"
            record[key] = record[key] or record["router_address"]
    return found


def _groups_by(
    connection: sa.Connection, column: sa.Column[t.Any], keys: t.Collection[t.Any]
) -> dict[t.Any, list[str]]:
    """Instance or port -> the UUIDs of its groups."""
    found: dict[t.Any, list[str]] = {}
    link = column.table
    query = (
        sa.select(column, security_group.c.uuid)
        .select_from(link.join(security_group, security_group.c.id == link.c.group_id))
        .where(column.in_([key for key in keys if key is not None]))
        .order_by(column, link.c.group_id)
    )
    for key, group in connection.execute(query):
        found.setdefault(key, []).append(group)
    return found


def floating_ips_of(connection: sa.Connection, project_id: str | None, number: str | None = None) -> list[Record]:
    """A project's floating IPs (None: all projects'; or the one with this UUID), with the interface each leads to."""
    own = fixed_ip.alias("own")
    mine = floating_ip.c.project_id.is_not(None) if project_id is None else floating_ip.c.project_id == project_id
    rows = connection.execute(
        sa.select(
            floating_ip.c.id,
            floating_ip.c.pool,
            floating_ip.c.address,
            floating_ip.c.vif_id,
            floating_ip.c.project_id,
            floating_ip.c.description,
            router_interface.c.router_id,
            own.c.ip.label("fixed_ip"),
            vif.c.mac,
            network.c.uuid.label("network_uuid"),
            instance.c.uuid.label("instance_uuid"),
            instance.c.name.label("instance_name"),
            instance.c.power_state,
            instance.c.host,
        )
        .select_from(
            floating_ip.outerjoin(vif, vif.c.id == floating_ip.c.vif_id)
            .outerjoin(instance, instance.c.uuid == vif.c.instance_uuid)
            .outerjoin(network, network.c.id == vif.c.network_id)
            .outerjoin(
                router_interface,
                sa.and_(router_interface.c.network_id == vif.c.network_id, router_interface.c.version == 4),
            )
            .outerjoin(own, sa.and_(own.c.network_id == vif.c.network_id, own.c.owner == "vif:" + vif.c.id))
        )
        .where(mine if number is None else sa.and_(mine, floating_ip.c.id == number))
        .order_by(floating_ip.c.address)
    ).mappings()
    return [
        {
            **row,
            "address": to_text(row["address"]),
            "fixed_ip": None if row["fixed_ip"] is None else to_text(row["fixed_ip"]),
        }
        for row in rows
    ]


def _complement(cidr: str, kept: set[int]) -> list[tuple[str, str]]:
    """What of `cidr` is not `kept`, as (first, last). Of a large pool a few addresses are: it is not walked."""
    whole = netaddr.IPNetwork(cidr)
    first, last = whole.first, whole.last
    found = []
    for low, high in [*pools.bounds(kept), (last + 1, last + 1)]:
        if first < low:
            found.append((to_text(first), to_text(low - 1)))
        first = max(first, high + 1)
    return found
