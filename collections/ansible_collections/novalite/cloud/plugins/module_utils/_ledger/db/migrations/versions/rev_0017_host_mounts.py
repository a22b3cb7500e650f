# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts may go on mounting the operator's images to inject, and no others.

The images say so, and instances' and volumes' copies of their records.
"""

from __future__ import annotations

import typing as t

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

PROPERTY = "os_host_mount"
IMAGE = sa.table("image", sa.column("id"), sa.column("owner"), sa.column("properties", sa.JSON))
COPIES = (
    sa.table("instance", sa.column("id"), sa.column("image", sa.JSON)),
    sa.table("volume", sa.column("id"), sa.column("image", sa.JSON)),
)


def upgrade() -> None:
    connection = op.get_bind()
    rows = connection.execute(sa.select(IMAGE.c.id, IMAGE.c.properties).where(IMAGE.c.owner == "")).all()
    for row in rows:
        properties = {PROPERTY: "yes", **(row.properties or {})}
        connection.execute(sa.update(IMAGE).where(IMAGE.c.id == row.id).values(properties=properties))
    ids = {row.id for row in rows}
    _describe(connection, lambda image: image.get("id") in ids, lambda old: {PROPERTY: "yes", **old})


def downgrade() -> None:
    connection = op.get_bind()
    for row in connection.execute(sa.select(IMAGE.c.id, IMAGE.c.properties)).all():
        properties = _without(row.properties or {})
        connection.execute(sa.update(IMAGE).where(IMAGE.c.id == row.id).values(properties=properties))
    _describe(connection, lambda _image: True, _without)


def _describe(
    connection: sa.Connection,
    meant: t.Callable[[dict[str, t.Any]], bool],
    changed: t.Callable[[dict[str, t.Any]], dict[str, t.Any]],
) -> None:
    """Change the properties in the copies of the images that are `meant`."""
    for table in COPIES:
        rows = connection.execute(sa.select(table.c.id, table.c.image).where(table.c.image.is_not(None))).all()
        for row in rows:
            if row.image and meant(row.image):
                image = {**row.image, "properties": changed(row.image.get("properties") or {})}
                connection.execute(sa.update(table).where(table.c.id == row.id).values(image=image))


def _without(properties: dict[str, t.Any]) -> dict[str, t.Any]:
    return {key: value for key, value in properties.items() if key != PROPERTY}
