# Copyright (c) 2026 novalite contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module_utils is PRIVATE to the collection and may change at any time.

"""Subnets that projects give their networks: one of each address family at most, since a network here has no more."""

from __future__ import annotations

import ipaddress
import time
import typing as t

import sqlalchemy as sa

from ..._addressing import texts
from ..._errors import NovaliteError
from ..._rules import pools
from ..db.tables import fixed_ip, network, vif
from ..db.tables_networking import resource_tag, router_interface, subnet
from ..identity.quotas import check_quota
from ..queries.network_records import subnet_id
from . import networks
from .floating_pools import check_handed_out_once
from .pool_claims import pool_lock
from .tenant_networks import TenantError, check_no_port

MAX_ROUTES = 20  # Neutron's max_subnet_host_routes
MAX_SERVERS = 5  # Neutron's max_dns_nameservers

Record = t.Mapping[str, t.Any]
Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Range = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]


class Wanted(t.NamedTuple):
    """A subnet as it shall be, its addresses checked."""

    cidr: Range
    gateway: str | None
    pools: list[tuple[str, str]]
    dns: list[str]
    routes: list[dict[str, str]]
    enable_dhcp: bool
    name: str
    description: str


def create_subnet(connection: sa.Connection, row: Record, given: Record) -> str:
    """Give the network `row` a subnet; returns its UUID.

    `given` has "version", "cidr" and, where they were said, "gateway" (None: none), "pools", "dns", "routes",
    "enable_dhcp", "name", "description". Raises NovaliteError for what cannot be, ConflictError for a range that
    another network has.
    """
    pool_lock(connection)
    version = given["version"]
    if row["cidr" if version == 4 else "cidr_v6"] is not None:
        raise NovaliteError(f"network {row['uuid']} has a subnet of IPv{version} already: it carries one of each kind")
    wanted = _checked(given, None)
    column = "cidr" if version == 4 else "cidr_v6"
    after = {**row, column: str(wanted.cidr)}
    networks.check_others(connection, after, row["id"], row["name"])
    now = int(time.time())
    connection.execute(
        sa.insert(subnet).values(
            network_id=row["id"],
            version=version,
            ra_mode="slaac" if version == 6 else None,
            address_mode="slaac" if version == 6 else None,
            created_at=now,
            updated_at=now,
            **_kept(wanted),
        )
    )
    values = {column: str(wanted.cidr), **_told(row, version, wanted)}
    connection.execute(sa.update(network).where(network.c.id == row["id"]).values(updated_at=now, **values))
    if version == 4:
        networks.fill_pool(connection, row["id"], _pool(wanted))
        check_handed_out_once(connection)
    count = sa.select(sa.func.count()).select_from(subnet).join(network).where(network.c.owner == row["owner"])
    check_quota(connection, row["owner"], "subnets", connection.execute(count).scalar_one())
    return subnet_id(row["uuid"], version)


def update_subnet(connection: sa.Connection, row: Record, before: Record, given: Record) -> None:
    """Change what is `given` of the subnet `before` (a row of the table) of the network `row`.

    Raises NovaliteError, and TenantError for an address that is in use and would go.
    """
    pool_lock(connection)
    version = before["version"]
    cidr = row["cidr" if version == 4 else "cidr_v6"]
    known = {
        "version": version,
        "cidr": cidr,
        "gateway": before["gateway"],
        "pools": before["pools"],
        "dns": [one for one in row["dns"] if ipaddress.ip_address(one).version == version],
        "routes": row["routes"] if version == 4 else [],
        **{key: before[key] for key in ("enable_dhcp", "name", "description")},
    }
    wanted = _checked({**known, **given}, before)
    if version == 4 and (wanted.gateway, wanted.pools) != (before["gateway"], list(map(tuple, before["pools"]))):
        if wanted.gateway != before["gateway"] and _routed(connection, row["id"], version):
            raise TenantError(
                "GatewayIpInUse",
                f"Current gateway ip {before['gateway']} already in use by a router. Unable to update.",
            )
        networks.reserve(connection, row["id"], row["name"], _pool(wanted))
    now = int(time.time())
    mine = sa.and_(subnet.c.network_id == row["id"], subnet.c.version == version)
    connection.execute(sa.update(subnet).where(mine).values(updated_at=now, **_kept(wanted)))
    connection.execute(sa.update(network).where(network.c.id == row["id"]).values(**_told(row, version, wanted)))


def delete_subnet(connection: sa.Connection, row: Record, version: int) -> None:
    """Take its subnet of this family from the network `row`. Raises TenantError while an address of it is in use.

    As in Neutron, addresses that follow from the subnet do not hold it where nobody has them: those of IPv6 that ports
    without a server would have.
    """
    pool_lock(connection)
    number = subnet_id(row["uuid"], version)
    if version == 6:
        routed = sa.select(router_interface.c.vif_id).where(router_interface.c.vif_id == vif.c.id).exists()
        idle = sa.and_(vif.c.network_id == row["id"], vif.c.instance_uuid.is_(None), sa.not_(routed))
        connection.execute(sa.update(vif).where(idle).values(ipv6=None))
    check_no_port(connection, row, number, version)
    mine = sa.and_(subnet.c.network_id == row["id"], subnet.c.version == version)
    connection.execute(sa.delete(subnet).where(mine))
    connection.execute(sa.delete(resource_tag).where(resource_tag.c.resource_id == number))
    values: dict[str, t.Any] = {"dns": [one for one in row["dns"] if ipaddress.ip_address(one).version != version]}
    if version == 4:
        connection.execute(sa.delete(fixed_ip).where(fixed_ip.c.network_id == row["id"]))
        values |= {"cidr": None, "routes": []}
    else:
        values["cidr_v6"] = None
    connection.execute(sa.update(network).where(network.c.id == row["id"]).values(**values))


def _checked(given: Record, before: Record | None) -> Wanted:
    version = given["version"]
    what = "subnet"
    cidr: Range = pools.parse_cidr(what, given["cidr"]) if version == 4 else pools.parse_cidr_v6(what, given["cidr"])
    gateway = str(cidr[1]) if "gateway" not in given else given["gateway"]
    if gateway is not None:
        gateway = str(_address(what, "gateway_ip", gateway, cidr))
    ranges = _ranges(cidr, gateway, given.get("pools"))
    dns = pools.parse_servers(f"{what}: dns_nameservers", given.get("dns") or [])
    if len(dns) > MAX_SERVERS or len(set(dns)) != len(dns):
        raise NovaliteError(f"{what}: dns_nameservers: give at most {MAX_SERVERS}, each once")
    if any(ipaddress.ip_address(one).version != version for one in dns):
        raise NovaliteError(f"{what}: dns_nameservers of a subnet of IPv{version} are addresses of that family")
    routes = _routes(what, version, given.get("routes") or [])
    enable = given.get("enable_dhcp", True)
    if version == 6 and not enable:
        raise NovaliteError(f"{what}: guests make their IPv6 addresses of what is advertised: enable_dhcp stays true")
    return Wanted(cidr, gateway, ranges, dns, routes, enable, given.get("name", ""), given.get("description", ""))


def _address(what: str, field: str, text: str, cidr: Range) -> Address:
    try:
        found = texts.parse_address(text)
    except ValueError:
        raise NovaliteError(f"{what}: {field} {text[:45]!r} is no IP address") from None
    ends = (cidr.network_address, cidr.broadcast_address if cidr.version == 4 else cidr.network_address)
    if found.version != cidr.version or found not in cidr or found in ends:
        raise NovaliteError(f"{what}: {field} {found} is no host's address in {cidr}")
    return found


def _ranges(cidr: Range, gateway: str | None, listed: t.Sequence[t.Sequence[str]] | None) -> list[tuple[str, str]]:
    """The allocation pools: those that are listed, or all but the gateway."""
    if cidr.version == 6:
        if listed is not None and list(map(tuple, listed)) != [_whole_v6(cidr)]:
            raise NovaliteError("subnet: allocation_pools of IPv6 are the whole range: guests make their addresses")
        return [_whole_v6(cidr)]
    first, last = int(cidr[1]), int(cidr[-2])
    if listed is None:
        hole = int(ipaddress.IPv4Address(gateway)) if gateway is not None else first - 1
        parts = [(first, hole - 1), (max(first, hole + 1), last)]
        return [(_text(low), _text(high)) for low, high in parts if first <= low <= high]
    bounds = []
    for low, high in listed:
        ends = [_address("subnet", "allocation_pools", one, cidr) for one in (low, high)]
        bounds.append((int(ends[0]), int(ends[1])))
    bounds.sort()
    for number, (low_, high_) in enumerate(bounds):
        if low_ > high_ or (number and low_ <= bounds[number - 1][1]):
            raise NovaliteError(f"subnet: the allocation pool {_text(low_)}-{_text(high_)} overlaps, or ends too early")
        if gateway is not None and low_ <= int(ipaddress.IPv4Address(gateway)) <= high_:
            raise TenantError(
                "GatewayConflictWithAllocationPools",
                f"Gateway ip {gateway} conflicts with allocation pool {_text(low_)}-{_text(high_)}.",
            )
    if not bounds:
        raise NovaliteError("subnet: allocation_pools is empty: leave it out for all addresses")
    return [(_text(low_), _text(high_)) for low_, high_ in bounds]


def _whole_v6(cidr: Range) -> tuple[str, str]:
    return str(cidr[1]), str(cidr[-1])


def _routes(what: str, version: int, listed: t.Sequence[t.Mapping[str, str]]) -> list[dict[str, str]]:
    if listed and version == 6:
        raise NovaliteError(f"{what}: host_routes are told by DHCP, which IPv6 does without here")
    if len(listed) > MAX_ROUTES:
        raise NovaliteError(f"{what}: {len(listed)} host_routes: {MAX_ROUTES} is the limit")
    found = []
    for one in listed:
        try:
            found.append(
                {
                    "destination": str(ipaddress.IPv4Network(one["destination"])),
                    "nexthop": str(ipaddress.IPv4Address(one["nexthop"])),
                }
            )
        except ValueError as error:
            raise NovaliteError(f"{what}: host_routes: {str(error)[:100]}") from None
    return found


def _kept(wanted: Wanted) -> dict[str, t.Any]:
    return {
        "name": wanted.name,
        "description": wanted.description,
        "gateway": wanted.gateway,
        "pools": [list(one) for one in wanted.pools],
        "enable_dhcp": wanted.enable_dhcp,
    }


def _told(row: Record, version: int, wanted: Wanted) -> dict[str, t.Any]:
    """What hosts are told of it, in columns of the network."""
    others = [one for one in row["dns"] if ipaddress.ip_address(one).version != version]
    values: dict[str, t.Any] = {"dns": [*wanted.dns, *others] if version == 4 else [*others, *wanted.dns]}
    if version == 4:
        values |= {"dhcp": wanted.enable_dhcp, "routes": wanted.routes}
    return values


def _pool(wanted: Wanted) -> dict[str, t.Any]:
    """The record that a pool is filled by: what is in no allocation pool is reserved."""
    cidr = t.cast(ipaddress.IPv4Network, wanted.cidr)
    kept, at = [], int(cidr.network_address) + 1
    for low, high in [*((int(ipaddress.IPv4Address(a)), int(ipaddress.IPv4Address(b))) for a, b in wanted.pools),
                      (int(cidr.broadcast_address), 0)]:  # fmt: skip
        if at < low:
            kept.append(f"{_text(at)}-{_text(low - 1)}")
        at = high + 1
    return {"cidr": str(cidr), "gateway": wanted.gateway, "reserved": kept}


def _routed(connection: sa.Connection, network_id: int, version: int) -> bool:
    c = router_interface.c
    return connection.execute(
        sa.select(c.vif_id).where(c.network_id == network_id, c.version == version)
    ).first() is not None  # fmt: skip


def _text(number: int) -> str:
    return str(ipaddress.IPv4Address(number))
