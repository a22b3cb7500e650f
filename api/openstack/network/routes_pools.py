# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnet pools and address scopes: a project's own, and those that an administrator shares with all."""

from __future__ import annotations

import typing as t

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.db.engine import Connection
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network import pools
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.operations.network.pools import (
    PoolValues,
    ScopeValues,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.network.subnet_pool_records import (
    default_pool,
)

from ...web.bodies import Answer, Record
from ...web.context import current
from ...web.errors import BadRequestError, in_words
from ...web.services import takes, writes, writes_checked
from ...work.calls import calling
from . import records, schemas
from .blueprint import network
from .changes import OWNER, named

CREATE_POOL = schemas.one_or_many("subnetpool", schemas.CREATE_SUBNET_POOL, ["name", "prefixes"])
UPDATE_POOL = schemas.wrapped("subnetpool", schemas.UPDATE_SUBNET_POOL)
CREATE_SCOPE = schemas.one_or_many("address_scope", schemas.CREATE_ADDRESS_SCOPE, ["name", "ip_version"])
UPDATE_SCOPE = schemas.wrapped("address_scope", schemas.UPDATE_ADDRESS_SCOPE)

records.put_into(network, "subnetpools", "network:subnet_pools:read")
records.put_into(network, "address_scopes", "network:subnet_pools:read")


@network.post("/subnetpools", "network:subnet_pools:write", takes(CREATE_POOL), writes_checked)
def create_subnet_pools(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        with in_words(OWNER):
            return pools.create_pool(calling(connection), named(item), _pool_values(item))

    return records.create_some(connection, "subnetpools", body, create), 201


@network.put("/subnetpools/<pool_id>", "network:subnet_pools:write", takes(UPDATE_POOL), writes_checked)
def update_subnet_pool(connection: Connection, body: Record, pool_id: str) -> Answer:
    before = records.subnet_pool_row(connection, pool_id)
    pools.update_pool(calling(connection), before, _pool_values(body))
    return {"subnetpool": records.find(connection, "subnetpools", before.id)}, 200


@network.delete("/subnetpools/<pool_id>", "network:subnet_pools:write", writes_checked)
def delete_subnet_pool(connection: Connection, pool_id: str) -> Answer:
    pools.delete_pool(calling(connection), records.subnet_pool_row(connection, pool_id))
    return "", 204


def _pool_values(body: Record) -> PoolValues:
    return t.cast("PoolValues", {name: body[name] for name in PoolValues.__annotations__ if name in body})


@network.post("/address-scopes", "network:subnet_pools:write", takes(CREATE_SCOPE), writes_checked)
def create_address_scopes(connection: Connection, body: Record) -> Answer:
    def create(item: Record) -> str:
        values: ScopeValues = {"name": item["name"], "ip_version": int(item["ip_version"])}
        values["shared"] = item.get("shared", False)
        with in_words(OWNER):
            return pools.create_scope(calling(connection), named(item), values)

    return records.create_some(connection, "address_scopes", body, create), 201


@network.put("/address-scopes/<scope_id>", "network:subnet_pools:write", takes(UPDATE_SCOPE), writes_checked)
def update_address_scope(connection: Connection, body: Record, scope_id: str) -> Answer:
    before = records.address_scope_row(connection, scope_id)
    pools.update_scope(calling(connection), before, t.cast("ScopeValues", body))
    return {"address_scope": records.find(connection, "address_scopes", before.id)}, 200


@network.delete("/address-scopes/<scope_id>", "network:subnet_pools:write", writes)
def delete_address_scope(connection: Connection, scope_id: str) -> Answer:
    pools.delete_scope(calling(connection), records.address_scope_row(connection, scope_id))
    return "", 204


def from_pool(connection: Connection, body: Record) -> Record:
    """The source of a new subnet's range: "cidr", or "subnetpool_id" with what is wanted of the pool, and "version"."""
    number, cidr, length = (body.get(name) for name in ("subnetpool_id", "cidr", "prefixlen"))
    if body.get("use_default_subnetpool"):
        if number is not None:
            raise BadRequestError("subnetpool_id and use_default_subnetpool cannot both be specified.")
        if "ip_version" not in body:
            raise BadRequestError("subnet: use_default_subnetpool needs ip_version.")
        number = default_pool(connection, current().reach, int(body["ip_version"]))
    if cidr is not None and length is not None:
        raise BadRequestError("cidr and prefixlen must not be supplied together.")
    if cidr is None and body.get("allocation_pools"):
        raise BadRequestError("allocation_pools allowed only for specific subnet requests: name the cidr, too.")
    if number is None:
        if cidr is None:
            raise BadRequestError("Bad subnets request: a subnetpool must be specified in the absence of a cidr.")
        if "ip_version" not in body:
            raise BadRequestError("Invalid input for operation: subnet: cidr needs ip_version.")
        return {"cidr": cidr}
    pool = records.subnet_pool_row(connection, number)
    drawn: Record = {"version": pool.ip_version, "subnetpool_id": pool.id}
    if cidr is not None:
        drawn["cidr"] = cidr
    if length is not None:
        drawn["prefixlen"] = int(length)
    return drawn
