# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks, their subnets, interfaces and floating IPs as a project sees them, for those who show them. Reads only."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._addressing.pools import to_text
from ...._json import JsonMapping, JsonObject
from ...._model import listed_networks
from ...._model.instance import AddressPair, DhcpOption
from ...db.tables import (
    fixed_ip,
    floating_ip,
    floating_pool,
    instance,
    instance_security_group,
    network,
    security_group,
    vif,
)
from ...db.tables_addresses import HELD, LED_TO
from ...db.tables_networking import port, port_security_group, router_interface, subnet
from .further_ips import further_ips
from .subnet_records import SubnetIds, subnet_ids

Key = t.TypeVar("Key", int, str)


@dataclasses.dataclass(frozen=True)
class Network:
    """A network as its row says it (db/tables.py). Times are in seconds since the epoch, the MTU is in bytes."""

    id: int
    uuid: str
    owner: str  # id of the project that has it; "": the operator's, and everybody's
    name: str
    cidr: str | None
    cidr_v6: str | None
    gateway: str | None
    gateway_v6: str | None
    bridge: str
    bridge_interface: str | None
    vlan: int | None
    dhcp: bool
    dns: list[str]
    domain: str
    mtu: int | None
    lease_seconds: int
    quarantine_seconds: int
    manager: str
    vni: int | None
    isolated: bool
    snat: bool
    ntp: list[str]
    ipv6_mode: str
    tenant: bool
    display_name: str | None
    description: str
    created_at: int
    updated_at: int
    routes: list[dict[str, str]]  # "destination" and "nexthop"
    port_security_enabled: bool  # of interfaces to come
    admin_state_up: bool  # False: it carries nothing
    made_by: str  # id of the project that made it, also of one that is shared; "": nobody knows, or the operator
    is_default: bool  # servers that name none of several networks are put on it
    ranges: listed_networks.Ranges = dataclasses.field(
        default_factory=list
    )  # what of `cidr` is handed out, where it was asked

    @classmethod
    def of(cls, row: t.Mapping[t.Any, t.Any], **more: t.Any) -> Network:
        """Make one of what `row` has of it."""
        return cls(**{field.name: row[field.name] for field in dataclasses.fields(cls) if field.name in row}, **more)

    def range_of(self, version: int) -> str | None:
        """The CIDR of this IP version (4 or 6)."""
        return self.cidr if version == 4 else self.cidr_v6


@dataclasses.dataclass(frozen=True)
class Port:
    """A network interface, with what was said of it as a port by itself (None: nothing was)."""

    id: str
    mac: str
    ip: str | None
    more_ips: list[str]  # further IPv4 addresses
    ipv6: str | None
    status: str | None
    allowed_address_pairs: list[AddressPair] | None
    port_security_enabled: bool
    network_id: int
    network_uuid: str
    instance_id: int | None  # None: no server has it
    instance_uuid: str | None
    instance_name: str | None
    instance_created_at: int | None
    project_id: str
    host: str | None
    power_state: int | None
    availability_zone: str | None
    name: str | None
    description: str | None
    admin_state_up: bool | None
    device_id: str | None
    device_owner: str | None
    kept: bool | None
    extra_dhcp_opts: list[DhcpOption] | None
    binding: JsonObject | None
    router_id: str | None
    security_groups: list[str]  # UUIDs; the server's where one has it
    subnet_ids: dict[str, str]  # address -> UUID of the subnet that it is of

    @property
    def groups_in_force(self) -> list[str]:
        """The security groups that judge what reaches the port."""
        return self.security_groups if self.port_security_enabled else []


@dataclasses.dataclass(frozen=True)
class FloatingIp:
    """A floating IP of a project, and the interface that it leads to (None: to none)."""

    id: str
    pool: str
    pool_uuid: str
    pool_name: str  # what the Network API shows
    address: str
    project_id: str
    description: str
    vif_id: str | None
    router_id: str | None
    fixed_ip: str | None
    mac: str | None
    network_uuid: str | None
    instance_uuid: str | None
    instance_name: str | None
    power_state: int | None
    host: str | None


def networks_seen(connection: sa.Connection, project_id: str | None, bare: bool = False) -> list[Network]:
    """The public networks and the project's own (None: all), each with `ranges`: what of its IPv4 pool is handed out.

    With `bare` those, too, to which their project has given no IPv4 addresses yet; no server can be on one.
    """
    query = LOAD["networks_of_all" if project_id is None else "networks_of_project"]
    if not bare:
        query = query.where(network.c.cidr.is_not(None))
    queries = {**LOAD, "networks": query}

    def read(name: str, values: JsonMapping) -> t.Iterable[t.Any]:
        return connection.execute(queries[name], {"project_id": project_id, **values}).mappings()

    return [Network.of(record) for record in listed_networks.records(read)]


_NETWORKS = sa.select(
    *(network.c[field.name] for field in dataclasses.fields(Network) if field.name in network.c)
).order_by(network.c.id)
# What listed_networks reads. The command `novalite` has them as texts, too: operations/looks.py
LOAD: dict[str, sa.Select[t.Any]] = {
    "networks_of_all": _NETWORKS,
    "networks_of_project": _NETWORKS.where(
        sa.or_(network.c.owner == "", network.c.owner == sa.bindparam("project_id"))
    ),
    "reserved_addresses": sa.select(fixed_ip.c.network_id, fixed_ip.c.ip).where(
        fixed_ip.c.network_id.in_(sa.bindparam("ids", expanding=True)), fixed_ip.c.reserved.is_not(None)
    ),
}


def network_of(connection: sa.Connection, of_port: Port) -> Network:
    """The network of a port; it is there as long as the port is."""
    (row,) = networks_by(connection, [of_port.network_id])
    return row


def networks_by(connection: sa.Connection, ids: t.Iterable[int]) -> list[Network]:
    """The networks with these numbers."""
    rows = connection.execute(_NETWORKS.where(network.c.id.in_(sorted(ids)))).mappings()
    return [Network.of(row) for row in rows]


def interfaces_of(connection: sa.Connection, project_id: str, instance_uuid: str | None = None) -> list[Port]:
    """The network interfaces of a project's instances, or of one."""
    of_server = vif.c.instance_uuid.is_not(None) if instance_uuid is None else vif.c.instance_uuid == instance_uuid
    return _ports(connection, project_id, of_server)


def ports_of(connection: sa.Connection, project_id: str | None, number: str | None = None) -> list[Port]:
    """A project's ports (None: all projects'; or the one with this UUID): its servers' interfaces, and what it made."""
    return _ports(connection, project_id, sa.true() if number is None else vif.c.id == number)


class Page(t.NamedTuple):
    """A page of at most `limit` records, by their ids: those after the marker, or, in `reverse`, before it."""

    limit: int
    marker: str | None
    reverse: bool


class PortChoice(t.NamedTuple):
    """Choice among all ports: those with one of these values; None means any."""

    ids: t.Collection[str] | None = None
    networks: t.Collection[str] | None = None
    devices: t.Collection[str] | None = None
    macs: t.Collection[str] | None = None

    def condition(self) -> sa.ColumnElement[bool]:
        networks = sa.select(network.c.id).where(network.c.uuid.in_(self.networks or ()))
        of_others = sa.select(port.c.vif_id).where(port.c.device_id.in_(self.devices or ()))
        conditions = (
            (self.ids, vif.c.id.in_(self.ids or ())),
            (self.networks, vif.c.network_id.in_(networks)),
            (self.devices, sa.or_(vif.c.instance_uuid.in_(self.devices or ()), vif.c.id.in_(of_others))),
            (self.macs, vif.c.mac.in_(self.macs or ())),
        )
        return sa.and_(sa.true(), *(condition for values, condition in conditions if values is not None))


def ports_chosen(
    connection: sa.Connection, project_id: str | None, choice: PortChoice, page: Page | None = None
) -> list[Port]:
    """The ports of a project (None: of all) that a list asks for; with `page` by their ids, the page with the marker
    itself and one port more, by which is seen that there are further ones. No other port is read to its end."""
    if page is None:
        return _ports(connection, project_id, choice.condition())
    of_servers = vif.join(instance, instance.c.uuid == vif.c.instance_uuid)
    sides = (
        (of_servers, instance.c.project_id, instance.c.deleted == 0),
        (vif.join(port, port.c.vif_id == vif.c.id), port.c.project_id, vif.c.instance_uuid.is_(None)),
    )
    direction = vif.c.id.desc() if page.reverse else vif.c.id.asc()
    marker = page.marker or ""
    beyond = vif.c.id <= marker if page.reverse else vif.c.id >= marker
    ids: list[str] = []
    for join, owner, there in sides:
        query = sa.select(vif.c.id).select_from(join).where(there, choice.condition())
        query = query if project_id is None else query.where(owner == project_id)
        query = query if page.marker is None else query.where(beyond)
        ids += connection.execute(query.order_by(direction).limit(page.limit + 2)).scalars()
    chosen = sorted(ids, reverse=page.reverse)[: page.limit + 2]
    return sorted(_ports(connection, project_id, vif.c.id.in_(chosen)), key=lambda row: row.id)


def _ports(connection: sa.Connection, project_id: str | None, condition: sa.ColumnElement[bool]) -> list[Port]:
    mine = sa.or_(
        sa.and_(sa.true() if project_id is None else instance.c.project_id == project_id, instance.c.deleted == 0),
        sa.and_(
            vif.c.instance_uuid.is_(None),
            port.c.vif_id.is_not(None) if project_id is None else port.c.project_id == project_id,
        ),
    )
    rows = connection.execute(
        sa.select(
            *(
                vif.c[name]
                for name in ("id", "mac", "ipv6", "status", "allowed_address_pairs", "port_security_enabled")
            ),
            fixed_ip.c.ip,
            *(network.c[name].label(f"network_{name}") for name in ("id", "uuid")),
            *(instance.c[name].label(f"instance_{name}") for name in ("id", "uuid", "name", "created_at")),
            *(instance.c[name] for name in ("host", "power_state", "availability_zone")),
            sa.func.coalesce(instance.c.project_id, port.c.project_id).label("project_id"),
            *(port.c[name] for name in ("name", "description", "admin_state_up", "device_id", "device_owner", "kept")),
            *(port.c[name] for name in ("extra_dhcp_opts", "binding")),
            router_interface.c.router_id,
            router_interface.c.version.label("router_version"),
            subnet.c.gateway.label("router_address"),
        )
        .select_from(
            vif.join(network, network.c.id == vif.c.network_id)
            .outerjoin(instance, instance.c.uuid == vif.c.instance_uuid)
            .outerjoin(port, port.c.vif_id == vif.c.id)
            .outerjoin(fixed_ip, HELD)
            .outerjoin(router_interface, router_interface.c.vif_id == vif.c.id)
            .outerjoin(subnet, subnet.c.id == router_interface.c.subnet_id)
        )
        .where(mine, condition)
        .order_by(instance.c.id, vif.c.position, vif.c.id)
    ).mappings()
    records = [{**row, "ip": None if row["ip"] is None else to_text(row["ip"])} for row in rows]
    more = further_ips(connection, [record["id"] for record in records])
    servers = {record["instance_id"] for record in records} - {None}
    groups_of_servers = _groups_by(connection, instance_security_group.c.instance_id, servers)
    alone = [record["id"] for record in records if record["instance_id"] is None]
    groups_of_ports = _groups_by(connection, port_security_group.c.vif_id, alone)
    ids = subnet_ids(connection, {record["network_uuid"] for record in records})
    ports = []
    for record in records:
        version, address = record.pop("router_version"), record.pop("router_address")
        if record["router_id"] is not None:  # at the gateway's address, unless it has one of its own
            key = "ip" if version == 4 else "ipv6"
            record[key] = record[key] or address
        server = record["instance_id"]
        groups = groups_of_ports.get(record["id"], []) if server is None else groups_of_servers.get(server, [])
        further = more.get(record["id"], [])
        own = [each for each in (record["ip"], *further, record["ipv6"]) if each]
        of = {each: ids.of(record["network_uuid"], each) for each in own}
        ports.append(Port(**record, more_ips=further, security_groups=groups, subnet_ids=of))
    return ports


def _groups_by(connection: sa.Connection, column: sa.Column[Key], keys: t.Collection[Key]) -> dict[Key, list[str]]:
    """Instance or port -> the UUIDs of its groups."""
    groups_by_owner: dict[Key, list[str]] = {}
    link = column.table
    query = (
        sa.select(column, security_group.c.uuid)
        .select_from(link.join(security_group, security_group.c.id == link.c.group_id))
        .where(column.in_(keys))
        .order_by(column, link.c.group_id)
    )
    for key, group in connection.execute(query):
        groups_by_owner.setdefault(key, []).append(group)
    return groups_by_owner


def floating_ips_of(connection: sa.Connection, project_id: str | None, number: str | None = None) -> list[FloatingIp]:
    """A project's floating IPs (None: all projects'; or the one with this UUID), with the interface each leads to."""
    mine = floating_ip.c.project_id.is_not(None) if project_id is None else floating_ip.c.project_id == project_id
    rows = connection.execute(
        sa.select(
            *(floating_ip.c[name] for name in ("id", "pool", "address", "vif_id", "project_id", "description")),
            floating_pool.c.uuid.label("pool_uuid"),
            sa.func.coalesce(floating_pool.c.display_name, floating_pool.c.name).label("pool_name"),
            LED_TO.label("fixed_ip"),
            vif.c.mac,
            network.c.uuid.label("network_uuid"),
            instance.c.uuid.label("instance_uuid"),
            instance.c.name.label("instance_name"),
            instance.c.power_state,
            instance.c.host,
        )
        .select_from(
            floating_ip.join(floating_pool, floating_pool.c.name == floating_ip.c.pool)
            .outerjoin(vif, vif.c.id == floating_ip.c.vif_id)
            .outerjoin(instance, instance.c.uuid == vif.c.instance_uuid)
            .outerjoin(network, network.c.id == vif.c.network_id)
            .outerjoin(fixed_ip, HELD)
        )
        .where(mine if number is None else sa.and_(mine, floating_ip.c.id == number))
        .order_by(floating_ip.c.address)
    ).mappings()
    records = [{**row, "address": to_text(row["address"])} for row in rows]
    for record in records:
        record["fixed_ip"] = record["fixed_ip"] and to_text(record["fixed_ip"])
    networks = {record["network_uuid"] for record in records} - {None}
    ids, routers = subnet_ids(connection, networks), _routers_by_subnet(connection, networks)
    return [FloatingIp(**record, router_id=_router_of(record, ids, routers)) for record in records]


def _routers_by_subnet(connection: sa.Connection, networks: t.Collection[str]) -> dict[str, str]:
    """Subnet -> the router that has an interface in it, for those of these networks."""
    query = (
        sa.select(router_interface.c.subnet_id, router_interface.c.router_id)
        .join(network, network.c.id == router_interface.c.network_id)
        .where(network.c.uuid.in_(sorted(networks)))
    )
    return {row.subnet_id: row.router_id for row in connection.execute(query)}


def _router_of(record: t.Mapping[str, t.Any], ids: SubnetIds, routers: t.Mapping[str, str]) -> str | None:
    address = record["fixed_ip"]
    return None if address is None else routers.get(ids.of(record["network_uuid"], address))
