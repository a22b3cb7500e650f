# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating pools: where floating IPs come from, and over which interface the world reaches them."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._errors import ConflictError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..._rules import pools
from ..._rules.records import Changes, checked_names
from ..db import tables
from ..db.tables_networking import router
from .host_places import refuse_floating
from .networks import check_handed_out_once
from .pool_claims import pool_lock
from .router_gateways import FREE

NAME_LENGTH = 64

Pool = JsonObject  # "cidr", "interface", and "addresses" as ranges


def remove_floating_pools(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Remove the pools that `items` name. Raises ConflictError for one with an address that a project has, and for one
    that a router leads to."""
    names, there, members = _begin(connection, items)
    changes, table = Changes(), tables.floating_pool
    for name in names:
        if name in there:
            changes.note(name, there[name], None)
            _take_out(connection, name, members[name])
            leading = sa.select(sa.func.min(router.c.id)).where(router.c.external_pool == name)
            if (number := connection.execute(leading).scalar()) is not None:  # one without an address there
                raise ConflictError(
                    f"floating pool {name!r} is where the router {number} leads to: take its gateway away first"
                )
            connection.execute(sa.delete(table).where(table.c.name == name))
    return changes.result("floating_pools", [])


def write_floating_pools(connection: sa.Connection, items: t.Sequence[JsonMapping]) -> JsonObject:
    """Make or change the pools `items`, a list of {"name", "cidr", "addresses", "interface"}.

    What is not given stays as it is. Raises NovaliteError for ranges that cannot be, ConflictError for addresses that
    another pool or a network hands out, and for those that a project has and that would go.
    """
    names, there, members = _begin(connection, items)
    changes, table = Changes(), tables.floating_pool
    for item, name in zip(items, names):
        before = there.get(name)
        after, addresses = _desired_pool(item, before, members.get(name, set()))
        if not changes.note(name, before, after):
            continue
        refuse_floating(connection, name, pools.bounds(addresses), after["interface"])
        values = {"cidr": after["cidr"], "interface": after["interface"]}
        if before is None:
            connection.execute(sa.insert(table).values(name=name, **values))
        else:
            if before["interface"] != after["interface"]:
                _check_not_associated(connection, name, before["interface"])
            connection.execute(sa.update(table).where(table.c.name == name).values(**values))
        _take_out(connection, name, members.get(name, set()) - addresses)
        _put_in(connection, name, addresses - members.get(name, set()))
    if changes.after:
        check_handed_out_once(connection)
    now, _members = _pools(connection, names)
    return changes.result("floating_pools", [{"name": name, **now[name]} for name in names])


def _begin(
    connection: sa.Connection, items: t.Sequence[JsonMapping]
) -> tuple[list[str], dict[str, Pool], dict[str, set[int]]]:
    """The pools' names, checked; those that there are, and their addresses, which nobody else changes meanwhile."""
    names = checked_names("floating pool", items, NAME_LENGTH)
    pool_lock(connection)
    return names, *_pools(connection, names)


def _pools(connection: sa.Connection, names: t.Sequence[str]) -> tuple[dict[str, Pool], dict[str, set[int]]]:
    """The pools that there are of these names, and their addresses."""
    table, addresses = tables.floating_pool, tables.floating_ip
    pool_rows = connection.execute(sa.select(table).where(table.c.name.in_(names))).all()
    members: dict[str, set[int]] = {row.name: set() for row in pool_rows}
    query = sa.select(addresses.c.pool, addresses.c.address).where(addresses.c.pool.in_(sorted(members)))
    for name, address in connection.execute(query):
        members[name].add(address)
    return {
        row.name: {"cidr": row.cidr, "interface": row.interface, "addresses": pools.ranges(members[row.name])}
        for row in pool_rows
    }, members


def _desired_pool(item: JsonMapping, before: Pool | None, members: set[int]) -> tuple[Pool, set[int]]:
    """The pool as it shall be, and its addresses."""
    what = f"floating pool {item['name']!r}"
    requested_fields = {key: item[key] for key in ("cidr", "interface") if item[key] is not None}
    for key in ("cidr", "interface"):
        if before is None and key not in requested_fields:
            raise NovaliteError(f"{what} does not exist yet: give its {key} to make it")
    after: Pool = {**(before or {}), **requested_fields}
    cidr = pools.parse_floating_cidr(what, after["cidr"])
    after["cidr"] = str(cidr)
    pools.check_bridge(f"{what}: interface", after["interface"])
    if item["addresses"] is not None:
        addresses = pools.parse_ranges(f"{what}: addresses", item["addresses"], cidr)
        if not addresses:
            raise NovaliteError(f"{what}: addresses is empty: leave it out for all of {cidr}")
    elif before is None or before["cidr"] != after["cidr"]:
        addresses = {int(address) for address in cidr.iter_hosts()}
    else:
        addresses = members
    after["addresses"] = pools.ranges(addresses)
    return after, addresses


def _put_in(connection: sa.Connection, name: str, new: set[int]) -> None:
    """Add these addresses to a pool. Raises ConflictError for one that another pool has."""
    table = tables.floating_ip
    for low, high in pools.bounds(new):
        taken = sa.select(table.c.address, table.c.pool).where(table.c.address.between(low, high))
        other = connection.execute(taken.order_by(table.c.address).limit(1)).first()
        if other is not None:
            raise ConflictError(
                f"floating pool {name!r}: {to_text(other.address)} is in the floating pool {other.pool!r} already"
            )
    if new:
        connection.execute(
            sa.insert(table), [{"id": str(uuid.uuid4()), "pool": name, "address": address} for address in sorted(new)]
        )


def _take_out(connection: sa.Connection, name: str, gone: set[int]) -> None:
    """Remove these addresses from a pool. Raises ConflictError for one that a project has: the write decides."""
    table, project = tables.floating_ip, tables.project
    for low, high in pools.bounds(gone):
        there = sa.and_(table.c.pool == name, table.c.address.between(low, high))
        connection.execute(sa.delete(table).where(there, FREE))
        gateway = connection.execute(
            sa.select(table.c.address, table.c.router_id).where(there, table.c.router_id.is_not(None))
        ).first()
        if gateway is not None:
            raise ConflictError(
                f"floating pool {name!r}: {to_text(gateway.address)} is the gateway of the router {gateway.router_id}: "
                "take the router's gateway away first"
            )
        kept = sa.select(table.c.address, project.c.name).join(project, project.c.id == table.c.project_id).where(there)
        left = connection.execute(kept.order_by(table.c.address).limit(1)).first()
        if left is not None:
            raise ConflictError(
                f"floating pool {name!r}: {to_text(left.address)} is allocated to the project {left.name!r}: "
                "release it first"
            )


def take_all(connection: sa.Connection, name: str) -> None:
    """Leave the pool without an address. Raises ConflictError for one that somebody has."""
    _names, _there, members = _begin(connection, [{"name": name}])
    _take_out(connection, name, members[name])


def _check_not_associated(connection: sa.Connection, name: str, interface: str) -> None:
    table = tables.floating_ip
    query = sa.select(table.c.address).where(table.c.pool == name, table.c.vif_id.is_not(None))
    used = connection.execute(query.order_by(table.c.address).limit(1)).scalar()
    if used is not None:
        raise ConflictError(
            f"floating pool {name!r}: {to_text(used)} is associated with a server over {interface}: "
            "disassociate it before the interface changes"
        )
