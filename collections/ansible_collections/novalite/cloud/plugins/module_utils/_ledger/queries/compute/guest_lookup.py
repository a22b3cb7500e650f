# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances by their addresses on a network, and data that only the instance itself gets. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ...._addressing.texts import parse_address
from ...._model.instance import File, Instance
from ...._model.listed_hosts import zone_of
from ...db.tables import compute_host, fixed_ip, instance, network, vif
from ...db.tables_addresses import HOLDER
from ...db.tables_ec2 import ec2_instance
from ..placement.host_states import memberships
from .views import instances_by

_VIF = "vif:"


def instance_at(connection: sa.Connection, network_uuid: str, address: str, host: str) -> Instance | None:
    """The instance on compute host `host` whose interface on the network has `address` (IPv4 or IPv6), or None. Its
    availability zone is that of its host, when it was asked for in none."""
    uuid = uuid_at(connection, network_uuid, address, host)
    servers = instances_by(connection, uuids=[uuid]) if uuid else []
    if not servers:
        return None
    server = servers[0]
    server["availability_zone"] = server["availability_zone"] or _zone(connection, host)
    return server


def uuid_at(connection: sa.Connection, network_uuid: str, address: str, host: str) -> str | None:
    """The UUID of that instance, with one query."""
    try:
        ip = parse_address(address)
    except ValueError:
        return None
    query = (
        sa.select(instance.c.uuid)
        .join_from(vif, instance, instance.c.uuid == vif.c.instance_uuid)
        .join(network, network.c.id == vif.c.network_id)
        .where(network.c.uuid == network_uuid, instance.c.host == host, instance.c.deleted == 0)
    )
    if ip.version == 4:
        # by the address's own row, whatever the number of interfaces on the network
        query = query.join(fixed_ip, sa.and_(fixed_ip.c.network_id == network.c.id, vif.c.id == HOLDER)).where(
            fixed_ip.c.ip == int(ip), fixed_ip.c.owner.startswith(_VIF)
        )
    else:
        query = query.where(vif.c.ipv6 == str(ip))
    return connection.execute(query).scalar()


def user_data_of(connection: sa.Connection, uuid: str) -> str | None:
    """The user data of an instance in base64, as clients sent it; None when there is none."""
    return connection.execute(sa.select(instance.c.user_data).where(instance.c.uuid == uuid)).scalar()


def files_of(connection: sa.Connection, uuid: str) -> list[File]:
    """The files that an instance was launched with."""
    return connection.execute(sa.select(instance.c.files).where(instance.c.uuid == uuid)).scalar() or []


def are_tokens_required(connection: sa.Connection, uuid: str) -> bool:
    """Tell whether the metadata service answers the instance with a session token only (EC2's HttpTokens)."""
    query = sa.select(ec2_instance.c.http_tokens).where(ec2_instance.c.instance_uuid == uuid)
    return connection.execute(query).scalar() == "required"


def _zone(connection: sa.Connection, host: str) -> str | None:
    row = connection.execute(
        sa.select(compute_host.c.zone, compute_host.c.aggregates).where(compute_host.c.name == host)
    ).first()
    return None if row is None else zone_of(row.zone, memberships(connection, {host: row.aggregates})[host])
