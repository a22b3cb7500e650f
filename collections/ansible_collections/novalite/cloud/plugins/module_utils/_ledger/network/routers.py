# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Routers of projects. What they stand for is done by each compute host for its own guests, as source NAT.

A network is let out (network.snat) while a router that is up has an interface on it and leads to a floating pool.
"""

from __future__ import annotations

import typing as t
import uuid

import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._errors import NotFoundError, NovaliteError
from ..._json import JsonMapping, JsonObject
from ..db import clock
from ..db.tables import floating_pool, instance, network, vif
from ..db.tables_networking import port, resource_tag, router, router_interface, subnet
from ..identity.quotas import check_quota
from ..queries.lookups import lock_project
from ..queries.network.router_records import Router
from ..queries.network.subnet_records import Subnet, subnet_ids
from . import router_gateways
from .pool_claims import pool_lock
from .ports import drop, insert_port
from .tenant_networks import TenantError
from .vifs import insert_vifs

INTERFACE = "network:router_interface"


def create_router(connection: sa.Connection, project_id: str, attributes: JsonMapping) -> str:
    """Make a router; `attributes` as for update_router. Returns its UUID."""
    lock_project(connection, project_id)
    number, now = str(uuid.uuid4()), clock.seconds(connection)
    values = _values(connection, {"name": "", "description": "", **attributes})
    connection.execute(
        sa.insert(router).values(id=number, project_id=project_id, created_at=now, updated_at=now, **values)
    )
    router_gateways.give(connection, number, values.get("external_pool"), attributes.get("addresses"))
    count = sa.select(sa.func.count()).select_from(router).where(router.c.project_id == project_id)
    check_quota(connection, project_id, "routers", connection.execute(count).scalar_one())
    return number


def update_router(connection: sa.Connection, row: Router, changes: JsonMapping) -> list[str]:
    """Change "name", "description", "admin_state_up", "pool" (the UUID of an external network, or None) and with it
    "addresses" (see router_gateways.give), "enable_snat".

    Returns the hosts whose guests it lets out, or no more. Raises NotFoundError for a pool that there is none of.
    """
    values = _values(connection, changes)
    connection.execute(
        sa.update(router).where(router.c.id == row.id).values(updated_at=clock.seconds(connection), **values)
    )
    if "external_pool" in values:
        router_gateways.give(connection, row.id, values["external_pool"], changes.get("addresses"))
    return settle(connection, _networks_of(connection, row.id))


def delete_router(connection: sa.Connection, row: Router) -> None:
    """Raises TenantError while it has interfaces."""
    if _networks_of(connection, row.id):
        raise TenantError("RouterInUse", f"Router {row.id} still has ports")
    connection.execute(sa.delete(resource_tag).where(resource_tag.c.resource_id == row.id))
    router_gateways.give(connection, row.id, None, None)
    connection.execute(sa.delete(router).where(router.c.id == row.id))


def add_interface(
    connection: sa.Connection, row: Router, of_subnet: Subnet, gateway: str | None, port_id: str | None
) -> tuple[str, list[str]]:
    """Let the router have an interface in a subnet: one that is made for it at the `gateway`'s address, or a port.

    Returns its UUID, and the hosts that are to be told. Raises NovaliteError for a subnet without a gateway, and for
    one that a router has.
    """
    lock_project(connection, row.project_id)
    pool_lock(connection)  # the subnet stays meanwhile
    mine = router_interface.c.subnet_id == of_subnet.id
    if connection.execute(sa.select(router_interface.c.vif_id).where(mine)).first() is not None:
        raise NovaliteError(f"Bad router request: Router already has a port on subnet {of_subnet.id}.")
    if port_id is None:
        if gateway is None:
            raise NovaliteError(
                f"Bad router request: Subnet for router interface must have a gateway IP ({of_subnet.id})."
            )
        if connection.execute(sa.select(subnet.c.id).where(subnet.c.id == of_subnet.id)).first() is None:
            raise NotFoundError(f"Subnet {of_subnet.id} could not be found.")
        port_id = str(uuid.uuid4())
        nic = {"id": port_id, "instance_uuid": None, "network_id": of_subnet.network_id, "position": None}
        insert_vifs(connection, [nic])
        insert_port(connection, port_id, row.project_id, kept=False, device_id=row.id, device_owner=INTERFACE)
    else:
        connection.execute(
            sa.update(port).where(port.c.vif_id == port_id).values(device_id=row.id, device_owner=INTERFACE)
        )
    connection.execute(
        sa.insert(router_interface).values(
            vif_id=port_id,
            router_id=row.id,
            network_id=of_subnet.network_id,
            version=of_subnet.version,
            subnet_id=of_subnet.id,
        )
    )
    return port_id, settle(connection, [of_subnet.network_id])


def remove_interface(connection: sa.Connection, router_id: str, vif_id: str) -> list[str]:
    """Take an interface from the router; the port goes with it. Returns the hosts that are to be told."""
    network_id = connection.execute(
        sa.delete(router_interface)
        .where(router_interface.c.router_id == router_id, router_interface.c.vif_id == vif_id)
        .returning(router_interface.c.network_id)
    ).scalar()
    if network_id is None:
        raise NotFoundError(f"Router {router_id} does not have an interface with id {vif_id}")
    drop(connection, [vif_id])
    return settle(connection, [network_id])


def reaches(connection: sa.Connection, network_uuid: str, ip: int | None, pool: str) -> bool:
    """Tell whether floating IPs of the pool may lead to the address: a subnet of a project's own network needs a router
    to it."""
    if not connection.execute(sa.select(network.c.tenant).where(network.c.uuid == network_uuid)).scalar_one():
        return True
    subnet_id = subnet_ids(connection, [network_uuid]).of(network_uuid, None if ip is None else to_text(ip))
    c = router_interface.c
    led = sa.select(router.c.id).join(router_interface, c.router_id == router.c.id)
    led = led.where(c.subnet_id == subnet_id, router.c.external_pool == pool)
    return connection.execute(led).first() is not None


def settle(connection: sa.Connection, network_ids: t.Collection[int]) -> list[str]:
    """Make network.snat what the routers say; returns the hosts with guests on those networks that this changed."""
    leads_out = (
        sa.select(router.c.id)
        .join(router_interface, router_interface.c.router_id == router.c.id)
        .where(
            router_interface.c.network_id == network.c.id,
            router_interface.c.version == 4,
            router.c.external_pool.is_not(None),
            router.c.enable_snat.is_(True),
            router.c.admin_state_up.is_(True),
        )
        .exists()
    )
    changed: list[int] = []
    for snat in (True, False):
        other = sa.update(network).where(
            network.c.id.in_(sorted(network_ids)),
            network.c.tenant.is_(True),
            network.c.snat.is_(not snat),
            leads_out if snat else ~leads_out,
        )
        changed += connection.execute(other.values(snat=snat).returning(network.c.id)).scalars()
    hosts = (
        sa.select(instance.c.host)
        .join(vif, vif.c.instance_uuid == instance.c.uuid)
        .where(vif.c.network_id.in_(sorted(changed)), instance.c.deleted == 0, instance.c.host.is_not(None))
        .distinct()
    )
    return sorted(connection.execute(hosts).scalars())


def _networks_of(connection: sa.Connection, router_id: str) -> list[int]:
    query = sa.select(router_interface.c.network_id).where(router_interface.c.router_id == router_id)
    return list(connection.execute(query).scalars())


def _values(connection: sa.Connection, attributes: JsonMapping) -> JsonObject:
    values = {
        key: attributes[key] for key in ("name", "description", "admin_state_up", "enable_snat") if key in attributes
    }
    if "pool" in attributes:
        values["external_pool"] = None if attributes["pool"] is None else _pool(connection, attributes["pool"])
    return values


def _pool(connection: sa.Connection, number: str) -> str:
    name = connection.execute(sa.select(floating_pool.c.name).where(floating_pool.c.uuid == number)).scalar()
    if name is None:
        raise NotFoundError(f"Network {number} could not be found.")
    return str(name)
