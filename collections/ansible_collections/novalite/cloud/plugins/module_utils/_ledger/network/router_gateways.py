# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gateway addresses of routers, drawn from the floating pool that a router leads to. They are the router's in the
ledger alone: guests leave under the address of their own host."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._addressing.pools import to_int, to_text
from ..._errors import AddressInUseError, NovaliteError, PoolExhaustedError
from ..._json import JsonMapping
from ..db import clock
from ..db.tables import floating_ip, floating_pool
from ..queries.network.subnet_records import derived_id

FREE = sa.and_(floating_ip.c.project_id.is_(None), floating_ip.c.router_id.is_(None))


def give(
    connection: sa.Connection, number: str, pool: str | None, external_fixed_ips: t.Sequence[JsonMapping] | None
) -> None:
    """Give the router `number` the gateway addresses `external_fixed_ips` ({"ip_address", "subnet_id"}, of which either
    may be left out) of `pool`, and take back all others. None: what it has there, or else one.

    Raises AddressInUseError for an address that somebody else has, PoolExhaustedError where none is left, and
    NovaliteError for one that is not the pool's.
    """
    table = floating_ip
    mine = sa.and_(table.c.router_id == number, table.c.pool == pool)
    there = list(connection.execute(sa.select(table.c.address).where(mine).order_by(table.c.address)).scalars())
    named: list[int] = []
    if pool is None:
        kept, missing = [], 0
    elif external_fixed_ips is None:
        kept, missing = there, 0 if there else 1
    else:
        named = [
            _number(connection, pool, wish)
            for wish in external_fixed_ips
            if wish.get("ip_address") or _check_subnet(connection, pool, wish)
        ]
        unnamed = len(external_fixed_ips) - len(named)
        spare = [address for address in there if address not in named][:unnamed]
        kept, missing = [*spare, *(address for address in there if address in named)], unnamed - len(spare)
    gone = sa.and_(table.c.router_id == number, table.c.address.not_in(kept))
    connection.execute(sa.update(table).where(gone).values(router_id=None, released_at=clock.seconds(connection)))
    for address in set(named) - set(kept):
        taken = sa.and_(table.c.address == address, table.c.pool == pool, FREE)
        if connection.execute(sa.update(table).where(taken).values(router_id=number)).rowcount != 1:
            raise AddressInUseError(
                f"IP address {to_text(address)} already allocated in subnet {_subnet(connection, str(pool))}."
            )
    for _missing in range(missing):
        _draw(connection, number, str(pool))


def _draw(connection: sa.Connection, number: str, pool: str) -> None:
    """Take the address of the pool that was free for longest; the write decides."""
    table = floating_ip
    for skip_locked in (True, False):
        oldest = (
            sa.select(table.c.address)
            .where(table.c.pool == pool, FREE)
            .order_by(table.c.released_at, table.c.address)
            .limit(1)
            .with_for_update(skip_locked=skip_locked)
        )
        taken = sa.update(table).where(table.c.address == oldest.scalar_subquery(), FREE).values(router_id=number)
        if connection.execute(taken).rowcount == 1:
            return
    raise PoolExhaustedError(f"No more IP addresses available on network {_network(connection, pool)}.")


def _number(connection: sa.Connection, pool: str, wish: JsonMapping) -> int:
    _check_subnet(connection, pool, wish)
    return to_int(wish["ip_address"])


def _check_subnet(connection: sa.Connection, pool: str, wish: JsonMapping) -> bool:
    """Raise NovaliteError for a subnet that is not the pool's."""
    if wish.get("subnet_id") not in (None, _subnet(connection, pool)):
        raise NovaliteError(f"Invalid input for external_fixed_ips: subnet {wish['subnet_id']} is not of this network.")
    return False


def _subnet(connection: sa.Connection, pool: str) -> str:
    return derived_id(_network(connection, pool), 4)


def _network(connection: sa.Connection, pool: str) -> str:
    return str(connection.execute(sa.select(floating_pool.c.uuid).where(floating_pool.c.name == pool)).scalar_one())
