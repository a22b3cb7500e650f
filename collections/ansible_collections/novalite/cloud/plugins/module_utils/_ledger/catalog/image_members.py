# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whom an image is shared with."""

from __future__ import annotations

import time

import sqlalchemy as sa

from ..._errors import ConflictError, NovaliteError
from ..._json import JsonObject
from ..db.tables_images import image_member

Record = JsonObject

MOST = 128  # of an image; Glance's default
PENDING, ACCEPTED, REJECTED = STATES = ("pending", "accepted", "rejected")


def members(connection: sa.Connection, image_id: str, member: str | None = None) -> list[Record]:
    """All of an image, the first one first, or the one of this id."""
    query = sa.select(image_member).where(image_member.c.image_id == image_id)
    if member is not None:
        query = query.where(image_member.c.member == member)
    rows = connection.execute(query.order_by(image_member.c.created_at, image_member.c.member)).mappings()
    return [dict(row) for row in rows]


def add_member(connection: sa.Connection, image_id: str, member: str) -> Record:
    """Raises ConflictError for one who is a member already, NovaliteError for too many."""
    there = members(connection, image_id)
    if any(sharing["member"] == member for sharing in there):
        raise ConflictError(f"Image member {member[:60]} already exists for image {image_id}")
    if len(there) >= MOST:
        raise NovaliteError(f"The limit has been exceeded on the number of allowed image members: {MOST}")
    now = int(time.time())
    row = {"image_id": image_id, "member": member, "status": PENDING, "created_at": now, "updated_at": now}
    connection.execute(sa.insert(image_member).values(**row))
    return row


def set_status(connection: sa.Connection, image_id: str, member: str, status: str) -> None:
    mine = sa.and_(image_member.c.image_id == image_id, image_member.c.member == member)
    connection.execute(sa.update(image_member).where(mine).values(status=status, updated_at=int(time.time())))


def remove_member(connection: sa.Connection, image_id: str, member: str) -> None:
    mine = sa.and_(image_member.c.image_id == image_id, image_member.c.member == member)
    connection.execute(sa.delete(image_member).where(mine))
