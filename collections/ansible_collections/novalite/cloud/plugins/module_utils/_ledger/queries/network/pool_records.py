# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Floating pools, which the Network API calls external networks. Reads only."""

from __future__ import annotations

import collections
import dataclasses

import sqlalchemy as sa

from ...._addressing.pools import to_text
from ...._model.listed_networks import Ranges
from ...._rules import pools
from ...db.tables import floating_ip, floating_pool
from .subnet_records import derived_id


@dataclasses.dataclass(frozen=True)
class Pool:
    """A floating pool as its row says it (db/tables_addresses.py), and what it hands out."""

    name: str
    cidr: str
    interface: str
    uuid: str
    display_name: str | None
    description: str
    made_by: str  # id of the project; "": the operator
    port_security_enabled: bool
    mtu: int | None
    isolated: bool
    subnet_name: str | None
    gateway: str | None
    ranges: Ranges

    @property
    def shown_name(self) -> str:
        """The name in the Network API, where names need not be unique."""
        return self.name if self.display_name is None else self.display_name

    @property
    def subnet_uuid(self) -> str:
        """The UUID of its one subnet, which need not be there."""
        return derived_id(self.uuid, 4)


def pools_seen(connection: sa.Connection, number: str | None = None) -> list[Pool]:
    """The floating pools, which every project sees, or the one that is the external network `number`."""
    of_these = sa.true() if number is None else floating_pool.c.uuid == number
    own = sa.select(floating_ip.c.pool, floating_ip.c.address).join(floating_pool).where(of_these)
    addresses: collections.defaultdict[str, list[int]] = collections.defaultdict(list)
    for name, address in connection.execute(own):
        addresses[name].append(address)
    query = sa.select(floating_pool).where(of_these).order_by(floating_pool.c.name)
    rows = connection.execute(query).mappings()
    return [
        Pool(**row, ranges=[(to_text(low), to_text(high)) for low, high in pools.bounds(addresses[row["name"]])])
        for row in rows
    ]


def find_pool(connection: sa.Connection, number: str, of_subnet: bool = False) -> Pool | None:
    """The floating pool that is the external network `number`, or whose subnet that is; None where there is none."""
    if not of_subnet:
        return next(iter(pools_seen(connection, number)), None)
    return next((pool for pool in pools_seen(connection) if pool.subnet_uuid == number), None)
