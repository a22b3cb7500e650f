# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks on compute hosts, and each host's members and addresses there. Reads only, in few queries."""

from __future__ import annotations

import dataclasses
import typing as t

import netaddr
import sqlalchemy as sa

from ...._addressing import texts
from ...._addressing.pools import to_text
from ...._json import JsonObject
from ...._model.instance import Network, Route, name_by_address
from ...._model.instance import Range as RangeOnHost
from ...db.tables import NAMED, dns_name, fixed_ip, floating_ip, floating_pool, instance, network, vif
from ...db.tables_addresses import HELD, LED_TO, host_owner
from ...db.tables_migrations import UNDER_WAY, migration
from ...db.tables_networking import subnet

FURTHER_RANGES = (
    sa.select(
        *(subnet.c[name] for name in ("network_id", "position", "cidr", "enable_dhcp", "dns", "routes")),
        network.c.dns.label("of_network"),
    )
    .join(network, network.c.id == subnet.c.network_id)
    .where(subnet.c.position > 0, subnet.c.network_id.in_(sa.bindparam("networks", expanding=True)))
    .order_by(subnet.c.network_id, subnet.c.position)
)
Floating = dict[tuple[int, str], list[tuple[str, dict[str, str]]]]
Guests = dict[int, dict[str, list["tuple[str, JsonObject]"]]]
OF_RANGE = ("cidr", "gateway", "dhcp", "dns", "routes")  # columns of a network that are its first range's
Members = dict[int, dict[str, set[str]]]  # id of a network -> host -> UUIDs of its instances there


def members(
    connection: sa.Connection, condition: sa.ColumnElement[bool], hosts: t.Iterable[str] | None = None
) -> Members:
    """The instances on each host, of all or of these `hosts`, of the networks that meet `condition`. One that moves is
    on both: of a network that it comes to nothing may be taken away meanwhile."""
    placed = sa.select(vif.c.network_id, instance.c.host, instance.c.uuid).select_from(_vifs()).where(condition)
    both = [_of(placed.where(instance.c.host.is_not(None)), instance.c.host, hosts)]
    moving = _vifs().join(migration, migration.c.instance_uuid == instance.c.uuid)
    for end in (migration.c.source_host, migration.c.dest_host):
        coming = sa.select(vif.c.network_id, end, instance.c.uuid).select_from(moving)
        under_way = sa.and_(migration.c.status.in_(UNDER_WAY), end.is_not(None))
        both.append(_of(coming.where(condition, under_way), end, hosts))
    members_by_network: Members = {}
    for network_id, host, uuid in connection.execute(sa.union_all(*both)):
        members_by_network.setdefault(network_id, {}).setdefault(host, set()).add(uuid)
    return members_by_network


def _vifs() -> sa.Join:
    """The interfaces of instances that are there, with their networks."""
    there = sa.and_(instance.c.uuid == vif.c.instance_uuid, instance.c.deleted == 0)
    return vif.join(instance, there).join(network, network.c.id == vif.c.network_id)


def _of(query: sa.Select[t.Any], column: sa.ColumnElement[t.Any], hosts: t.Iterable[str] | None) -> sa.Select[t.Any]:
    return query if hosts is None else query.where(column.in_(sorted(hosts)))


@dataclasses.dataclass(frozen=True)
class Ipv4Range:
    """An IPv4 range of a network, as far as hosts are told of it."""

    position: int  # in the table subnet
    cidr: str
    dhcp: bool
    dns: list[str]
    routes: list[Route]

    def __contains__(self, address: str) -> bool:
        return netaddr.IPAddress(address) in netaddr.IPNetwork(self.cidr)


Further = t.Mapping[int, list[Ipv4Range]]  # network -> its further ranges; those that have none are left out
OwnAddresses = dict[tuple[int, str], dict[int, str]]  # (network, host) -> position -> the host's own address


def further_ranges(connection: sa.Connection, ids: t.Iterable[int]) -> Further:
    """The further ranges of these networks."""
    ranges_by_network: dict[int, list[Ipv4Range]] = {}
    for row in connection.execute(FURTHER_RANGES, {"networks": sorted(ids)}):
        servers = [*row.dns, *texts.of_version(row.of_network, 6)]
        ranges_by_network.setdefault(row.network_id, []).append(
            Ipv4Range(row.position, row.cidr, bool(row.enable_dhcp), servers, row.routes)
        )
    return ranges_by_network


def addresses(
    connection: sa.Connection, ids: t.Collection[int], hosts: t.Collection[str], further: Further
) -> OwnAddresses:
    """The own addresses of these hosts in the ranges of these networks. Without any of them nothing is asked."""
    if not ids or not hosts:
        return {}
    positions = {0, *(each.position for number in ids for each in further.get(number, ()))}
    owners = {host_owner(host, position): (host, position) for host in hosts for position in positions}
    rows = connection.execute(
        sa.select(fixed_ip.c.network_id, fixed_ip.c.owner, fixed_ip.c.ip).where(
            fixed_ip.c.network_id.in_(sorted(ids)), fixed_ip.c.owner.in_(sorted(owners))
        )
    )
    own_addresses: OwnAddresses = {}
    for row in rows:
        host, position = owners[row.owner]
        own_addresses.setdefault((row.network_id, host), {})[position] = to_text(row.ip)
    return own_addresses


def networks_on(
    connection: sa.Connection, networks_of_hosts: t.Collection[tuple[int, str]]
) -> dict[tuple[int, str], OnHost]:
    """Return the networks of these (network, host) pairs, each with the host's own address there."""
    ids = {key for key, _host in networks_of_hosts}
    query = sa.select(network).where(network.c.id.in_(sorted(ids)))
    rows = {row["id"]: t.cast(Network, dict(row)) for row in connection.execute(query).mappings()}
    further = further_ranges(connection, ids)
    own = addresses(connection, ids, {host for _key, host in networks_of_hosts}, further)
    return {
        (key, host): on_host(rows[key], further.get(key, ()), own.get((key, host), {}), None)
        for key, host in networks_of_hosts
        if key in rows
    }


class OnHost(t.NamedTuple):
    """A network as a host, or one of its guests there, is told of it; the host's address in the same range."""

    network: Network
    address: str | None


def on_host(of_network: Network, further: t.Sequence[Ipv4Range], own: t.Mapping[int, str], guest: str | None) -> OnHost:
    """The network, by its own row, for a host with the addresses `own` (by position) in its ranges: as it is for a
    `guest` at this address; or else as the first range is in which the host has one."""
    if not further:
        return OnHost(of_network, own.get(0))
    first = Ipv4Range(0, of_network["cidr"] or "", of_network["dhcp"], of_network["dns"], of_network["routes"])
    ranges = [first, *further]
    own_first = next((each for each in ranges if each.position in own), first)
    at = own_first if guest is None else next((each for each in ranges if guest in each), first)
    ranges_here: list[RangeOnHost] = [
        {
            "cidr": each.cidr,
            "gateway": None if each.position else of_network["gateway"],
            "dhcp": each.dhcp,
            "dns": each.dns,
            "routes": each.routes,
            "address": own.get(each.position),
        }
        for each in ranges
    ]
    mine = {key: value for key, value in ranges_here[ranges.index(at)].items() if key != "address"}
    return OnHost(t.cast(Network, {**of_network, **mine, "ranges": ranges_here}), own.get(at.position))


def floating(connection: sa.Connection, hosts: t.Iterable[str]) -> Floating:
    """(network, host) -> the floating IPs of its instances there, each with the UUID of its instance."""
    rows = connection.execute(
        sa.select(
            vif.c.network_id,
            instance.c.host,
            instance.c.uuid,
            LED_TO.label("ip"),
            floating_ip.c.address,
            floating_pool.c.interface,
        )
        .select_from(floating_ip)
        .join(floating_pool, floating_pool.c.name == floating_ip.c.pool)
        .join(vif, vif.c.id == floating_ip.c.vif_id)
        .join(instance, instance.c.uuid == vif.c.instance_uuid)
        .join(fixed_ip, HELD)
        .where(instance.c.deleted == 0, instance.c.host.in_(sorted(hosts)))
        .order_by(floating_ip.c.address)
    )
    floating_ips: Floating = {}
    for row in rows:
        entry = {"fixed": to_text(row.ip), "floating": to_text(row.address), "interface": row.interface}
        floating_ips.setdefault((row.network_id, row.host), []).append((row.uuid, entry))
    return floating_ips


def is_wide(connection: sa.Connection, network_id: int, most: int) -> bool:
    """Tell whether the network has guests on more than `most` hosts; reads no further than to these."""
    hosts = sa.select(instance.c.host).join(vif, vif.c.instance_uuid == instance.c.uuid)
    there = (vif.c.network_id == network_id, instance.c.deleted == 0, instance.c.host.is_not(None))
    return len(connection.execute(hosts.where(*there).distinct().limit(most + 1)).all()) > most


def guests(connection: sa.Connection, ids: t.Iterable[int]) -> Guests:
    """Network -> host -> (UUID, name as the module `dhcp` takes it) of each instance that has an address there."""
    rows = connection.execute(
        sa.select(vif.c.network_id, vif.c.ipv6, instance.c.host, instance.c.uuid, dns_name.c.name, fixed_ip.c.ip)
        .join(instance, instance.c.uuid == vif.c.instance_uuid)
        .outerjoin(dns_name, NAMED)
        .join(fixed_ip, HELD)
        .where(instance.c.deleted == 0, instance.c.host.is_not(None), vif.c.network_id.in_(sorted(ids)))
        .order_by(fixed_ip.c.ip)
    )
    guests_by_network: Guests = {}
    for row in rows:
        ip = to_text(row.ip)
        name = named(row.name or name_by_address(ip), ip, row.ipv6)
        guests_by_network.setdefault(row.network_id, {}).setdefault(row.host, []).append((row.uuid, name))
    return guests_by_network


def named(hostname: str, ip: str | None, ipv6: str | None) -> JsonObject:
    """A guest as the module `dhcp` takes it for its name alone."""
    return {"hostname": hostname, "addresses": [address for address in (ip, ipv6) if address]}
