# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnets that projects give their networks: some of IPv4, and one of IPv6."""

from __future__ import annotations

import dataclasses
import typing as t
import uuid

import netaddr
import sqlalchemy as sa

from ..._addressing import places, texts
from ..._addressing.places import Use
from ..._errors import NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules import pools
from ..db import clock
from ..db.tables import fixed_ip, instance, network, vif
from ..db.tables_addresses import OF_HOST, OF_VIF
from ..db.tables_networking import MOST_RANGES, resource_tag, router_interface, subnet
from ..identity.quotas import check_quota
from ..queries import counts
from ..queries.network.network_records import Network
from ..queries.network.subnet_records import SLAAC, Subnet, derived_id, subnets_of_network
from . import networks
from .host_places import refuse_ranges
from .networks import check_handed_out_once
from .pool_claims import within
from .subnet_pools import draw, pool_of
from .subnet_use import check_unused, in_use
from .tenant_networks import TenantError

OTHER = {4: 6, 6: 4}  # versions of IP
MAX_ROUTES = 20  # Neutron's max_subnet_host_routes
MAX_SERVERS = 5  # Neutron's max_dns_nameservers
_FIELDS = ("version", "cidr", "gateway", "pools", "dns", "routes", "enable_dhcp", "name", "description")


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


def create_subnet(connection: sa.Connection, row: Network, attributes: JsonMapping, naming: bool = True) -> str:
    """Give the network `row` a subnet; returns its UUID.

    `attributes` have "version", "cidr" and, where they were said, "gateway" (None: none), "pools", "dns", "routes",
    "enable_dhcp", "name", "description". With "subnetpool_id", "cidr" or "prefixlen" (or neither) say what of that
    subnet pool it gets. Raises NovaliteError for what cannot be, NotFoundError for a pool that the project does not
    see, ConflictError for a range that another network has, or in which a host lives (`naming` which).
    """
    row = networks.locked(connection, row)
    version = attributes["version"]
    there = [each for each in subnets_of_network(connection, row) if each.version == version]
    _check_room(row, version, there)
    pool_id = attributes.get("subnetpool_id")
    if pool_id is not None:
        attributes = {
            **attributes,
            "cidr": draw(connection, pool_of(connection, row.owner, pool_id), row.owner, attributes),
        }
    request = _checked(attributes)
    _check_overlap(row, request, there)
    column = "cidr" if version == 4 else "cidr_v6"
    after = {**dataclasses.asdict(row), column: str(request.cidr)}
    networks.check_others(connection, after, row.id, row.name, _uses(after, request), naming)
    now, positions = clock.seconds(connection), {each.position for each in there}
    position = next(number for number in range(MOST_RANGES) if number not in positions)
    first = position == 0
    number = derived_id(row.uuid, version) if first else str(uuid.uuid4())
    connection.execute(
        sa.insert(subnet).values(
            id=number,
            network_id=row.id,
            version=version,
            position=position,
            ra_mode=SLAAC if version == 6 else None,
            address_mode=SLAAC if version == 6 else None,
            created_at=now,
            updated_at=now,
            subnetpool_id=pool_id,
            **_kept(request),
            **({} if first else {"cidr": str(request.cidr), "dns": request.dns, "routes": request.routes}),
        )
    )
    values = {column: str(request.cidr), **_network_columns(row, version, request)} if first else {}
    connection.execute(sa.update(network).where(network.c.id == row.id).values(updated_at=now, **values))
    if version == 4:
        networks.fill_pool(connection, row.id, _pool(request))
        check_handed_out_once(connection)
    if row.owner:
        check_quota(connection, row.owner, "subnets", counts.subnets(connection, row.owner))
    return number


def update_subnet(
    connection: sa.Connection, row: Network, before: Subnet, changes: JsonMapping, naming: bool = True
) -> None:
    """Make the `changes` of the subnet `before` of the network `row`.

    Raises NovaliteError, TenantError for an address that is in use and would go, and ConflictError for one that a host
    lives by (`naming` which).
    """
    row = networks.locked(connection, row)
    version = before.version
    known = {field: getattr(before, field) for field in _FIELDS}
    request = _checked({**known, **changes})
    if version == 4 and (request.gateway, request.pools) != (before.gateway, list(map(tuple, before.pools))):
        if request.gateway != before.gateway and _is_routed(connection, before):
            raise TenantError(
                "GatewayIpInUse", f"Current gateway ip {before.gateway} already in use by a router. Unable to update."
            )
        networks.reserve(connection, row.id, row.name, _pool(request))
        after = {**dataclasses.asdict(row), "cidr": before.cidr, "cidr_v6": None}
        refuse_ranges(connection, row.name, _uses(after, request), naming)
    values = {"updated_at": clock.seconds(connection), **_kept(request)}
    if before.position == 0:
        connection.execute(
            sa.update(network).where(network.c.id == row.id).values(**_network_columns(row, version, request))
        )
    else:
        values |= {"dns": request.dns, "routes": request.routes}
    connection.execute(sa.update(subnet).where(subnet.c.id == before.id).values(**values))


class SubnetDeletion(t.NamedTuple):
    """Hosts that are to be told of a subnet that went; interfaces of servers, by id, whose hosts are to judge anew what
    they may send and get."""

    hosts: list[str]
    interfaces: list[str]


def delete_subnet(connection: sa.Connection, row: Network, before: Subnet) -> SubnetDeletion:
    """Take the subnet `before` from the network `row`; returns the hosts that have an address of it. Raises TenantError
    while an interface has one.

    As in Neutron, addresses that follow from the subnet do not hold it where nobody has them: those of IPv6 that ports
    without a server would have. The next one of IPv4 takes the place of the first.
    """
    row = networks.locked(connection, row)
    version = before.version
    others = [each for each in subnets_of_network(connection, row) if each.version == version and each.id != before.id]
    if version == 6:
        routed = sa.select(router_interface.c.vif_id).where(router_interface.c.vif_id == vif.c.id).exists()
        idle = sa.and_(vif.c.network_id == row.id, vif.c.instance_uuid.is_(None), sa.not_(routed))
        connection.execute(sa.update(vif).where(idle).values(ipv6=None))
    check_unused(connection, before, last=not others)
    connection.execute(sa.delete(subnet).where(subnet.c.id == before.id))
    connection.execute(sa.delete(resource_tag).where(resource_tag.c.resource_id == before.id))
    hosts = _drop_pool(connection, before) if version == 4 else []
    if before.position:
        return SubnetDeletion(hosts, [])
    values: JsonObject = {"dns": texts.of_version(row.dns, OTHER[version])}
    if others:
        values = _promoted(connection, row, others[0])
    elif version == 4:
        values |= {"cidr": None, "routes": []}
    else:
        values["cidr_v6"] = None
    connection.execute(sa.update(network).where(network.c.id == row.id).values(**values))
    return SubnetDeletion(hosts, _of_servers(connection, row) if hosts and others else [])


def _of_servers(connection: sa.Connection, row: Network) -> list[str]:
    """The interfaces on the network that servers on hosts have."""
    query = sa.select(vif.c.id).join(instance, instance.c.uuid == vif.c.instance_uuid).order_by(vif.c.id)
    there = sa.and_(vif.c.network_id == row.id, instance.c.deleted == 0, instance.c.host.is_not(None))
    return list(connection.execute(query.where(there)).scalars())


def _check_room(row: Network, version: int, there: t.Sequence[Subnet]) -> None:
    if there and version == 6:
        raise NovaliteError(
            f"network {row.uuid} has a subnet of IPv6 already, and guests make their one address of it: make a network "
            "for the other range, and give servers a port on each"
        )
    if len(there) >= MOST_RANGES:
        raise NovaliteError(
            f"network {row.uuid} has {len(there)} subnets of IPv4, which is the limit: make a network for more"
        )


def _check_overlap(row: Network, request: SubnetRequest, there: t.Iterable[Subnet]) -> None:
    for other in there:
        if pools.overlap(str(request.cidr), other.cidr):
            raise NovaliteError(
                f"Invalid input for operation: Requested subnet with cidr: {request.cidr} for network: {row.uuid} "
                f"overlaps with another subnet ({other.cidr} of {other.id})."
            )


def _drop_pool(connection: sa.Connection, before: Subnet) -> list[str]:
    """Delete the subnet's addresses; returns the hosts that have one. Raises TenantError for one that an interface has
    got meanwhile: the write decides."""
    mine = sa.and_(fixed_ip.c.network_id == before.network_id, within(before.cidr))
    of_hosts = sa.select(fixed_ip.c.owner).where(mine, fixed_ip.c.owner.startswith(OF_HOST)).order_by(fixed_ip.c.owner)
    hosts = [owner[len(OF_HOST) :].partition("/")[0] for owner in connection.execute(of_hosts).scalars()]
    of_vif = fixed_ip.c.owner.startswith(OF_VIF)
    connection.execute(sa.delete(fixed_ip).where(mine, sa.or_(fixed_ip.c.owner.is_(None), sa.not_(of_vif))))
    if connection.execute(sa.select(fixed_ip.c.ip).where(mine).limit(1)).first() is not None:
        raise in_use(before)
    return hosts


def _promoted(connection: sa.Connection, row: Network, following: Subnet) -> JsonObject:
    """Make the subnet the first one of its network; returns that one's columns. The addresses that hosts have in it are
    known as those in the first one."""
    end = f"/{following.position}"
    mine = sa.and_(fixed_ip.c.network_id == row.id, within(following.cidr))
    for column in (fixed_ip.c.owner, fixed_ip.c.last_owner):
        of_host = sa.and_(column.startswith(OF_HOST), column.endswith(end))
        name = sa.func.substr(column, 1, sa.func.length(column) - len(end))
        connection.execute(sa.update(fixed_ip).where(mine, of_host).values({column: name}))
    first = {"position": 0, "cidr": None, "dns": None, "routes": None}
    connection.execute(sa.update(subnet).where(subnet.c.id == following.id).values(**first))
    return {
        "cidr": following.cidr,
        "dns": [*following.dns, *texts.of_version(row.dns, 6)],
        "dhcp": following.enable_dhcp,
        "routes": following.routes,
    }


def _checked(attributes: JsonMapping) -> SubnetRequest:
    version = attributes["version"]
    around = texts.without_host_bits(attributes["cidr"])  # Neutron stores the range around 10.9.9.1/24, too
    cidr = pools.parse_cidr("subnet", around) if version == 4 else pools.parse_cidr_v6("subnet", around)
    gateway = str(cidr[1]) if "gateway" not in attributes else attributes["gateway"]
    if gateway is not None:
        gateway = str(host_address("gateway_ip", gateway, cidr))
    ranges = allocation_ranges(cidr, gateway, attributes.get("pools"))
    dns = pools.parse_servers("subnet: dns_nameservers", attributes.get("dns") or [])
    if len(dns) > MAX_SERVERS or len(set(dns)) != len(dns):
        raise NovaliteError(f"subnet: dns_nameservers: give at most {MAX_SERVERS}, each once")
    if dns != texts.of_version(dns, version):
        raise NovaliteError(f"subnet: dns_nameservers of a subnet of IPv{version} are addresses of that family")
    routes = _routes(version, attributes.get("routes") or [])
    enable = attributes.get("enable_dhcp", True)
    if version == 6 and not enable:
        raise NovaliteError("subnet: guests make their IPv6 addresses of what is advertised: enable_dhcp stays true")
    return SubnetRequest(
        cidr, gateway, ranges, dns, routes, enable, attributes.get("name", ""), attributes.get("description", "")
    )


def host_address(field: str, text: str, cidr: netaddr.IPNetwork) -> netaddr.IPAddress:
    try:
        address = texts.parse_address(text)
    except ValueError:
        raise NovaliteError(f"subnet: {field} {text[:45]!r} is not an IP address") from None
    if address not in cidr or int(address) in (cidr.first, cidr.last if cidr.version == 4 else cidr.first):
        raise NovaliteError(f"subnet: {field} {address} is not a host's address in {cidr}")
    return address


def allocation_ranges(
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
    bounds = sorted(tuple(host_address("allocation_pools", end, cidr) for end in pair) for pair in listed)
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
    routes = []
    for route in listed:
        try:
            routes.append(
                {
                    "destination": str(texts.parse_network(route["destination"], version=4)),
                    "nexthop": str(texts.parse_address(route["nexthop"], 4)),
                }
            )
        except ValueError as error:
            raise NovaliteError(f"subnet: host_routes: {str(error)[:100]}") from None
    return routes


def _kept(request: SubnetRequest) -> JsonObject:
    return {key: getattr(request, key) for key in ("name", "description", "gateway", "pools", "enable_dhcp")}


def _network_columns(row: Network, version: int, request: SubnetRequest) -> JsonObject:
    """Return the subnet's part of the hosts' configuration, in columns of the network."""
    others = texts.of_version(row.dns, OTHER[version])
    values: JsonObject = {"dns": [*request.dns, *others] if version == 4 else [*others, *request.dns]}
    if version == 4:
        values |= {"dhcp": request.enable_dhcp, "routes": request.routes}
    return values


def _pool(request: SubnetRequest) -> JsonObject:
    """The record that a pool is filled by: what is in no allocation pool is reserved."""
    hosts = netaddr.IPSet(netaddr.IPRange(request.cidr[1], request.cidr[-2]))
    kept = hosts - netaddr.IPSet(netaddr.IPRange(*ends) for ends in request.pools)
    return {"cidr": str(request.cidr), "gateway": request.gateway, "reserved": list(map(str, kept.iter_ipranges()))}


def _uses(network_record: JsonMapping, request: SubnetRequest) -> list[Use]:
    """Return what hosts have to do for the network with this subnet, and which addresses it hands out."""
    bounds = [tuple(int(netaddr.IPAddress(end)) for end in ends) for ends in request.pools]
    return places.uses(network_record, tuple((low, high) for low, high in bounds))


def _is_routed(connection: sa.Connection, before: Subnet) -> bool:
    routed = sa.select(router_interface.c.vif_id).where(router_interface.c.subnet_id == before.id)
    return connection.execute(routed).first() is not None
