# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnets of networks, and the one that an address is of. Reads only.

A network has up to MOST_RANGES of IPv4 and one of IPv6. Addresses tell theirs: ranges of a network do not overlap. The
first of each family is in columns of the network itself; an operator's network has no other ones.
"""

from __future__ import annotations

import dataclasses
import typing as t
import uuid

import netaddr
import sqlalchemy as sa

from ...._addressing import texts
from ...._addressing.pools import to_int
from ...db.tables import network
from ...db.tables_networking import subnet, subnet_pool

if t.TYPE_CHECKING:
    from .network_records import Network

SLAAC = "slaac"


@dataclasses.dataclass(frozen=True)
class Subnet:
    """A subnet of a network. Times are in seconds since the epoch."""

    id: str
    network_id: int
    network_uuid: str
    version: int  # of IP
    position: int  # 0: the first of its family
    cidr: str
    name: str
    description: str
    gateway: str | None
    pools: t.Sequence[t.Sequence[str]]  # first and last address of each
    enable_dhcp: bool
    dns: list[str]
    routes: list[dict[str, str]]
    ra_mode: str | None
    address_mode: str | None
    subnetpool_id: str | None = None
    address_scope_id: str | None = None  # of the pool

    def __contains__(self, address: str) -> bool:
        return netaddr.IPAddress(address) in netaddr.IPNetwork(self.cidr)


def derived_id(network_uuid: str, version: int) -> str:
    """The UUID of a network's first subnet of an address family (4 or 6), unless another one has taken its place."""
    return str(uuid.uuid5(uuid.UUID(network_uuid), f"IPv{version}"))


def subnets_of(connection: sa.Connection, rows: t.Iterable[Network]) -> dict[int, list[Subnet]]:
    """Network -> its subnets: of IPv4, the first one first, then of IPv6."""
    networks = {row.id: row for row in rows}
    query = (
        sa.select(subnet, subnet_pool.c.address_scope_id)
        .outerjoin(subnet_pool)
        .where(subnet.c.network_id.in_(sorted(networks)))
        .order_by(subnet.c.network_id, subnet.c.version, subnet.c.position)
    )
    subnets_by_network: dict[int, list[Subnet]] = {number: [] for number in networks}
    for record in connection.execute(query).mappings():
        row = networks[record["network_id"]]
        kept = {key: record[key] for key in record if key not in ("created_at", "updated_at")}
        if record["position"] == 0:
            of_network = {"cidr": row.range_of(record["version"]), "dns": texts.of_version(row.dns, record["version"])}
            kept |= {**of_network, "routes": row.routes if record["version"] == 4 else []}
        subnets_by_network[row.id].append(Subnet(network_uuid=row.uuid, **kept))
    for row in networks.values():
        if not subnets_by_network[row.id]:
            subnets_by_network[row.id] = list(_of_operator(row))
    return subnets_by_network


def subnets_of_network(connection: sa.Connection, row: Network) -> list[Subnet]:
    """The subnets of this network."""
    return subnets_of(connection, [row])[row.id]


def _of_operator(row: Network) -> t.Iterator[Subnet]:
    """The subnets that a network without records of them has by its own row."""
    if row.cidr is not None:
        yield Subnet(
            **_own(row, 4, row.cidr, row.name),
            gateway=row.gateway,
            pools=row.ranges,
            enable_dhcp=bool(row.dhcp),
            routes=row.routes,
            ra_mode=None,
            address_mode=None,
        )
    if row.cidr_v6 is not None:
        whole = netaddr.IPNetwork(row.cidr_v6)
        yield Subnet(
            **_own(row, 6, row.cidr_v6, f"{row.name}-ipv6"),
            gateway=row.gateway_v6,
            pools=[(str(whole[1]), str(whole[-1]))],
            enable_dhcp=True,
            routes=[],
            ra_mode=SLAAC,
            address_mode=SLAAC,
        )


def _own(row: Network, version: int, cidr: str, name: str) -> dict[str, t.Any]:
    return {
        "id": derived_id(row.uuid, version),
        "network_id": row.id,
        "network_uuid": row.uuid,
        "version": version,
        "position": 0,
        "cidr": cidr,
        "name": name,
        "description": "",
        "dns": texts.of_version(row.dns, version),
    }


@dataclasses.dataclass(frozen=True)
class SubnetIds:
    """UUIDs of subnets of some networks, for those who have an address and want to know which one it is of."""

    first: t.Mapping[tuple[str, int], str]  # (UUID of the network, IP version) -> the subnet's
    further: t.Mapping[str, list[tuple[int, int, str]]]  # UUID of the network -> first and last address, UUID

    def of(self, network_uuid: str, address: str | None) -> str:
        """The subnet of the network that this address of a port there is of; the first of IPv4 without an address."""
        version = 6 if address is not None and ":" in address else 4
        if address is not None and version == 4 and network_uuid in self.further:
            number = to_int(address)
            for low, high, subnet_id in self.further[network_uuid]:
                if low <= number <= high:
                    return subnet_id
        return self.first.get((network_uuid, version)) or derived_id(network_uuid, version)


def subnet_ids(connection: sa.Connection, network_uuids: t.Iterable[str]) -> SubnetIds:
    """The UUIDs of the subnets of these networks."""
    query = (
        sa.select(network.c.uuid, *(subnet.c[name] for name in ("id", "version", "cidr")))
        .join(subnet, subnet.c.network_id == network.c.id)
        .where(network.c.uuid.in_(sorted(set(network_uuids))))
    )
    first: dict[tuple[str, int], str] = {}
    further: dict[str, list[tuple[int, int, str]]] = {}
    for row in connection.execute(query):
        if row.cidr is None:
            first[row.uuid, row.version] = row.id
        else:
            around = netaddr.IPNetwork(row.cidr)
            further.setdefault(row.uuid, []).append((around.first, around.last, row.id))
    return SubnetIds(first, further)


def range_of(connection: sa.Connection, subnet_id: str) -> str | None:
    """The range of an IPv4 subnet of a network that has several; None of the only one, and for one that is gone."""
    other = subnet.alias()
    several = sa.select(other.c.id).where(
        other.c.network_id == subnet.c.network_id, other.c.version == 4, other.c.position > 0
    )
    query = (
        sa.select(sa.func.coalesce(subnet.c.cidr, network.c.cidr))
        .join(network, network.c.id == subnet.c.network_id)
        .where(subnet.c.id == subnet_id, subnet.c.version == 4, several.exists())
    )
    return connection.execute(query).scalar()
