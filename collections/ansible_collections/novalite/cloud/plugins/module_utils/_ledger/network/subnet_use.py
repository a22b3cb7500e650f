# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Interfaces that have an address of a subnet, for which it stays."""

from __future__ import annotations

import sqlalchemy as sa

from ..db.tables import fixed_ip, instance, vif
from ..db.tables_addresses import HELD_ALL
from ..db.tables_networking import router_interface
from ..queries.network.subnet_records import Subnet
from .pool_claims import within
from .tenant_networks import TenantError


def check_unused(connection: sa.Connection, record: Subnet, last: bool) -> None:
    """Raise TenantError while an interface has an address of the subnet, or a router one in it.

    The `last` one of IPv4 stays for servers, too, which have yet to get their address.
    """
    if record.version == 4:
        has: sa.ColumnElement[bool] = sa.select(fixed_ip.c.ip).where(HELD_ALL, within(record.cidr)).exists()
        has = sa.or_(has, vif.c.instance_uuid.is_not(None)) if last else has
    else:
        has = vif.c.ipv6.is_not(None)
    routed = (
        sa.select(router_interface.c.vif_id)
        .where(router_interface.c.vif_id == vif.c.id, router_interface.c.subnet_id == record.id)
        .exists()
    )
    used = (
        sa.select(vif.c.id)
        .outerjoin(instance, instance.c.uuid == vif.c.instance_uuid)
        .where(
            vif.c.network_id == record.network_id,
            sa.or_(vif.c.instance_uuid.is_(None), instance.c.deleted == 0),
            sa.or_(has, routed),
        )
    )
    if connection.execute(used.limit(1)).first() is not None:
        raise in_use(record)


def in_use(record: Subnet) -> TenantError:
    return TenantError(
        "SubnetInUse",
        f"Unable to complete operation on subnet {record.id}: One or more ports have an IP allocation from this "
        "subnet.",
    )
