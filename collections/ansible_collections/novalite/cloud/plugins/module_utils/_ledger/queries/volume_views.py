# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volume and snapshot dicts out of rows. Reads only; the same few queries however many there are.

A Volume dict has the row's columns, and `type` (the name), `backend`, `options` (the type's), and `attachments`:
[{"id", "instance_uuid", "device", "host", "attached_at", "created_at", "delete_on_termination", "boot_index", "tag",
"readonly"}], oldest first. `attached_at` is null while it is under way; `host` is the instance's.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..db.tables import instance
from ..db.tables_volumes import volume, volume_attachment, volume_snapshot, volume_type

Volume = dict[str, t.Any]
Snapshot = dict[str, t.Any]
Attachment = dict[str, t.Any]

_ATTACHMENT_FIELDS = (
    "id",
    "volume_id",
    "instance_uuid",
    "device",
    "attached_at",
    "created_at",
    "delete_on_termination",
    "boot_index",
    "tag",
    "readonly",
)


def volumes_by(
    connection: sa.Connection,
    *,
    ids: t.Iterable[str] | None = None,
    names: t.Iterable[str] | None = None,
    project_id: str | None = None,
    hosts: t.Iterable[str] | None = None,
    instances: t.Iterable[str] | None = None,
    statuses: t.Iterable[str] | None = None,
) -> list[Volume]:
    """The volumes that meet every condition given (None: no condition), oldest first.

    `instances`: those that are attached to one of them (UUIDs), or are being so.
    """
    query = (
        sa.select(volume, volume_type.c.name.label("type"), volume_type.c.backend, volume_type.c.options)
        .join(volume_type, volume_type.c.id == volume.c.type_id)
        .order_by(volume.c.created_at, volume.c.id)
    )
    conditions = ((volume.c.id, ids), (volume.c.name, names), (volume.c.host, hosts), (volume.c.status, statuses))
    for column, values in conditions:
        if values is not None:
            query = query.where(column.in_(sorted(set(values))))
    if project_id is not None:
        query = query.where(volume.c.project_id == project_id)
    if instances is not None:
        theirs = sa.select(volume_attachment.c.volume_id).where(
            volume_attachment.c.instance_uuid.in_(sorted(set(instances)))
        )
        query = query.where(volume.c.id.in_(theirs))
    rows = [dict(row) for row in connection.execute(query).mappings()]
    attached: dict[str, list[Attachment]] = {row["id"]: [] for row in rows}
    if rows:
        for attachment in attachments_by(connection, volumes=attached):
            attached[attachment["volume_id"]].append(attachment)
    return [{**row, "attachments": attached[row["id"]]} for row in rows]


def attachments_by(
    connection: sa.Connection,
    *,
    ids: t.Iterable[str] | None = None,
    volumes: t.Iterable[str] | None = None,
    instances: t.Iterable[str] | None = None,
) -> list[Attachment]:
    """The attachments that meet every condition given, oldest first, each with the `host` of its instance."""
    table = volume_attachment
    query = (
        sa.select(*(table.c[field] for field in _ATTACHMENT_FIELDS), instance.c.host)
        .join(instance, instance.c.uuid == table.c.instance_uuid)
        .order_by(table.c.created_at, table.c.device)
    )
    for column, values in ((table.c.id, ids), (table.c.volume_id, volumes), (table.c.instance_uuid, instances)):
        if values is not None:
            query = query.where(column.in_(sorted(set(values))))
    return [dict(row) for row in connection.execute(query).mappings()]


def snapshots_by(
    connection: sa.Connection,
    *,
    ids: t.Iterable[str] | None = None,
    names: t.Iterable[str] | None = None,
    project_id: str | None = None,
    volumes: t.Iterable[str] | None = None,
) -> list[Snapshot]:
    """The snapshots that meet every condition given, oldest first: their columns, and the volume's `host`, `format`,
    `type`, `backend` and `options`."""
    query = (
        sa.select(
            volume_snapshot,
            volume.c.host,
            volume.c.format,
            volume_type.c.name.label("type"),
            volume_type.c.backend,
            volume_type.c.options,
        )
        .join(volume, volume.c.id == volume_snapshot.c.volume_id)
        .join(volume_type, volume_type.c.id == volume.c.type_id)
        .order_by(volume_snapshot.c.created_at, volume_snapshot.c.id)
    )
    table = volume_snapshot
    for column, values in ((table.c.id, ids), (table.c.name, names), (table.c.volume_id, volumes)):
        if values is not None:
            query = query.where(column.in_(sorted(set(values))))
    if project_id is not None:
        query = query.where(table.c.project_id == project_id)
    return [dict(row) for row in connection.execute(query).mappings()]


def volumes_on(connection: sa.Connection, host: str) -> dict[str, list[dict[str, t.Any]]]:
    """All that the ledger says should be in this compute host's own storage: `{"volumes": [...], "snapshots": [...]}`.

    What was not made yet is not in it, nor what is on shared storage.
    """
    made = [record for record in volumes_by(connection, hosts=[host]) if record["made_at"] is not None]
    return {
        "volumes": made,
        "snapshots": [
            snapshot
            for snapshot in snapshots_by(connection, volumes=[record["id"] for record in made])
            if snapshot["status"] != "creating"
        ],
    }


def used(connection: sa.Connection, project_id: str) -> dict[str, int]:
    """What a project uses of the quotas `volumes`, `gigabytes` (its snapshots' too, as Cinder counts) and `snapshots`.

    A volume that is being extended counts with what it is to have.
    """
    size = sa.func.coalesce(volume.c.new_size_gb, volume.c.size_gb)
    volumes, gigabytes = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(size), 0)).where(volume.c.project_id == project_id)
    ).one()
    snapshots, more = connection.execute(
        sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(volume_snapshot.c.size_gb), 0)).where(
            volume_snapshot.c.project_id == project_id
        )
    ).one()
    return {"volumes": volumes, "gigabytes": int(gigabytes) + int(more), "snapshots": snapshots}
