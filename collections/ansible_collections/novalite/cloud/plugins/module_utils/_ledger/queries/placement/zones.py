# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Availability zones of compute hosts, as conditions of queries. Reads only."""

from __future__ import annotations

import sqlalchemy as sa

from ...._model.listed_servers import zones_by_aggregates
from ...db.tables import aggregate, aggregate_host, compute_host


def _zoned(*of_hosts: sa.ColumnElement[bool]) -> sa.Select[tuple[str, str, str | None]]:
    """The query of the aggregates that are zones, each with its hosts among these."""
    there = sa.and_(aggregate_host.c.aggregate_id == aggregate.c.id, *of_hosts)
    query = sa.select(aggregate.c.name, aggregate.c.zone, aggregate_host.c.host)
    return query.select_from(aggregate.outerjoin(aggregate_host, there)).where(aggregate.c.zone.is_not(None))


# What listed_servers reads of the hosts on a page. The command `novalite` has it as a text, too: operations/looks.py
OF_HOSTS = _zoned(aggregate_host.c.host.in_(sa.bindparam("names", expanding=True)))


def in_zone(connection: sa.Connection, zone: str) -> sa.ColumnElement[bool]:
    """The condition of the compute hosts that are in the zone: an aggregate's that they are in, which goes before the
    one that their inventory says."""
    c = compute_host.c
    zoned = connection.execute(_zoned()).mappings().all()
    if not zoned:
        return c.zone == zone
    in_any = sa.or_(sa.cast(c.aggregates, sa.Text) != "[]", c.name.in_(sa.select(aggregate_host.c.host)))
    hosts = connection.execute(sa.select(c.name, c.aggregates).where(in_any)).mappings()
    by_aggregates = zones_by_aggregates(hosts, zoned)
    there = sorted(host for host, its_zone in by_aggregates.items() if its_zone == zone)
    return sa.or_(c.name.in_(there), sa.and_(c.zone == zone, c.name.not_in(sorted(by_aggregates))))
