# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests that are to run again after the death of their host, as the watch sees them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._healing.nouns import Guest
from ..compute.migrations import HEALING, POST
from ..db.tables import instance
from ..db.tables_migrations import migration
from ..volumes import ha_disks


def guests(connection: sa.Connection, uuids: t.Collection[str] | None = None) -> tuple[Guest, ...]:
    """Return the guests (None: all) that are to run, and were asked to do so on another host if theirs dies."""
    c = instance.c
    query = sa.select(*(c.uuid, c.host, c.flavor, c.ha_priority, c.ha_rebuild, c.ha_reason)).where(
        c.ha, c.deleted == 0, c.host.is_not(None), c.vm_state == "active", c.adopted.is_(None)
    )
    if uuids is not None:
        query = query.where(c.uuid.in_(sorted(set(uuids))))
    rows = connection.execute(query.order_by(c.id)).all()
    if not rows:
        return ()
    moving, disks = _moving(connection), ha_disks.kinds(connection, {row.uuid: row.flavor for row in rows})
    bound = ha_disks.local_volumes(connection)
    return tuple(
        Guest(
            row.uuid,
            row.host,
            True,
            row.ha_priority,
            row.flavor["memory_mb"],
            disks[row.uuid],
            # what a volume of one host holds cannot be built anew
            row.ha_rebuild and row.uuid not in bound,
            moving.get(row.uuid) == row.host,
            row.ha_reason or "",
        )
        for row in rows
    )


def _moving(connection: sa.Connection) -> dict[str, str]:
    """Return the hosts to which guests are being brought by the watch."""
    c = migration.c
    query = sa.select(c.instance_uuid, c.dest_host).where(c.status == POST, c.reason == HEALING)
    return {row.instance_uuid: row.dest_host for row in connection.execute(query)}
