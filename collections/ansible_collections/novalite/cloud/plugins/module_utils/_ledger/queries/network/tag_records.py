# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tags of what the Network API has. Reads only."""

from __future__ import annotations

import typing as t

import sqlalchemy as sa

from ...db.tables_networking import resource_tag


def tags_of(connection: sa.Connection, numbers: t.Collection[str]) -> dict[str, list[str]]:
    """Resource -> its tags, sorted; those without any are left out."""
    tags_by_resource: dict[str, list[str]] = {}
    query = sa.select(resource_tag).where(resource_tag.c.resource_id.in_(list(numbers)))
    for row in connection.execute(query.order_by(resource_tag.c.tag)):
        tags_by_resource.setdefault(row.resource_id, []).append(row.tag)
    return tags_by_resource
