# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Address scopes: no two subnet pools of one have a prefix in common."""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import NovaliteError, QuotaError
from ..._json import JsonMapping
from ..db.tables_networking import address_scope, subnet_pool
from ..queries.lookups import lock_project
from ..queries.network.subnet_pool_records import AddressScope, scopes_seen
from .pool_claims import pool_lock
from .tenant_networks import TenantError

MAX_SCOPES = 100  # of a project


def create_scope(connection: sa.Connection, project_id: str, attributes: JsonMapping) -> str:
    """Make an address scope of the project: "name", "ip_version", "shared". Returns its UUID."""
    lock_project(connection, project_id)
    number = str(uuid.uuid4())
    connection.execute(sa.insert(address_scope).values(id=number, project_id=project_id, **attributes))
    count = sa.select(sa.func.count()).select_from(address_scope).where(address_scope.c.project_id == project_id)
    if connection.execute(count).scalar_one() > MAX_SCOPES:
        raise QuotaError(f"address scopes: {MAX_SCOPES} is the limit of a project: delete some")
    return number


def update_scope(connection: sa.Connection, before: AddressScope, changes: JsonMapping) -> None:
    """Change "name" or "shared" of an address scope. One that is shared stays so: others' pools may be in it."""
    if before.shared and not changes.get("shared", True):
        raise NovaliteError(f"Unable to update address scope {before.id}: Shared address scope can't be unshared.")
    if changes:
        connection.execute(sa.update(address_scope).where(address_scope.c.id == before.id).values(**changes))


def delete_scope(connection: sa.Connection, number: str) -> None:
    """Remove an address scope. Raises TenantError while a subnet pool is in it."""
    pool_lock(connection)
    used = sa.select(subnet_pool.c.id).where(subnet_pool.c.address_scope_id == number).limit(1)
    if connection.execute(used).first() is not None:
        raise TenantError(
            "AddressScopeInUse",
            f"Unable to complete operation on address scope {number}. There are one or more subnet pools in use on the "
            "address scope",
        )
    connection.execute(sa.delete(address_scope).where(address_scope.c.id == number))


def check_scope(connection: sa.Connection, project_id: str, number: str, version: int) -> None:
    """Raise NovaliteError if a pool of the project with this IP version cannot be in the address scope `number`."""
    scope = next((scope for scope in scopes_seen(connection, project_id) if scope.id == number), None)
    if scope is None:
        raise NovaliteError(f"Illegal subnetpool association: the project sees no address scope {number}.")
    if scope.ip_version != version:
        raise NovaliteError(
            f"Illegal subnetpool association: address scope {number} is of IPv{scope.ip_version}, and the pool of "
            f"IPv{version}."
        )
