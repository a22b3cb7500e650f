# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The addresses of ports: of IPv4 up to five, of any of the network's subnets, of IPv6 the one that follows from the
port.

The first one is its interface's own (owner `vif:<id>`): DHCP tells it, floating IPs lead to it. Further ones have an
owner with a number (`vif:<id>/1`), so that they are taken, kept and given back by the same statements.
"""

from __future__ import annotations

import dataclasses
import typing as t

import netaddr
import sqlalchemy as sa

from ..._addressing import texts
from ..._addressing.pools import to_int
from ..._errors import NovaliteError
from ..._json import JsonMapping
from ..db import clock
from ..db.tables import fixed_ip, floating_ip, vif
from ..db.tables_addresses import MOST_ADDRESSES, OF_VIF
from ..queries.network.network_records import Network, Port
from ..queries.network.subnet_records import Subnet, subnets_of_network
from .addresses import claim_addresses
from .ipv6_claims import take_ipv6
from .tenant_networks import TenantError


@dataclasses.dataclass(frozen=True)
class Wish:
    """An address that is asked for (None: any) of one of these `subnets`, which are of one family."""

    address: str | None
    subnets: tuple[Subnet, ...]

    @property
    def version(self) -> int:
        return self.subnets[0].version


def take_addresses(
    connection: sa.Connection, row: Network, number: str, fixed_ips: t.Sequence[JsonMapping] | None
) -> None:
    """Give the port `number` on the network `row`, which has none, these addresses; None: one of each family."""
    wishes = _wishes(connection, row, fixed_ips)
    _take_ipv4(connection, row, number, [wish for wish in wishes if wish.version == 4])
    for wish in wishes:
        if wish.version == 6:
            _take_ipv6(connection, row, number, wish)


def change_addresses(connection: sa.Connection, row: Network, seen: Port, fixed_ips: t.Sequence[JsonMapping]) -> bool:
    """Let the port `seen` have the addresses `fixed_ips`, and no others. Of those that it has, it keeps what it may.
    Returns whether any come or go.

    Raises TenantError for a router's port, and for IPv6 of a server's; NovaliteError for a server's port without IPv4.
    """
    wishes = _wishes(connection, row, fixed_ips)
    before = [address for address in (seen.ip, *seen.more_ips) if address is not None]
    four, six = ([wish for wish in wishes if wish.version == version] for version in (4, 6))
    named = [wish.address for wish in four]
    going = [address for address in before if address not in named]
    rest: list[Wish] = []
    for wish in four:
        if wish.address is not None:
            rest += [] if wish.address in before else [wish]
        elif (kept := _kept(going, wish)) is not None:
            going.remove(kept)
        else:
            rest.append(wish)
    same = bool(six) == (seen.ipv6 is not None) and all(wish.address in (None, seen.ipv6) for wish in six)
    if same and not going and not rest:
        return False
    if seen.router_id is not None or (seen.instance_uuid is not None and not same):
        what = "addresses" if same else "address of IPv6"
        raise TenantError(
            "PortInUse",
            f"Unable to complete operation on port {seen.id} for network {row.uuid}: a device has it, and its {what} "
            "may not change; detach it first.",
        )
    if seen.instance_uuid is not None and not four:
        raise NovaliteError(
            f"Invalid input for fixed_ips. Reason: port {seen.id} keeps an IPv4 address while its server has it; name "
            "one, or detach the port first."
        )
    _let_go(connection, row, seen.id, going)
    _take_ipv4(connection, row, seen.id, rest)
    if six:
        _take_ipv6(connection, row, seen.id, six[0])
    elif seen.ipv6 is not None:
        connection.execute(sa.update(vif).where(vif.c.id == seen.id).values(ipv6=None))
    return True


def _kept(going: t.Sequence[str], wish: Wish) -> str | None:
    """Return an address that will do, of those that are about to go; None if none will."""
    return next((address for address in going if any(address in subnet for subnet in wish.subnets)), None)


def _take_ipv4(connection: sa.Connection, row: Network, number: str, missing: t.Sequence[Wish]) -> None:
    """Give the port these addresses besides those that it has, the first one of all as its interface's own."""
    first, *further = owners = _owners(number)
    pool = sa.update(fixed_ip).where(fixed_ip.c.network_id == row.id)
    query = sa.select(fixed_ip.c.owner).where(fixed_ip.c.network_id == row.id, fixed_ip.c.owner.in_(owners))
    taken = set(connection.execute(query).scalars())
    free = [owner for owner in owners if owner not in taken]
    by_ranges: dict[tuple[str, ...], dict[str, str | None]] = {}
    for owner, wish in zip(free, missing):
        by_ranges.setdefault(tuple(subnet.cidr for subnet in wish.subnets), {})[owner] = wish.address
    for ranges, wishes in by_ranges.items():
        claim_addresses(connection, row, wishes, clock.seconds(connection), [], () if ranges == (row.cidr,) else ranges)
    if not missing and taken and first not in taken:  # it went, and another one is there to take its place
        ip = connection.execute(
            pool.where(fixed_ip.c.owner == min(taken)).values(owner=first, further_of=None).returning(fixed_ip.c.ip)
        ).scalar_one()
        led = sa.and_(floating_ip.c.vif_id == number, floating_ip.c.further_ip == ip)
        connection.execute(sa.update(floating_ip).where(led).values(further_ip=None))
    if len(taken) + len(missing) > 1:
        connection.execute(pool.where(fixed_ip.c.owner.in_(further)).values(further_of=number))


def _take_ipv6(connection: sa.Connection, row: Network, number: str, wish: Wish) -> None:
    mac, has = connection.execute(sa.select(vif.c.mac, vif.c.ipv6).where(vif.c.id == number)).one()
    made = take_ipv6(connection, {row.id: row}, [{"id": number, "mac": mac, "ipv6": has, "network": {"id": row.id}}])
    if wish.address is not None and made[number] != wish.address:
        raise NovaliteError(
            f"Invalid input for operation: IPv6 address {wish.address} can not be directly assigned to a port on "
            f"subnet {wish.subnets[0].id} as the subnet is configured for automatic addresses."
        )


def renew_ipv6(connection: sa.Connection, row: Network, number: str) -> None:
    """Give the port the IPv6 address that follows from it now, in place of its former one."""
    connection.execute(sa.update(vif).where(vif.c.id == number).values(ipv6=None))
    _take_ipv6(connection, row, number, Wish(None, ()))


def _let_go(connection: sa.Connection, row: Network, number: str, going: t.Sequence[str]) -> None:
    """Give back these addresses of the port, and lead floating IPs away from them. It gets none of them again unless it
    names them."""
    if not going:
        return
    numbers = [to_int(address) for address in going]
    own = sa.and_(fixed_ip.c.network_id == row.id, fixed_ip.c.ip.in_(numbers))
    first = sa.select(fixed_ip.c.ip).where(own, fixed_ip.c.owner == OF_VIF + number).exists()
    led_to = sa.or_(floating_ip.c.further_ip.in_(numbers), sa.and_(floating_ip.c.further_ip.is_(None), first))
    led = sa.update(floating_ip).where(floating_ip.c.vif_id == number, led_to)
    connection.execute(led.values(vif_id=None, further_ip=None))
    values = {"owner": None, "further_of": None, "last_owner": None, "released_at": clock.seconds(connection)}
    connection.execute(sa.update(fixed_ip).where(own).values(**values))
    connection.execute(
        sa.update(fixed_ip)
        .where(fixed_ip.c.network_id == row.id, fixed_ip.c.last_owner.in_(_owners(number)))
        .values(last_owner=None)
    )


def _owners(number: str) -> list[str]:
    return [OF_VIF + number, *(f"{OF_VIF}{number}/{position}" for position in range(1, MOST_ADDRESSES))]


def _wishes(connection: sa.Connection, row: Network, fixed_ips: t.Sequence[JsonMapping] | None) -> list[Wish]:
    subnets = subnets_of_network(connection, row)
    if fixed_ips is None:
        return [Wish(None, of) for version in (4, 6) if (of := _of_version(subnets, version))]
    wishes = [_wish(row, subnets, wish) for wish in fixed_ips]
    named = [wish.address for wish in wishes if wish.address is not None]
    if len(set(named)) != len(named):
        raise NovaliteError("Invalid input for fixed_ips. Reason: Duplicate IP address: name each once.")
    if len(fixed_ips) > MOST_ADDRESSES:
        raise NovaliteError(
            "Invalid input for operation: Exceeded maximum amount of fixed ips per port: "
            f"{MOST_ADDRESSES} is the limit."
        )
    six = [wish.subnets[0].id for wish in wishes if wish.version == 6]
    if len(six) > 1:
        raise NovaliteError(
            f"Invalid input for operation: subnet {six[0]} is configured for automatic addresses: a port has one "
            "address of it; name it once in fixed_ips."
        )
    return wishes


def _of_version(subnets: t.Iterable[Subnet], version: int) -> tuple[Subnet, ...]:
    return tuple(subnet for subnet in subnets if subnet.version == version)


def _wish(row: Network, subnets: t.Sequence[Subnet], wish: JsonMapping) -> Wish:
    """Return the wish of an entry of fixed_ips."""
    text, number = wish.get("ip_address"), wish.get("subnet_id")
    if number is not None:
        subnets = [subnet for subnet in subnets if subnet.id == number.lower()]
        if not subnets:
            raise NovaliteError(
                f"Invalid input for operation: Failed to create port on network {row.uuid}, because fixed_ips "
                f"included invalid subnet {number}."
            )
    if text is not None:
        address = str(_parsed(text))
        around = tuple(subnet for subnet in subnets if address in subnet)
        if around:
            return Wish(address, around)
        where = "the specified subnet" if number is not None else "any of the subnets on the specified network"
        raise NovaliteError(f"IP address {address} is not a valid IP for {where}.")
    if number is None:
        subnets = _of_version(subnets, wish.get("ip_version", 0))
    if not subnets:
        raise NovaliteError("Invalid input for operation: IP allocation requires subnet_id or ip_address.")
    return Wish(None, tuple(subnets))


def _parsed(text: str) -> netaddr.IPAddress:
    try:
        return texts.parse_address(text)
    except ValueError:
        raise NovaliteError(f"Invalid input for fixed_ips. Reason: '{text[:45]}' is not a valid IP address.") from None
