# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Subnet pools: prefixes of which projects' subnets get theirs, none twice.

That two prefixes do not overlap is no constraint that a database could decide: whoever draws one, or changes a pool,
holds pool_lock(). That an address family has one default pool, a unique index decides.
"""

from __future__ import annotations

import dataclasses
import typing as t
import uuid

import netaddr
import sqlalchemy as sa

from ..._addressing import prefixes, texts
from ..._errors import ConflictError, NotFoundError, NovaliteError, QuotaError
from ..._json import JsonMapping
from ..db import clock
from ..db.tables import network
from ..db.tables_networking import resource_tag, subnet, subnet_pool
from ..identity.quotas import check_quota
from ..queries.lookups import lock_project
from ..queries.network.subnet_pool_records import SubnetPool, subnet_pools_seen
from .address_scopes import check_scope
from .pool_claims import pool_lock

SHORTEST = {4: 8, 6: 64}  # Neutron's default of min_prefixlen
WIDTH = {4: 32, 6: 128}  # bits of an address
UNIT = {4: 32, 6: 64}  # default_quota counts prefixes of this length
_CIDR = sa.func.coalesce(subnet.c.cidr, sa.case((subnet.c.version == 4, network.c.cidr), else_=network.c.cidr_v6))


def create_subnet_pool(connection: sa.Connection, project_id: str, attributes: JsonMapping) -> str:
    """Make a pool of the project; `attributes` as for update_subnet_pool, and "shared". Returns its UUID."""
    pool_lock(connection)
    lock_project(connection, project_id)
    now = clock.seconds(connection)
    pool = _checked(attributes, str(uuid.uuid4()), project_id, now)
    _check_placed(connection, pool)
    connection.execute(sa.insert(subnet_pool).values(dataclasses.asdict(pool)))
    count = sa.select(sa.func.count()).select_from(subnet_pool).where(subnet_pool.c.project_id == project_id)
    check_quota(connection, project_id, "subnet_pools", connection.execute(count).scalar_one())
    return pool.id


def update_subnet_pool(connection: sa.Connection, before: SubnetPool, changes: JsonMapping) -> None:
    """Make the `changes` of the pool: of the attributes of SubnetPool but "ip_version" and "shared".

    Raises NovaliteError for prefixes that would go, or lengths that cannot be; ConflictError for prefixes that another
    pool of the address scope has.
    """
    pool_lock(connection)
    kept = {**dataclasses.asdict(before), **changes}
    pool = _checked(kept, before.id, before.project_id, before.created_at)
    if pool.ip_version != before.ip_version or not all(
        prefixes.within(prefix, pool.prefixes) for prefix in before.prefixes
    ):
        raise NovaliteError(
            f"Illegal update to prefixes: the prefixes that subnet pool {before.id} has must stay: "
            f"{', '.join(before.prefixes[:5])}; name them with the new ones."
        )
    _check_placed(connection, pool)
    values = {**dataclasses.asdict(pool), "updated_at": clock.seconds(connection)}
    connection.execute(sa.update(subnet_pool).where(subnet_pool.c.id == before.id).values(values))


def delete_subnet_pool(connection: sa.Connection, number: str) -> None:
    """Remove a pool. Raises NovaliteError while a subnet has a prefix of it."""
    pool_lock(connection)
    if _drawn(connection, number):
        raise NovaliteError("Unable to delete subnet pool: Subnet pool has existing allocations.")
    connection.execute(sa.delete(resource_tag).where(resource_tag.c.resource_id == number))
    connection.execute(sa.delete(subnet_pool).where(subnet_pool.c.id == number))


def draw(connection: sa.Connection, pool: SubnetPool, project_id: str, request: JsonMapping) -> str:
    """Return a prefix of the pool for a subnet of the project, under pool_lock().

    `request` has "version", and "cidr", or "prefixlen", or neither for the pool's default. Raises NovaliteError for one
    that cannot be, ConflictError when the pool has no room, QuotaError.
    """
    if request["version"] != pool.ip_version:
        raise NovaliteError(
            f"subnet: ip_version {request['version']} and subnet pool {pool.id} of IPv{pool.ip_version}"
        )
    cidr = request.get("cidr")
    requested_prefix = None if cidr is None else _prefix(cidr, pool.ip_version)
    length: int = request.get("prefixlen") or pool.default_prefixlen
    if requested_prefix is not None:
        length = netaddr.IPNetwork(requested_prefix).prefixlen
    for bound, word, wrong in (
        (pool.min_prefixlen, "minimum", length < pool.min_prefixlen),
        (pool.max_prefixlen, "maximum", length > pool.max_prefixlen),
    ):
        if wrong:
            raise NovaliteError(
                f"Unable to allocate subnet with prefix length {length}, {word} allowed prefix is {bound}."
            )
    drawn = _drawn(connection, pool.id)
    _check_share(pool, project_id, length, drawn)
    taken = [prefix for prefix, _owner in drawn]
    if requested_prefix is None:
        free = prefixes.first_free(pool.prefixes, taken, length)
        if free is None:
            raise ConflictError(
                f"Failed to allocate subnet: Insufficient prefix space to allocate subnet size /{length}: "
                f"delete subnets of subnet pool {pool.id}, or give it more prefixes."
            )
        return free
    if (
        not prefixes.within(requested_prefix, pool.prefixes)
        or prefixes.overlapping([requested_prefix], taken) is not None
    ):
        raise ConflictError(
            f"Failed to allocate subnet: {requested_prefix} is not free in subnet pool {pool.id}: "
            "leave cidr out for one that is."
        )
    return requested_prefix


def _check_share(pool: SubnetPool, project_id: str, length: int, drawn: t.Sequence[tuple[str, str]]) -> None:
    """Raise QuotaError if a prefix of this length is too much for the project."""
    if not pool.default_quota:
        return
    lengths = [netaddr.IPNetwork(prefix).prefixlen for prefix, owner in drawn if owner == project_id]
    used = sum(2.0 ** (UNIT[pool.ip_version] - each) for each in (*lengths, length))
    if used > pool.default_quota:
        raise QuotaError(
            f"Per-tenant subnet pool prefix quota exceeded: {used:.0f} wanted, {pool.default_quota} allowed; delete "
            f"subnets, or have default_quota of subnet pool {pool.id} raised."
        )


def _drawn(connection: sa.Connection, number: str) -> list[tuple[str, str]]:
    """The prefixes that subnets have of the pool, each with the project of its network."""
    query = sa.select(_CIDR, network.c.owner).join(subnet, subnet.c.network_id == network.c.id)
    return [(row[0], row.owner) for row in connection.execute(query.where(subnet.c.subnetpool_id == number))]


def _check_placed(connection: sa.Connection, pool: SubnetPool) -> None:
    """Raise NovaliteError if another pool is the default, and for what the pool's address scope does not let it be."""
    c = subnet_pool.c
    if pool.is_default:
        other = sa.select(c.id).where(c.ip_version == pool.ip_version, c.is_default, c.id != pool.id)
        if (number := connection.execute(other).scalar()) is not None:
            raise NovaliteError(
                f"Invalid input for operation: subnet pool {number} is the default of IPv{pool.ip_version}: make that "
                "one another's no more first; each address family has one."
            )
    if pool.address_scope_id is None:
        return
    check_scope(connection, pool.project_id, pool.address_scope_id, pool.ip_version)
    others = sa.select(c.id, c.prefixes).where(c.address_scope_id == pool.address_scope_id, c.id != pool.id)
    for number, theirs in connection.execute(others):
        if (prefix := prefixes.overlapping(pool.prefixes, theirs)) is not None:
            raise ConflictError(
                f"Failed to associate address scope: {prefix} overlaps subnet pool {number} of address scope "
                f"{pool.address_scope_id}: subnetpools within an address scope must have unique prefixes."
            )


def _checked(attributes: JsonMapping, number: str, project_id: str, created_at: int) -> SubnetPool:
    listed = attributes["prefixes"]
    versions = {netaddr.IPNetwork(_prefix(text)).version for text in listed}
    if len(versions) != 1:
        raise NovaliteError("Cannot mix IPv4 and IPv6 prefixes in a subnet pool: name prefixes of one family.")
    (version,) = versions
    shortest = _length(attributes, "min_prefixlen", SHORTEST[version], version)
    longest = _length(attributes, "max_prefixlen", WIDTH[version], version)
    usual = _length(attributes, "default_prefixlen", shortest, version)
    if not shortest <= usual <= longest:
        raise NovaliteError(
            f"Illegal prefix bounds: min_prefixlen={shortest}, default_prefixlen={usual}, max_prefixlen={longest}: "
            "give them in this order."
        )
    return SubnetPool(
        id=number,
        project_id=project_id,
        name=attributes.get("name", ""),
        description=attributes.get("description", ""),
        ip_version=version,
        prefixes=prefixes.compacted(map(_prefix, listed)),
        min_prefixlen=shortest,
        max_prefixlen=longest,
        default_prefixlen=usual,
        default_quota=attributes.get("default_quota"),
        address_scope_id=attributes.get("address_scope_id"),
        is_default=attributes.get("is_default", False),
        shared=attributes.get("shared", False),
        created_at=created_at,
        updated_at=created_at,
    )


def _length(attributes: JsonMapping, name: str, default: int, version: int) -> int:
    length = int(default if attributes.get(name) is None else attributes[name])
    if not 1 <= length <= WIDTH[version]:
        raise NovaliteError(f"subnet pool: {name} {length}: a prefix of IPv{version} has 1 to {WIDTH[version]} bits")
    return length


def _prefix(text: str, version: int | None = None) -> str:
    try:
        return str(texts.parse_network(text if "/" in text else "", strict=False, version=version).cidr)
    except ValueError:
        raise NovaliteError(f"subnet pool: {text[:45]!r} is not a range: write for example 10.8.0.0/16") from None


def pool_of(connection: sa.Connection, project_id: str | None, number: str) -> SubnetPool:
    """The pool with this UUID, if the project sees it (None: any). Raises NotFoundError."""
    for pool in subnet_pools_seen(connection, project_id):
        if pool.id == number.lower():
            return pool
    raise NotFoundError(f"Subnet pool {number} could not be found.")
