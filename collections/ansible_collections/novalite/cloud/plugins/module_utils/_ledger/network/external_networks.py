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
from ..db.tables import floating_pool, network
from ..db.tables_networking import resource_tag, router
from ..identity.quotas import check_quota
from ..queries import counts
from ..queries.lookups import lock_project
from ..queries.network.carriers import PHYSICAL, PREFIX, TYPE, Carrier
from ..queries.network.network_records import Network
from ..queries.network.pool_records import Pool, pools_seen
from ..queries.network.subnet_records import derived_id, subnets_of_network
from . import networks, subnets, tenant_networks
from .floating_pools import NAME_LENGTH, remove_floating_pools, take_all, write_floating_pools
from .pool_claims import pool_lock
from .subnets import allocation_ranges, host_address
from .tenant_networks import TenantError, take_out

NONE = ""  # range of a pool that has no subnet yet
# What a floating pool is, whatever is asked for
_ALWAYS = {"admin_state_up": True, "shared": False, "is_default": False}


def check_attributes(attributes: JsonMapping) -> None:
    """Raise NovaliteError for attributes that an external network cannot have."""
    for name, always in _ALWAYS.items():
        if attributes.get(name, always) != always:
            raise NovaliteError(
                f"Invalid input for {name}. Reason: an external network is a floating pool: all projects take floating "
                f"IPs from it and none puts ports on it; leave {name} out."
            )


def create_external(
    connection: sa.Connection, project_id: str, attributes: JsonMapping, interfaces: t.Collection[str]
) -> str:
    """Record an external network on one of the hosts' `interfaces`, made by the project; returns its UUID.

    `attributes` are those of tenant_networks.create_network() and provider_networks. Raises QuotaError, and
    NovaliteError for what cannot be.
    """
    check_attributes(attributes)
    interface, number = _interface(attributes, interfaces), str(uuid.uuid4())
    lock_project(connection, project_id)
    pool_lock(connection)
    name = attributes.get("name") or f"external-{number[:8]}"
    values = {key: attributes[key] for key in ("description", "port_security_enabled", "mtu") if key in attributes}
    _insert(connection, uuid=number, made_by=project_id, display_name=name, interface=interface, **values)
    check_quota(connection, project_id, "networks", counts.networks(connection, project_id))
    return number


def _insert(connection: sa.Connection, **values: t.Any) -> None:
    """Record a pool without addresses. Its handle is the name that it is shown by, where no other pool has it."""
    number, shown, handle = values["uuid"], values["display_name"], floating_pool.c.name
    try:
        checked_names("floating pool", [{"name": shown}], NAME_LENGTH)
        free = connection.execute(sa.select(handle).where(handle == shown)).first() is None
    except NovaliteError:  # the Network API's names may be longer, and empty
        free = False
    name = shown if free else f"external-{number[:8]}"
    connection.execute(sa.insert(floating_pool).values(name=name, cidr=NONE, **values))


def update_external(connection: sa.Connection, pool: Pool, changes: JsonMapping) -> None:
    """Write "name", "description" or "port_security_enabled" of the external network. Raises TenantError for what no
    floating pool can be."""
    if changes.get("shared"):
        raise _conflict(pool.uuid, "shared, since servers have no ports on it: they take floating IPs from it")
    if not changes.get("admin_state_up", True):
        raise _conflict(pool.uuid, "down, since it lies on an interface of the hosts, which carries others, too")
    values = {key: changes[key] for key in ("description", "port_security_enabled") if key in changes}
    if "name" in changes:
        values["display_name"] = changes["name"]  # the handle stays: playbooks and hosts know the pool by it
    if values:
        connection.execute(sa.update(floating_pool).where(floating_pool.c.name == pool.name).values(**values))


def make_external(connection: sa.Connection, row: Network, interfaces: t.Collection[str]) -> None:
    """Make a floating pool of the network `row`, with the same UUID, subnet and tags.

    It lies on its own interface, or on the only one of `interfaces` where it has none. Raises TenantError for a network
    with ports, and for one that no floating pool can be.
    """
    row = networks.locked(connection, row)
    for is_so, why in (
        (row.owner == "", "external while it is shared, since servers have no ports on external networks"),
        (not row.admin_state_up, "external while it is down"),
        (row.is_default, "external while servers are put on it by default"),
        (row.vlan is not None, "external: it lies on a VLAN, and external networks are flat"),
    ):
        if is_so:
            raise _conflict(row.uuid, why)
    interface = row.bridge_interface or (min(interfaces) if len(interfaces) == 1 else None)
    if interface is None:
        raise _conflict(row.uuid, "external: NOVALITE_PHYSICAL_NETWORKS names no single interface that it could lie on")
    subnets_there = subnets_of_network(connection, row)
    for each in subnets_there:
        if each.version != 4 or each.id != derived_id(row.uuid, 4) or each.subnetpool_id is not None:
            raise _conflict(
                row.uuid,
                f"external with the subnet {each.id}: an external network has the one subnet of IPv4 that it got "
                "first, of no subnet pool",
            )
    take_out(connection, row)
    _insert(
        connection,
        uuid=row.uuid,
        made_by=row.made_by or row.owner,
        display_name=row.name if row.display_name is None else row.display_name,
        interface=interface,
        **{key: getattr(row, key) for key in ("description", "port_security_enabled", "mtu", "isolated")},
    )
    for each in subnets_there:
        attributes = {"cidr": each.cidr, "gateway": each.gateway, "pools": each.pools, "name": each.name}
        (pool,) = pools_seen(connection, row.uuid)
        create_subnet(connection, pool, attributes)


def make_internal(
    connection: sa.Connection, pool: Pool, project_id: str, how: Carrier, interfaces: t.Collection[str]
) -> Network:
    """Make a network of the floating pool, with the same UUID, subnet and tags: its project's, or else of `project_id`.
    Returns it.

    What was on no interface of the hosts is carried as projects' networks are (`how`). Raises TenantError while a
    router leads there, ConflictError while somebody has an address of it.
    """
    pool_lock(connection)
    led = _router_to(connection, pool)
    if led is not None:
        raise TenantError(
            "ExternalNetworkInUse",
            f"External network {pool.uuid} cannot be updated to be made non-external, since it has existing gateway "
            f"ports: the router {led} leads there.",
        )
    if not pool.isolated and pool.interface not in interfaces:
        raise _conflict(
            pool.uuid, f"made non-external: NOVALITE_PHYSICAL_NETWORKS does not name its interface {pool.interface}"
        )
    remove_floating_pools(connection, [{"name": pool.name}])
    values = {"name": pool.shown_name, **{key: getattr(pool, key) for key in ("description", "mtu")}}
    values["port_security_enabled"] = pool.port_security_enabled
    carrier = how if pool.isolated else Carrier("flat_dhcp", pool.interface)
    number = tenant_networks.create_network(connection, pool.made_by or project_id, values, carrier, pool.uuid)
    made = Network.of(connection.execute(sa.select(network).where(network.c.uuid == number)).mappings().one())
    if pool.cidr != NONE:
        attributes = {"version": 4, "cidr": pool.cidr, "gateway": pool.gateway, "pools": pool.ranges}
        attributes["name"] = pool.subnet_name or ""
        subnets.create_subnet(connection, made, attributes)
        made = networks.locked(connection, made)
    return made


def _conflict(number: str, why: str) -> TenantError:
    return TenantError("Conflict", f"Unable to complete operation on network {number}: it cannot be {why}.")


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

    `attributes`: "name", "cidr", "pools" (first and last addresses; none: all but the gateway), "gateway" (not there:
    the first address; None: there is none). Raises TenantError where it has a subnet,
    NovaliteError for addresses that cannot be, QuotaError, ConflictError for those that are handed out elsewhere.
    """
    if pool.cidr != NONE:
        raise TenantError("SubnetInUse", f"Unable to create the subnet: the external network {pool.uuid} has one.")
    cidr = pools.parse_floating_cidr("subnet", texts.without_host_bits(attributes.get("cidr") or ""))
    small = cidr.size <= 2  # it has hosts' addresses alone
    gateway = attributes.get("gateway", None if small else str(cidr[1]))
    if gateway is not None:
        gateway = str(host_address("gateway_ip", gateway, cidr))
    bounds, ranges = attributes.get("pools") or None, None
    if bounds or not small:
        ranges = [f"{first}-{last}" for first, last in allocation_ranges(cidr, gateway, bounds)]
    item = {"name": pool.name, "cidr": str(cidr), "addresses": ranges, "interface": None}
    write_floating_pools(connection, [item])
    own = sa.update(floating_pool).where(floating_pool.c.name == pool.name)
    connection.execute(own.values(subnet_name=attributes.get("name"), gateway=gateway))
    if pool.made_by:
        check_quota(connection, pool.made_by, "subnets", counts.subnets(connection, pool.made_by))
    return pool.subnet_uuid


def delete_subnet(connection: sa.Connection, pool: Pool) -> None:
    """Take the addresses of the external network. Raises ConflictError for one that somebody has."""
    take_all(connection, pool.name)
    emptied = sa.update(floating_pool).where(floating_pool.c.name == pool.name)
    connection.execute(emptied.values(cidr=NONE, subnet_name=None, gateway=None))


def delete_external(connection: sa.Connection, pool: Pool) -> None:
    """Remove the external network. Raises ConflictError while somebody has an address of it, TenantError while a router
    leads there."""
    led = _router_to(connection, pool)
    if led is not None:
        raise TenantError(
            "NetworkInUse", f"Unable to complete operation on network {pool.uuid}: the router {led} leads there."
        )
    remove_floating_pools(connection, [{"name": pool.name}])
    gone = resource_tag.c.resource_id.in_([pool.uuid, pool.subnet_uuid])
    connection.execute(sa.delete(resource_tag).where(gone))


def _router_to(connection: sa.Connection, pool: Pool) -> str | None:
    return connection.execute(sa.select(router.c.id).where(router.c.external_pool == pool.name)).scalar()
