# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnet pools and address scopes as a project sees them. Reads only."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from ...._errors import NovaliteError
from ...db.tables_networking import address_scope, subnet_pool


@dataclasses.dataclass(frozen=True)
class AddressScope:
    """An address scope of a project."""

    id: str
    project_id: str
    name: str
    ip_version: int
    shared: bool


def scopes_seen(connection: sa.Connection, project_id: str | None) -> list[AddressScope]:
    """The project's own address scopes and those that are shared (None: all projects')."""
    c = address_scope.c
    mine = sa.true() if project_id is None else sa.or_(c.project_id == project_id, c.shared)
    query = sa.select(address_scope).where(mine).order_by(c.name, c.id)
    return [AddressScope(**row) for row in connection.execute(query).mappings()]


@dataclasses.dataclass(frozen=True)
class SubnetPool:
    """A subnet pool. Times are in seconds since the epoch."""

    id: str
    project_id: str
    name: str
    description: str
    ip_version: int
    prefixes: list[str]
    min_prefixlen: int
    max_prefixlen: int
    default_prefixlen: int
    default_quota: int | None  # of a project: IPv4 addresses, or /64s of IPv6
    address_scope_id: str | None
    is_default: bool
    shared: bool
    created_at: int
    updated_at: int


def subnet_pools_seen(connection: sa.Connection, project_id: str | None) -> list[SubnetPool]:
    """The project's own pools and those that are shared (None: all projects')."""
    mine = sa.true() if project_id is None else sa.or_(subnet_pool.c.project_id == project_id, subnet_pool.c.shared)
    query = sa.select(subnet_pool).where(mine).order_by(subnet_pool.c.created_at, subnet_pool.c.id)
    return [SubnetPool(**row) for row in connection.execute(query).mappings()]


def default_pool(connection: sa.Connection, project_id: str | None, version: int) -> str:
    """The UUID of the default pool of this IP version. Raises NovaliteError where there is none."""
    for pool in subnet_pools_seen(connection, project_id):
        if pool.is_default and pool.ip_version == version:
            return pool.id
    raise NovaliteError(f"No default subnetpool found for IPv{version}: name one in subnetpool_id.")
