# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests that are to run again after the death of their host, as the watch sees them."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._healing.nouns import LOCAL, LOCKED, Guest
from ..compute.migrations import HEALING, POST
from ..db.tables import instance
from ..db.tables_migrations import migration
from ..db.tables_volumes import volume, volume_attachment, volume_type
from ..migration.begin import local_volumes

SHARED = ("nfs",)  # backends of volumes that every host reaches, and whose files QEMU locks there


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
    moving, roots = _moving(connection), _shared_roots(connection)
    bound = local_volumes(connection)
    return tuple(
        Guest(
            row.uuid,
            row.host,
            True,
            row.ha_priority,
            row.flavor["memory_mb"],
            disk_of(row.flavor, SHARED[0] if row.uuid in roots else None),
            # what a volume of one host holds cannot be built anew
            row.ha_rebuild and row.uuid not in bound,
            moving.get(row.uuid) == row.host,
            row.ha_reason or "",
        )
        for row in rows
    )


def disk_of(flavor: t.Mapping[str, t.Any], root_backend: str | None) -> str:
    """Return the kind of disks of a guest of this flavor, whose root is a volume of that backend (None: its own)."""
    return LOCKED if root_backend in SHARED and not flavor["ephemeral_gb"] else LOCAL


def _moving(connection: sa.Connection) -> dict[str, str]:
    """Return the hosts to which guests are being brought by the watch."""
    c = migration.c
    query = sa.select(c.instance_uuid, c.dest_host).where(c.status == POST, c.reason == HEALING)
    return {row.instance_uuid: row.dest_host for row in connection.execute(query)}


def _shared_roots(connection: sa.Connection) -> set[str]:
    """Return the guests that start from a volume on shared storage."""
    query = (
        sa.select(volume_attachment.c.instance_uuid)
        .join(volume, volume.c.id == volume_attachment.c.volume_id)
        .join(volume_type, volume_type.c.id == volume.c.type_id)
        .where(volume_attachment.c.boot_index == 0, volume_type.c.backend.in_(SHARED))
    )
    return set(connection.scalars(query))
