# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes, as tests of them begin with: with data, of something, and held by a server."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes import volume_views
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.queries.volumes.volume_views import (
    Snapshot,
    Volume,
)
from ansible_collections.novalite.cloud.plugins.module_utils._ledger.volumes import (
    volume_attachments,
    volume_snapshots,
    volumes,
)
from tests.support.rows import DEMO, add_instance, an_image

SOURCES = ("image", "snapshot_id", "source_volume_id", "backup_disk")


def now(connection: sa.Connection, row: Volume) -> Volume:
    return volume_views.one_volume(connection, row.id)


def blank(connection: sa.Connection, **params: t.Any) -> Volume:
    return volumes.create_volume(connection, DEMO, {"size_gb": 1, **params})


def with_data(connection: sa.Connection, **params: t.Any) -> Volume:
    row = blank(connection, host="hv1", **params)
    volumes.finish_create(connection, row.id)
    return now(connection, row)


def snapshot_of(connection: sa.Connection, row: Volume) -> Snapshot:
    taken = volume_snapshots.create_snapshot(connection, DEMO, {"volume_id": row.id, "force": True})
    volume_snapshots.finish_snapshot(connection, taken.id)
    return volume_views.one_snapshot(connection, taken.id)


def copy_of(connection: sa.Connection, kind: str) -> Volume:
    """Begin to make a volume of something of this kind of SOURCES."""
    if kind == "image":
        return volumes.create_volume(connection, DEMO, {"image": an_image()})
    if kind == "snapshot_id":
        return volumes.create_volume(connection, DEMO, {kind: snapshot_of(connection, with_data(connection)).id})
    if kind == "source_volume_id":
        return volumes.create_volume(connection, DEMO, {kind: with_data(connection).id})
    row = blank(connection, host="hv1")
    volumes.write(connection, "volume", row.id, {kind: {"backup": "b", "server": "s", "disk": "vda"}})
    return now(connection, row)


def held(connection: sa.Connection, row: Volume, server: str | None = None, **options: t.Any) -> str:
    """Give a volume to a server (None: a new one); return the attachment's id."""
    server = server or add_instance(connection, "web", host="hv1")
    made = volume_attachments.begin_attach(connection, row.id, server, project_id=DEMO, **options)
    volume_attachments.finish_attach(connection, made.id)
    return made.id
