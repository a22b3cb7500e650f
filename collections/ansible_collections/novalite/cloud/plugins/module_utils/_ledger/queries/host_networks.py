# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks on compute hosts, and each host's members and addresses there. Reads only, in few queries."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._addressing.pools import to_text
from ..._json import JsonObject
from ..._model.instance import Network
from ..db.tables import fixed_ip, floating_ip, floating_pool, instance, network, vif
from ..db.tables_addresses import HELD, LED_TO, OF_HOST
from ..db.tables_migrations import UNDER_WAY, migration

Floating = dict[tuple[int, str], list[tuple[str, dict[str, str]]]]
Guests = dict[int, dict[str, list["tuple[str, JsonObject]"]]]
Members = dict[int, dict[str, set[str]]]  # id of a network -> host -> UUIDs of its instances there


def members(
    connection: sa.Connection, condition: sa.ColumnElement[bool], hosts: t.Iterable[str] | None = None
) -> Members:
    """The instances on each host, of all or of these `hosts`, of the networks that meet `condition`. One that moves is
    on both: of a network that it comes to nothing may be taken away meanwhile."""
    placed = sa.select(vif.c.network_id, instance.c.host, instance.c.uuid).select_from(_vifs()).where(condition)
    both = [_of(placed.where(instance.c.host.is_not(None)), instance.c.host, hosts)]
    moving = _vifs().join(migration, migration.c.instance_uuid == instance.c.uuid)
    for end in (migration.c.source_host, migration.c.dest_host):
        coming = sa.select(vif.c.network_id, end, instance.c.uuid).select_from(moving)
        under_way = sa.and_(migration.c.status.in_(UNDER_WAY), end.is_not(None))
        both.append(_of(coming.where(condition, under_way), end, hosts))
    found: Members = {}
    for network_id, host, uuid in connection.execute(sa.union_all(*both)):
        found.setdefault(network_id, {}).setdefault(host, set()).add(uuid)
    return found


def _vifs() -> sa.Join:
    """The interfaces of instances that are there, with their networks."""
    there = sa.and_(instance.c.uuid == vif.c.instance_uuid, instance.c.deleted == 0)
    return vif.join(instance, there).join(network, network.c.id == vif.c.network_id)


def _of(query: sa.Select[t.Any], column: sa.ColumnElement[t.Any], hosts: t.Iterable[str] | None) -> sa.Select[t.Any]:
    return query if hosts is None else query.where(column.in_(sorted(hosts)))


def networks(connection: sa.Connection, ids: t.Iterable[int]) -> dict[int, Network]:
    """The networks' rows, by id."""
    rows = connection.execute(sa.select(network).where(network.c.id.in_(sorted(ids)))).mappings()
    return {row["id"]: t.cast(Network, dict(row)) for row in rows}


def addresses(connection: sa.Connection, ids: t.Iterable[int], hosts: t.Iterable[str]) -> dict[tuple[int, str], str]:
    """(network, host) -> the host's own address there."""
    owners = {OF_HOST + host: host for host in hosts}
    rows = connection.execute(
        sa.select(fixed_ip.c.network_id, fixed_ip.c.owner, fixed_ip.c.ip).where(
            fixed_ip.c.network_id.in_(sorted(ids)), fixed_ip.c.owner.in_(sorted(owners))
        )
    )
    return {(row.network_id, owners[row.owner]): to_text(row.ip) for row in rows}


def floating(connection: sa.Connection, hosts: t.Iterable[str]) -> Floating:
    """(network, host) -> the floating IPs of its instances there, each with the UUID of its instance."""
    rows = connection.execute(
        sa.select(
            vif.c.network_id,
            instance.c.host,
            instance.c.uuid,
            LED_TO.label("ip"),
            floating_ip.c.address,
            floating_pool.c.interface,
        )
        .select_from(floating_ip)
        .join(floating_pool, floating_pool.c.name == floating_ip.c.pool)
        .join(vif, vif.c.id == floating_ip.c.vif_id)
        .join(instance, instance.c.uuid == vif.c.instance_uuid)
        .join(fixed_ip, HELD)
        .where(instance.c.deleted == 0, instance.c.host.in_(sorted(hosts)))
        .order_by(floating_ip.c.address)
    )
    found: Floating = {}
    for row in rows:
        entry = {"fixed": to_text(row.ip), "floating": to_text(row.address), "interface": row.interface}
        found.setdefault((row.network_id, row.host), []).append((row.uuid, entry))
    return found


def guests(connection: sa.Connection, ids: t.Iterable[int]) -> Guests:
    """Network -> host -> (UUID, name as the module `dhcp` takes it) of each instance that has an address there."""
    rows = connection.execute(
        sa.select(vif.c.network_id, vif.c.ipv6, instance.c.host, instance.c.uuid, instance.c.hostname, fixed_ip.c.ip)
        .join(instance, instance.c.uuid == vif.c.instance_uuid)
        .join(fixed_ip, HELD)
        .where(instance.c.deleted == 0, instance.c.host.is_not(None), vif.c.network_id.in_(sorted(ids)))
        .order_by(fixed_ip.c.ip)
    )
    found: Guests = {}
    for row in rows:
        name = named(row.hostname, to_text(row.ip), row.ipv6)
        found.setdefault(row.network_id, {}).setdefault(row.host, []).append((row.uuid, name))
    return found


def named(hostname: str, ip: str | None, ipv6: str | None) -> JsonObject:
    """A guest as the module `dhcp` takes it for its name alone."""
    return {"hostname": hostname, "addresses": [address for address in (ip, ipv6) if address]}
