# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on subnet pools and address scopes: a project's own, and those that an administrator shares with all."""

from __future__ import annotations

import typing as t

from ...._errors import ForbiddenError
from ...network import address_scopes, subnet_pools
from ...queries.network.subnet_pool_records import AddressScope, SubnetPool
from ..call import Call
from .networks import OPERATE
from .owners import Named, check_for_all, owner_of


class PoolValues(t.TypedDict, total=False):
    """Values of a subnet pool: those of SubnetPool."""

    name: str
    description: str
    prefixes: list[str]
    min_prefixlen: int | str | None
    max_prefixlen: int | str | None
    default_prefixlen: int | str | None
    default_quota: int | None
    address_scope_id: str | None
    is_default: bool
    shared: bool


class ScopeValues(t.TypedDict, total=False):
    """Values of an address scope. The version of IP is that of a new one."""

    name: str
    ip_version: int
    shared: bool


def create_pool(call: Call, named: Named, values: PoolValues) -> str:
    """Make a subnet pool; return its UUID. Raises ForbiddenError, and as owners.owner_of() and
    subnet_pools.create_subnet_pool()."""
    check_for_all(call, "subnetpool", {name: values.get(name) for name in ("shared", "is_default")})
    return subnet_pools.create_subnet_pool(call.connection, owner_of(call, named), values)


def update_pool(call: Call, seen: SubnetPool, values: PoolValues) -> None:
    """Change the subnet pool. Raises ForbiddenError, and as subnet_pools.update_subnet_pool()."""
    check_owner(call, seen)
    check_for_all(call, "subnetpool", {"is_default": values.get("is_default")})
    subnet_pools.update_subnet_pool(call.connection, seen, values)


def delete_pool(call: Call, seen: SubnetPool) -> None:
    """Remove the subnet pool. Raises ForbiddenError, and as subnet_pools.delete_subnet_pool()."""
    check_owner(call, seen)
    subnet_pools.delete_subnet_pool(call.connection, seen.id)


def create_scope(call: Call, named: Named, values: ScopeValues) -> str:
    """Make an address scope; return its UUID. Raises ForbiddenError, and as owners.owner_of() and
    address_scopes.create_scope()."""
    check_for_all(call, "address_scope", {"shared": values.get("shared")})
    return address_scopes.create_scope(call.connection, owner_of(call, named), values)


def update_scope(call: Call, seen: AddressScope, values: ScopeValues) -> None:
    """Change the name of an address scope, or share it. Raises ForbiddenError, and as address_scopes.update_scope()."""
    check_owner(call, seen)
    check_for_all(call, "address_scope", {"shared": values.get("shared")})
    address_scopes.update_scope(call.connection, seen, values)


def delete_scope(call: Call, seen: AddressScope) -> None:
    """Remove an address scope. Raises ForbiddenError, and as address_scopes.delete_scope()."""
    check_owner(call, seen)
    address_scopes.delete_scope(call.connection, seen.id)


def check_owner(call: Call, seen: SubnetPool | AddressScope) -> None:
    """Raise ForbiddenError for what another project shares with the caller's."""
    if seen.project_id != call.project_id and not call.permits(OPERATE):
        raise ForbiddenError(
            f"{seen.id} is another project's, which shares it: only that project, or an administrator, may"
        )
