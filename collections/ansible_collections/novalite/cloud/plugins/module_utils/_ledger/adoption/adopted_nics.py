# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces of a guest that somebody else made: which of novalite's networks they are on, and their addresses."""

from __future__ import annotations

import typing as t
import uuid as uuids

import netaddr
import sqlalchemy as sa

from ..._addressing.texts import parse_address
from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping
from ..._model.instance import KeptAddress
from ..._model.rows import NetworkRow
from ..compute.create import NetworkRef
from ..db.tables import fixed_ip, network, vif
from ..network.pool_claims import claim_one
from ..queries import lookups

NO_NETWORK = "none"  # of the option `network`: none of its interfaces is novalite's business
_USER = "user"  # fixed_ip.reserved of what the network's operator kept out of the pool


class FoundNic(t.TypedDict):
    """An interface as its host told of it; `network` is libvirt's own."""

    mac: str
    bridge: str | None
    network: str | None
    device: str | None
    addresses: list[str]


class OwnNic(t.NamedTuple):
    """An interface that becomes the instance's; `address` is a number, null on a network without IPv4 addresses."""

    mac: str
    network: NetworkRef
    address: int | None


def chosen_nics(
    connection: sa.Connection,
    owner: JsonMapping,
    domain: str,
    nics: t.Sequence[FoundNic],
    named: str | None,
    address: str | None,
) -> list[OwnNic]:
    """The interfaces on networks that the project sees, by their bridges; with `named`, on that network alone.

    `address` is for the only one of them. Raises NovaliteError for a guest none of whose interfaces is on such a
    network, and for one whose address is not known for certain.
    """
    if named == NO_NETWORK or not nics:
        if address is not None:
            raise NovaliteError(f"address {address}, but no interface of '{domain}' is to be recorded: leave it out")
        return []
    seen = _networks(connection, owner["id"])
    if named is not None:
        requested_network = lookups.network_by_name(connection, named, owner["id"])
        seen = {bridge: row for bridge, row in seen.items() if row.id == requested_network["id"]}
    on = [(nic, seen[nic["bridge"]]) for nic in nics if nic["bridge"] in seen]
    if not on:
        where = ", ".join(f"{nic['mac']} on {nic['bridge'] or nic['network'] or 'no bridge'}" for nic in nics)
        which = "a network of this project" if named is None else f"network '{named}'"
        there = ", ".join(f"{row.name} is bridge {bridge}" for bridge, row in sorted(seen.items())) or "there is none"
        raise NovaliteError(
            f"no interface of '{domain}' ({where}) is on {which} ({there}): record a network with that bridge, or "
            f"leave them all out with network={NO_NETWORK}"
        )
    if address is not None and len(on) > 1:
        raise NovaliteError(f"address {address} for {len(on)} interfaces of '{domain}': name one network as well")
    return [
        OwnNic(nic["mac"], NetworkRef(row.id, row.name, row.cidr or ""), _address(domain, nic, row, address))
        for nic, row in on
    ]


def take(connection: sa.Connection, instance_uuid: str, chosen: t.Sequence[OwnNic]) -> list[KeptAddress]:
    """Insert the interfaces with the MACs that they have, and take their addresses; returns those that had been
    reserved by the operator, as `{"network_id", "ip"}`.

    Raises ConflictError for a MAC or an address that another has, NovaliteError for one outside of its network.
    """
    reserved: list[KeptAddress] = []
    for position, own in enumerate(chosen):
        number = str(uuids.uuid4())
        row = {"id": number, "instance_uuid": instance_uuid, "network_id": own.network.id, "position": position}
        try:
            connection.execute(sa.insert(vif).values(**row, mac=own.mac))
        except sa.exc.IntegrityError as error:
            raise ConflictError(f"MAC {own.mac} is another server's, or port's, already") from error
        if own.address is None:
            continue
        kept = connection.execute(
            sa.update(fixed_ip)
            .where(fixed_ip.c.network_id == own.network.id, fixed_ip.c.ip == own.address, fixed_ip.c.reserved == _USER)
            .values(reserved=None, owner=f"vif:{number}")
        )
        if kept.rowcount:
            reserved.append({"network_id": own.network.id, "ip": own.address})
        else:
            claim_one(connection, own.network, f"vif:{number}", own.address)
    return reserved


def give_back(connection: sa.Connection, instance_uuid: str, reserved: t.Iterable[KeptAddress], now: int) -> None:
    """Release the addresses of the instance's interfaces; those in `reserved` are kept out of the pool again. The guest
    goes on using them, which nobody here can forbid: reserve what it keeps (docs/adopt.md)."""
    numbers = sa.select(vif.c.id).where(vif.c.instance_uuid == instance_uuid)
    owners = sa.select(sa.literal("vif:").concat(vif.c.id)).where(vif.c.instance_uuid == instance_uuid)
    theirs = sa.or_(fixed_ip.c.owner.in_(owners), fixed_ip.c.further_of.in_(numbers))
    connection.execute(
        sa.update(fixed_ip).where(theirs).values(owner=None, further_of=None, last_owner=None, released_at=now)
    )
    for nic in reserved:
        free = fixed_ip.c.owner.is_(None)
        connection.execute(
            sa.update(fixed_ip)
            .where(fixed_ip.c.network_id == nic["network_id"], fixed_ip.c.ip == nic["ip"], free)
            .values(reserved=_USER)
        )


def _networks(connection: sa.Connection, project_id: str) -> dict[str, NetworkRow]:
    """The networks that the project sees, by their bridges."""
    query = sa.select(network.c.id, network.c.owner, network.c.name, network.c.cidr, network.c.bridge)
    rows = connection.execute(query.where(network.c.owner.in_(["", project_id])))
    return {row.bridge: t.cast(NetworkRow, row) for row in rows}


def _address(domain: str, nic: FoundNic, row: NetworkRow, requested_address: str | None) -> int | None:
    if row.cidr is None:
        return None
    if requested_address is not None:
        try:
            return int(parse_address(requested_address, 4))
        except ValueError:
            raise NovaliteError(f"address {requested_address!r} is not an IPv4 address") from None
    around = netaddr.IPNetwork(row.cidr)
    known = [address for address in map(netaddr.IPAddress, nic["addresses"]) if address in around]
    if len(known) != 1:
        what = f"is one of {', '.join(map(str, known))}" if known else "is not known here"
        raise NovaliteError(
            f"the address of '{domain}' ({nic['mac']}) in network '{row.name}' ({row.cidr}) {what}: give address=..."
        )
    return int(known[0])
