# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""IPv4 addresses that interfaces have besides their first one, which DHCP tells them. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...._addressing.pools import to_text
from ...db.tables import fixed_ip, instance, vif

# An interface that no statement has to join: few have several, and an index knows which
_FURTHER = sa.select(fixed_ip.c.further_of, fixed_ip.c.ip).order_by(fixed_ip.c.owner)
_OF_VIFS = _FURTHER.where(fixed_ip.c.further_of.in_(sa.bindparam("ids", expanding=True)))
WITH_INSTANCES = (
    _FURTHER.join(vif, vif.c.id == fixed_ip.c.further_of)
    .join(instance, instance.c.uuid == vif.c.instance_uuid)
    .where(fixed_ip.c.further_of.is_not(None))
)
OF_INSTANCES = _FURTHER.join(vif, vif.c.id == fixed_ip.c.further_of).where(
    fixed_ip.c.further_of.is_not(None), vif.c.instance_uuid.in_(sa.bindparam("ids", expanding=True))
)


def further_ips(connection: sa.Connection, vif_ids: t.Iterable[str]) -> dict[str, list[str]]:
    """The further addresses of those of these interfaces that have some, in order."""
    return _by_interface(connection, _OF_VIFS, vif_ids)


def further_ips_of_instances(connection: sa.Connection, uuids: t.Iterable[str]) -> dict[str, list[str]]:
    """Interface -> its further addresses, for the interfaces of these instances that have some."""
    return _by_interface(connection, OF_INSTANCES, uuids)


def further_ips_where(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> dict[str, list[str]]:
    """Interface -> its further addresses, where the conditions on vif and instance hold."""
    return _by_interface(connection, WITH_INSTANCES.where(*conditions), ())


def _by_interface(connection: sa.Connection, query: sa.Select[t.Any], ids: t.Iterable[str]) -> dict[str, list[str]]:
    addresses_by_interface: dict[str, list[str]] = {}
    for number, address in connection.execute(query, {"ids": sorted(ids)}):
        addresses_by_interface.setdefault(number, []).append(to_text(address))
    return addresses_by_interface
