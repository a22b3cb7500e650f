# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnets that projects give their networks: one of each address family at most, since a network here has no more."""

from __future__ import annotations

import dataclasses
import time
import typing as t

import netaddr
import sqlalchemy as sa

from ..._addressing import texts
from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules import pools
from ..db.tables import fixed_ip, network, vif
from ..db.tables_networking import resource_tag, router_interface, subnet
from ..identity.quotas import check_quota
from ..queries.network_records import Network, subnet_id
from . import networks
from .networks import check_handed_out_once
from .pool_claims import pool_lock
from .subnet_pools import draw, pool_of
from .tenant_networks import Subnet, TenantError, check_no_port

OTHER = {4: 6, 6: 4}  # versions of IP
MAX_ROUTES = 20  # Neutron's max_subnet_host_routes
MAX_SERVERS = 5  # Neutron's max_dns_nameservers


class SubnetRequest(t.NamedTuple):
    """A subnet as it shall be, its addresses checked."""

    cidr: netaddr.IPNetwork
    gateway: str | None
    pools: list[tuple[str, str]]
    dns: list[str]
    routes: list[dict[str, str]]
    enable_dhcp: bool
    name: str
    description: str


def create_subnet(connection: sa.Connection, row: Network, given: JsonMapping) -> str:
    """Give the network `row` a subnet; returns its UUID.

    `given` has "version", "cidr" and, where they were said, "gateway" (None: none), "pools", "dns", "routes",
    "enable_dhcp", "name", "description". With "subnetpool_id", "cidr" or "prefixlen" (or neither) say what of that
    subnet pool it gets. Raises NovaliteError for what cannot be, NotFoundError for a pool that the project does not
    see, ConflictError for a range that another network has.
    """
    pool_lock(connection)
    version = given["version"]
    if row.range_of(version) is not None:
        raise NovaliteError(
            f"network {row.uuid} has a subnet of IPv{version} already: it carries one of each kind; make a network for "
            "the other range, and give servers a port on each"
        )
    pool_id = given.get("subnetpool_id")
    if pool_id is not None:
        given = {**given, "cidr": draw(connection, pool_of(connection, row.owner, pool_id), row.owner, given)}
    wanted = _checked(given)
    column = "cidr" if version == 4 else "cidr_v6"
    after = {**dataclasses.asdict(row), column: str(wanted.cidr)}
    networks.check_others(connection, after, row.id, row.name)
    now = int(time.time())
    connection.execute(
        sa.insert(subnet).values(
            network_id=row.id,
            version=version,
            ra_mode="slaac" if version == 6 else None,
            address_mode="slaac" if version == 6 else None,
            created_at=now,
            updated_at=now,
            subnetpool_id=pool_id,
            **_kept(wanted),
        )
    )
    values = {column: str(wanted.cidr), **_told(row, version, wanted)}
    connection.execute(sa.update(network).where(network.c.id == row.id).values(updated_at=now, **values))
    if version == 4:
        networks.fill_pool(connection, row.id, _pool(wanted))
        check_handed_out_once(connection)
    if row.owner:
        count = sa.select(sa.func.count()).select_from(subnet).join(network).where(network.c.owner == row.owner)
        check_quota(connection, row.owner, "subnets", connection.execute(count).scalar_one())
    return subnet_id(row.uuid, version)


def update_subnet(connection: sa.Connection, row: Network, before: Subnet, given: JsonMapping) -> None:
    """Change what is `given` of the subnet `before` (a row of the table) of the network `row`.

    Raises NovaliteError, and TenantError for an address that is in use and would go.
    """
    pool_lock(connection)
    version = before.version
    cidr = row.range_of(version)
    known = {
        "version": version,
        "cidr": cidr,
        "gateway": before.gateway,
        "pools": before.pools,
        "dns": texts.of_version(row.dns, version),
        "routes": row.routes if version == 4 else [],
        "enable_dhcp": before.enable_dhcp,
        "name": before.name,
        "description": before.description,
    }
    wanted = _checked({**known, **given})
    if version == 4 and (wanted.gateway, wanted.pools) != (before.gateway, list(map(tuple, before.pools))):
        if wanted.gateway != before.gateway and _routed(connection, row.id, version):
            raise TenantError(
                "GatewayIpInUse", f"Current gateway ip {before.gateway} already in use by a router. Unable to update."
            )
        networks.reserve(connection, row.id, row.name, _pool(wanted))
    now = int(time.time())
    mine = sa.and_(subnet.c.network_id == row.id, subnet.c.version == version)
    connection.execute(sa.update(subnet).where(mine).values(updated_at=now, **_kept(wanted)))
    connection.execute(sa.update(network).where(network.c.id == row.id).values(**_told(row, version, wanted)))


def delete_subnet(connection: sa.Connection, row: Network, version: int) -> None:
    """Take its subnet of this family from the network `row`. Raises TenantError while an address of it is in use.

    As in Neutron, addresses that follow from the subnet do not hold it where nobody has them: those of IPv6 that ports
    without a server would have.
    """
    pool_lock(connection)
    number = subnet_id(row.uuid, version)
    if version == 6:
        routed = sa.select(router_interface.c.vif_id).where(router_interface.c.vif_id == vif.c.id).exists()
        idle = sa.and_(vif.c.network_id == row.id, vif.c.instance_uuid.is_(None), sa.not_(routed))
        connection.execute(sa.update(vif).where(idle).values(ipv6=None))
    check_no_port(connection, row, number, version)
    mine = sa.and_(subnet.c.network_id == row.id, subnet.c.version == version)
    connection.execute(sa.delete(subnet).where(mine))
    connection.execute(sa.delete(resource_tag).where(resource_tag.c.resource_id == number))
    values: JsonObject = {"dns": texts.of_version(row.dns, OTHER[version])}
    if version == 4:
        connection.execute(sa.delete(fixed_ip).where(fixed_ip.c.network_id == row.id))
        values |= {"cidr": None, "routes": []}
    else:
        values["cidr_v6"] = None
    connection.execute(sa.update(network).where(network.c.id == row.id).values(**values))


def _checked(given: JsonMapping) -> SubnetRequest:
    version = given["version"]
    cidr = pools.parse_cidr("subnet", given["cidr"]) if version == 4 else pools.parse_cidr_v6("subnet", given["cidr"])
    gateway = str(cidr[1]) if "gateway" not in given else given["gateway"]
    if gateway is not None:
        gateway = str(_address("gateway_ip", gateway, cidr))
    ranges = _ranges(cidr, gateway, given.get("pools"))
    dns = pools.parse_servers("subnet: dns_nameservers", given.get("dns") or [])
    if len(dns) > MAX_SERVERS or len(set(dns)) != len(dns):
        raise NovaliteError(f"subnet: dns_nameservers: give at most {MAX_SERVERS}, each once")
    if dns != texts.of_version(dns, version):
        raise NovaliteError(f"subnet: dns_nameservers of a subnet of IPv{version} are addresses of that family")
    routes = _routes(version, given.get("routes") or [])
    enable = given.get("enable_dhcp", True)
    if version == 6 and not enable:
        raise NovaliteError("subnet: guests make their IPv6 addresses of what is advertised: enable_dhcp stays true")
    return SubnetRequest(
        cidr, gateway, ranges, dns, routes, enable, given.get("name", ""), given.get("description", "")
    )


def _address(field: str, text: str, cidr: netaddr.IPNetwork) -> netaddr.IPAddress:
    try:
        found = texts.parse_address(text)
    except ValueError:
        raise NovaliteError(f"subnet: {field} {text[:45]!r} is no IP address") from None
    if found not in cidr or int(found) in (cidr.first, cidr.last if cidr.version == 4 else cidr.first):
        raise NovaliteError(f"subnet: {field} {found} is no host's address in {cidr}")
    return found


def _ranges(
    cidr: netaddr.IPNetwork, gateway: str | None, listed: t.Sequence[t.Sequence[str]] | None
) -> list[tuple[str, str]]:
    """The allocation pools: those that are listed, or all but the gateway."""
    if cidr.version == 6:
        if listed is not None and list(map(tuple, listed)) != [_whole_v6(cidr)]:
            raise NovaliteError("subnet: allocation_pools of IPv6 are the whole range: guests make their addresses")
        return [_whole_v6(cidr)]
    if listed is None:
        hosts = netaddr.IPSet(netaddr.IPRange(cidr[1], cidr[-2])) - netaddr.IPSet([gateway] if gateway else [])
        return [(str(part[0]), str(part[-1])) for part in hosts.iter_ipranges()]
    bounds = sorted(tuple(_address("allocation_pools", end, cidr) for end in pair) for pair in listed)
    for number, (low, high) in enumerate(bounds):
        if low > high or (number and low <= bounds[number - 1][1]):
            raise NovaliteError(f"subnet: the allocation pool {low}-{high} overlaps, or ends too early")
        if gateway is not None and low <= netaddr.IPAddress(gateway) <= high:
            raise TenantError(
                "GatewayConflictWithAllocationPools",
                f"Gateway ip {gateway} conflicts with allocation pool {low}-{high}.",
            )
    if not bounds:
        raise NovaliteError("subnet: allocation_pools is empty: leave it out for all addresses")
    return [(str(low), str(high)) for low, high in bounds]


def _whole_v6(cidr: netaddr.IPNetwork) -> tuple[str, str]:
    return str(cidr[1]), str(cidr[-1])


def _routes(version: int, listed: t.Sequence[t.Mapping[str, str]]) -> list[dict[str, str]]:
    if listed and version == 6:
        raise NovaliteError("subnet: host_routes are told by DHCP, which IPv6 does without here")
    if len(listed) > MAX_ROUTES:
        raise NovaliteError(f"subnet: {len(listed)} host_routes: {MAX_ROUTES} is the limit")
    found = []
    for route in listed:
        try:
            found.append(
                {
                    "destination": str(texts.parse_network(route["destination"], version=4)),
                    "nexthop": str(texts.parse_address(route["nexthop"], 4)),
                }
            )
        except ValueError as error:
            raise NovaliteError(f"subnet: host_routes: {str(error)[:100]}") from None
    return found


def _kept(wanted: SubnetRequest) -> JsonObject:
    return {key: getattr(wanted, key) for key in ("name", "description", "gateway", "pools", "enable_dhcp")}


def _told(row: Network, version: int, wanted: SubnetRequest) -> JsonObject:
    """Return the subnet's part of the hosts' configuration, in columns of the network."""
    others = texts.of_version(row.dns, OTHER[version])
    values: JsonObject = {"dns": [*wanted.dns, *others] if version == 4 else [*others, *wanted.dns]}
    if version == 4:
        values |= {"dhcp": wanted.enable_dhcp, "routes": wanted.routes}
    return values


def _pool(wanted: SubnetRequest) -> JsonObject:
    """The record that a pool is filled by: what is in no allocation pool is reserved."""
    hosts = netaddr.IPSet(netaddr.IPRange(wanted.cidr[1], wanted.cidr[-2]))
    kept = hosts - netaddr.IPSet(netaddr.IPRange(*ends) for ends in wanted.pools)
    return {"cidr": str(wanted.cidr), "gateway": wanted.gateway, "reserved": list(map(str, kept.iter_ipranges()))}


def _routed(connection: sa.Connection, network_id: int, version: int) -> bool:
    c = router_interface.c
    routed = sa.select(c.vif_id).where(c.network_id == network_id, c.version == version)
    return connection.execute(routed).first() is not None
