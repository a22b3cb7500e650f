# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks' numbers, ranges that are nobody else's, and pools of fixed IPs."""

from __future__ import annotations

import itertools
import re
import typing as t
import uuid

import netaddr
import sqlalchemy as sa

from ..._addressing.places import Use
from ..._addressing.pools import to_text
from ..._errors import ConflictError, DefaultTakenError, NotFoundError
from ..._json import Json, JsonMapping, JsonObject
from ..._rules import pools
from ..._rules.noun_options import NETWORK, NETWORK_COLUMNS
from ..._rules.options import new_values
from ..db import clock, tables
from ..db.engine import inserted_id
from ..db.tables_networking import subnet
from ..identity.quotas import check_quota
from ..queries import counts
from ..queries.network.network_records import Network
from .host_places import refuse_ranges
from .pool_claims import pool_lock, within

FIRST_BRIDGE = 100  # Nova's br100
COLUMNS = (*NETWORK_COLUMNS, "admin_state_up")
# What a network has that nobody said otherwise of
NEW: JsonMapping = {**new_values(NETWORK[1:]), "admin_state_up": True}

Record = JsonObject  # a network's columns, and "reserved": the user's reserved addresses, as ranges


class TakenError(ConflictError):
    """Another network has the range, bridge, VLAN or VNI."""


def create(
    connection: sa.Connection,
    owner: str,
    name: str,
    record: Record,
    uses: t.Sequence[Use] = (),
    number: str | None = None,
    **more: Json,
) -> str:
    """Record a new network of the project `owner` ("": everybody's), with its pool where it has a range; returns its
    UUID: `number`, or a new one.

    `record` has all COLUMNS, `more` has others; `uses` are what hosts have to do for it. The caller holds the locks of
    the project and of the pools. Raises TakenError, DefaultTakenError, ConflictError where a host lives in its range,
    QuotaError.
    """
    check_others(connection, record, 0, name, uses)
    if record["is_default"]:
        check_default(connection)
    number, now = number or str(uuid.uuid4()), clock.seconds(connection)
    values = {"uuid": number, "owner": owner, "name": name, "created_at": now, "updated_at": now, **more}
    values.update({column: record[column] for column in COLUMNS})
    network_id = inserted_id(connection.execute(sa.insert(tables.network).values(**values)))
    if record["cidr"] is not None:
        fill_pool(connection, network_id, record)
    if owner:
        check_quota(connection, owner, "networks", counts.networks(connection, owner))
    return number


def numbered(connection: sa.Connection, what: str, record: Record) -> None:
    """Give `record` the VLAN, VNI and bridge that it lacks: the first ones that no network has."""
    columns = (tables.network.c.bridge, tables.network.c.vlan, tables.network.c.vni)
    rows = connection.execute(sa.select(*columns)).all()
    # a number keeps its bridge for itself, whatever its own is called
    bridges = {row.bridge for row in rows} | {f"br{number}" for row in rows for number in row[1:] if number is not None}
    manager = record["manager"]
    kind = pools.NUMBERED[manager][0] if manager in pools.NUMBERED else None
    if kind is not None and record[kind] is None:
        taken = {getattr(row, kind) for row in rows}
        if record["bridge"] is None:
            taken.update(int(name[2:]) for name in bridges if re.fullmatch(r"br[1-9][0-9]{0,8}", name))
        record[kind] = pools.free_number(what, manager, taken)
    if record["bridge"] is None:
        free = (name for number in itertools.count(FIRST_BRIDGE) if (name := f"br{number}") not in bridges)
        record["bridge"] = f"br{record[kind]}" if kind is not None else next(free)


def check_others(
    connection: sa.Connection, record: Record, own_id: int, name: str, uses: t.Sequence[Use] = (), naming: bool = True
) -> None:
    """Raise TakenError for a range, bridge, VLAN or VNI that another network has, ConflictError for one of `uses` that
    would cut a host off. Without `naming` (not an administrator) neither hosts nor others' networks are named."""
    table = tables.network
    keys = ("bridge", "vlan", "vni")
    columns = (
        *(table.c[key] for key in ("id", "owner", "name", "cidr", "cidr_v6", "isolated")),
        *(table.c[key] for key in keys),
    )
    further = _further_ranges(connection)
    for other in connection.execute(sa.select(*columns).where(table.c.id != own_id).order_by(table.c.id)):
        named = naming or other.owner in ("", record.get("owner"))
        whose = f"the network {other.name!r}" if named else "a network of another project"
        for key, more in (("cidr", further), ("cidr_v6", {})):
            if record["isolated"] or other.isolated:
                continue
            for ours, theirs in itertools.product(
                [record[key], *more.get(own_id, ())], [getattr(other, key), *more.get(other.id, ())]
            ):
                if ours is not None and theirs is not None and pools.overlap(ours, theirs):
                    raise TakenError(
                        f"network {name!r}: {key} {ours} overlaps {f'{theirs} of ' if named else ''}{whose}: "
                        "take another range, or make one of the two isolated"
                    )
        for key in keys:
            if record[key] is not None and record[key] == getattr(other, key):
                raise TakenError(f"network {name!r}: {key} {record[key]} belongs to {whose}")
    refuse_ranges(connection, name, uses, naming)


def check_default(connection: sa.Connection, own_id: int = 0) -> None:
    """Raise DefaultTakenError if a network other than this one is the default. The caller holds the pools' lock."""
    table = tables.network.c
    other = sa.select(table.uuid, table.name).where(table.is_default, table.id != own_id)
    if row := connection.execute(other).first():
        raise DefaultTakenError(
            f"A default network already exists: {row.uuid} ({row.name}). Set its is_default to false first."
        )


def _further_ranges(connection: sa.Connection) -> dict[int, list[str]]:
    """Network -> the ranges of its further subnets."""
    ranges_by_network: dict[int, list[str]] = {}
    for number, cidr in connection.execute(sa.select(subnet.c.network_id, subnet.c.cidr).where(subnet.c.position > 0)):
        ranges_by_network.setdefault(number, []).append(cidr)
    return ranges_by_network


def locked(connection: sa.Connection, row: Network) -> Network:
    """The network as it is now; its addresses, and those of the others, are nobody else's to change until the end of
    this transaction. Raises NotFoundError for one that went meanwhile."""
    pool_lock(connection)
    now = connection.execute(sa.select(tables.network).where(tables.network.c.id == row.id)).mappings().first()
    if now is None:
        raise NotFoundError(f"Network {row.uuid} could not be found.")
    return Network.of(now)


def check_handed_out_once(connection: sa.Connection) -> None:
    """Raise ConflictError for a floating IP that a network hands out as a fixed IP, too.

    A network may cover floating IPs when they are reserved in it; isolated ones are a world of their own.
    """
    floating, fixed, network = tables.floating_ip, tables.fixed_ip, tables.network
    both = connection.execute(
        sa.select(floating.c.address, floating.c.pool, network.c.name)
        .join(fixed, fixed.c.ip == floating.c.address)
        .join(network, network.c.id == fixed.c.network_id)
        .where(
            # naming the networks lets the key (network, ip) find the rows instead of reading whole pools
            fixed.c.network_id.in_(sa.select(network.c.id).where(network.c.isolated.is_(False))),
            fixed.c.reserved.is_(None),
        )
        .order_by(floating.c.address)
        .limit(1)
    ).first()
    if both is not None:
        raise ConflictError(
            f"{to_text(both.address)} is in the floating pool {both.pool!r} and in the network {both.name!r}: "
            "reserve it there, or take other ranges"
        )


def fill_pool(connection: sa.Connection, network_id: int, record: Record) -> None:
    """Make the rows of a pool."""
    cidr = netaddr.IPNetwork(record["cidr"])
    kept = pools.roles(cidr, record["gateway"], pools.parse_ranges("network: reserved", record["reserved"], cidr))
    connection.execute(
        sa.insert(tables.fixed_ip),
        [
            {"network_id": network_id, "ip": address, "reserved": kept.get(address)}
            for address in range(cidr.first, cidr.last + 1)
        ],
    )
    if connection.dialect.name == "postgresql":
        # Its planner knows nothing yet of these rows, takes the wrong index and sorts all that are free: 40 ms for an
        # address of a /16 instead of 1 ms, until autovacuum comes by
        connection.execute(sa.text("ANALYZE fixed_ip"))


def reserve(connection: sa.Connection, network_id: int, name: str, record: Record) -> None:
    """Bring what is reserved in an existing pool in line with `record`. Raises ConflictError for an address in use."""
    pool = tables.fixed_ip
    cidr = netaddr.IPNetwork(record["cidr"])
    kept = pools.roles(cidr, record["gateway"], pools.parse_ranges("network: reserved", record["reserved"], cidr))
    mine = sa.and_(pool.c.network_id == network_id, within(record["cidr"]))
    query = sa.select(pool.c.ip, pool.c.reserved).where(mine, pool.c.reserved.is_not(None))
    there: dict[int, str] = {row.ip: row.reserved for row in connection.execute(query)}
    changed = [address for address in {*there, *kept} if there.get(address) != kept.get(address)]
    if not changed:
        return
    # the guard, not a SELECT before it, decides: another transaction may be handing the address out right now
    write = (
        sa.update(pool)
        .where(mine, pool.c.ip == sa.bindparam("address"), pool.c.owner.is_(None))
        .values(reserved=sa.bindparam("role"))
    )
    for address in sorted(changed):
        done = connection.execute(write, {"address": address, "role": kept.get(address)})
        if done.rowcount != 1:
            raise ConflictError(f"network {name!r}: {to_text(address)} is in use: it can be reserved when it is free")
