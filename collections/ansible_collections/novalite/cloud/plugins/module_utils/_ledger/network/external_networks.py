# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""External networks: floating pools as the Network API's administrators make them, first without an address, then with
the one subnet that they get."""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._addressing import texts
from ..._errors import NovaliteError
from ..._json import JsonMapping
from ..._rules import pools
from ..._rules.records import checked_names
from ..db.tables import floating_pool
from ..db.tables_networking import router
from ..queries.network_records import Pool, pool_network_id
from ..queries.subnet_records import derived_id
from .floating_pools import NAME_LENGTH, remove_floating_pools, take_all, write_floating_pools
from .pool_claims import pool_lock
from .provider_networks import PHYSICAL, PREFIX, TYPE
from .subnets import allocation_ranges, host_address
from .tenant_networks import TenantError

NONE = ""  # range of a pool that has no subnet yet
# What a floating pool is, whatever is asked for
_ALWAYS = {"admin_state_up": True, "shared": False, "is_default": False, "router:external": True}


def check_attributes(attributes: JsonMapping) -> None:
    """Raise NovaliteError for attributes that an external network cannot have."""
    for name, always in _ALWAYS.items():
        if attributes.get(name, always) != always:
            raise NovaliteError(
                f"Invalid input for {name}. Reason: an external network is a floating pool: all projects take floating "
                f"IPs from it and none puts ports on it; leave {name} out."
            )


def create_external(connection: sa.Connection, attributes: JsonMapping, interfaces: t.Collection[str]) -> str:
    """Record an external network on one of the hosts' `interfaces`; returns its UUID.

    `attributes` are Neutron's. Raises TenantError for a name that another one has, NovaliteError for what cannot be.
    """
    check_attributes(attributes)
    name = attributes.get("name") or f"external-{uuid.uuid4().hex[:8]}"
    checked_names("floating pool", [{"name": name}], NAME_LENGTH)
    interface = _interface(attributes, interfaces)
    pool_lock(connection)
    if connection.execute(sa.select(floating_pool.c.name).where(floating_pool.c.name == name)).first() is not None:
        raise TenantError("NetworkExists", f"Unable to create the network. There is an external network '{name}'.")
    connection.execute(sa.insert(floating_pool).values(name=name, cidr=NONE, interface=interface))
    return pool_network_id(name)


def _interface(attributes: JsonMapping, interfaces: t.Collection[str]) -> str:
    kind = attributes.get(f"{PREFIX}{TYPE}") or "flat"
    if kind != "flat":
        raise NovaliteError(
            f"Invalid input for operation: network_type value '{kind}' not supported: external networks are flat."
        )
    interface = attributes.get(f"{PREFIX}{PHYSICAL}") or (min(interfaces) if len(interfaces) == 1 else None)
    if interface not in interfaces:
        known = ", ".join(sorted(interfaces)) or "none"
        raise NovaliteError(
            f"Invalid input for operation: physical_network '{interface or ''}' unknown for flat provider network. "
            f"NOVALITE_PHYSICAL_NETWORKS names these: {known}."
        )
    return str(interface)


def create_subnet(connection: sa.Connection, pool: Pool, attributes: JsonMapping) -> str:
    """Give the external network its addresses; returns the subnet's UUID.

    `attributes`: "cidr", "allocation_pools" (ranges of "start" and "end"; None: all but the gateway), "gateway_ip" (not
    there: the first address; None: there is none). Raises TenantError where it has a subnet, NovaliteError for
    addresses that cannot be, ConflictError for those that are handed out elsewhere.
    """
    if pool.cidr != NONE:
        raise TenantError("SubnetInUse", f"Unable to create the subnet: the external network {pool.name} has one.")
    cidr = pools.parse_floating_cidr("subnet", texts.without_host_bits(attributes.get("cidr") or ""))
    small = cidr.size <= 2  # it has hosts' addresses alone
    gateway = attributes.get("gateway_ip", None if small else str(cidr[1]))
    if gateway is not None:
        gateway = str(host_address("gateway_ip", gateway, cidr))
    listed = attributes.get("allocation_pools")
    bounds = [(each["start"], each["end"]) for each in listed] if listed else None
    ranges = None
    if bounds or not small:
        ranges = [f"{first}-{last}" for first, last in allocation_ranges(cidr, gateway, bounds)]
    item = {"name": pool.name, "cidr": str(cidr), "addresses": ranges, "interface": None}
    write_floating_pools(connection, [item])
    return derived_id(pool_network_id(pool.name), 4)


def delete_subnet(connection: sa.Connection, pool: Pool) -> None:
    """Take the addresses of the external network. Raises ConflictError for one that somebody has."""
    take_all(connection, pool.name)
    emptied = sa.update(floating_pool).where(floating_pool.c.name == pool.name)
    connection.execute(emptied.values(cidr=NONE))


def delete_external(connection: sa.Connection, pool: Pool) -> None:
    """Remove the external network. Raises ConflictError while somebody has an address of it, TenantError while a router
    leads there."""
    led = connection.execute(sa.select(router.c.id).where(router.c.external_pool == pool.name)).scalar()
    if led is not None:
        raise TenantError(
            "NetworkInUse",
            f"Unable to complete operation on network {pool_network_id(pool.name)}: the router {led} leads there.",
        )
    remove_floating_pools(connection, [{"name": pool.name}])
