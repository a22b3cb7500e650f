# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routers with their interfaces and gateways. Reads only."""

from __future__ import annotations

import dataclasses
import typing as t

import sqlalchemy as sa

from ...._addressing.pools import to_text
from ...db.tables import floating_ip, floating_pool, network
from ...db.tables_networking import router, router_interface


@dataclasses.dataclass(frozen=True)
class Router:
    """A router of a project. Times are in seconds since the epoch."""

    id: str
    project_id: str
    name: str
    description: str
    admin_state_up: bool
    external_pool: str | None  # the floating pool that it leads to; None: nowhere
    enable_snat: bool
    created_at: int
    updated_at: int
    network_uuid: str | None  # the pool's, as an external network
    addresses: tuple[str, ...] = ()  # its own ones in that pool


@dataclasses.dataclass(frozen=True)
class RouterInterface:
    """A router's interface in a subnet."""

    vif_id: str
    router_id: str
    network_id: int
    version: int  # of IP
    subnet_id: str
    network_uuid: str


def routers_of(connection: sa.Connection, project_id: str | None, number: str | None = None) -> list[Router]:
    """The project's routers (None: all projects'), or the one with this UUID."""
    mine = sa.true() if project_id is None else router.c.project_id == project_id
    query = sa.select(router, floating_pool.c.uuid.label("network_uuid")).outerjoin(floating_pool)
    query = query.where(mine if number is None else sa.and_(mine, router.c.id == number))
    rows = connection.execute(query.order_by(router.c.created_at, router.c.id)).mappings().all()
    addresses = addresses_of(connection, [row["id"] for row in rows])
    return [Router(**row, addresses=addresses.get(row["id"], ())) for row in rows]


def interfaces(connection: sa.Connection, router_id: str) -> list[RouterInterface]:
    """The router's interfaces."""
    rows = connection.execute(
        sa.select(router_interface, network.c.uuid.label("network_uuid"))
        .join(network, network.c.id == router_interface.c.network_id)
        .where(router_interface.c.router_id == router_id)
        .order_by(router_interface.c.network_id, router_interface.c.version, router_interface.c.subnet_id)
    ).mappings()
    return [RouterInterface(**interface) for interface in rows]


def addresses_of(connection: sa.Connection, numbers: t.Collection[str]) -> dict[str, tuple[str, ...]]:
    """Router -> its gateway addresses."""
    table, addresses = floating_ip, dict[str, tuple[str, ...]]()
    query = sa.select(table.c.router_id, table.c.address).where(table.c.router_id.in_(list(numbers)))
    for number, address in connection.execute(query.order_by(table.c.address)):
        addresses[number] = (*addresses.get(number, ()), to_text(address))
    return addresses
