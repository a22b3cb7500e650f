# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags of what has no metadata of its own: groups, keys, images, addresses, networks."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ..._errors import QuotaError
from ..db.tables_ec2 import ec2_tag as table

MOST = 50  # of one resource, as Amazon has it


def write_tags(connection: sa.Connection, project_id: str, resource: str, tags: t.Mapping[str, str]) -> None:
    """Add these, or put them in the place of those with the same keys. Raises QuotaError beyond 50."""
    remove_tags(connection, project_id, resource, tags)
    if tags:
        rows = [
            {"project_id": project_id, "resource": resource, "key": key, "value": value} for key, value in tags.items()
        ]
        connection.execute(sa.insert(table), rows)
    count = sa.select(sa.func.count()).select_from(table).where(*_of(project_id, resource))
    if connection.execute(count).scalar_one() > MOST:
        raise QuotaError(f"{resource} would have more than {MOST} tags")


def remove_tags(
    connection: sa.Connection, project_id: str, resource: str, keys: t.Collection[str] | None = None
) -> None:
    """Remove the tags of these keys; None: all."""
    gone = sa.delete(table).where(*_of(project_id, resource))
    connection.execute(gone if keys is None else gone.where(table.c.key.in_(sorted(keys))))


def _of(project_id: str, resource: str) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.project_id == project_id, table.c.resource == resource
