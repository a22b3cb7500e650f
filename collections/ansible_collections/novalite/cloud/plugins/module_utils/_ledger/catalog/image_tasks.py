# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What imports of images were asked for, and how they ended, as Glance's tasks."""

from __future__ import annotations

import time
import uuid

import sqlalchemy as sa

from ..._json import JsonObject
from ..db.tables_images import image_task

MOST = 1000  # that are told at once

Record = JsonObject


def begin_task(
    connection: sa.Connection, image_id: str, body: Record, *, user_id: str, project_id: str, request_id: str
) -> str:
    """Record the import that `body` asks for; return the task's id."""
    now, task = int(time.time()), str(uuid.uuid4())
    connection.execute(
        sa.insert(image_task).values(
            id=task,
            image_id=image_id,
            status="processing",
            input={"image_id": image_id, "import_req": body},
            request_id=request_id,
            user_id=user_id,
            project_id=project_id,
            created_at=now,
            updated_at=now,
        )
    )
    return task


def end_task(connection: sa.Connection, task: str, failure: str) -> None:
    """Record how the import ended; an empty `failure` is success."""
    ended = {"status": "failure" if failure else "success", "message": failure, "updated_at": int(time.time())}
    connection.execute(sa.update(image_task).where(image_task.c.id == task).values(**ended))


def image_tasks(connection: sa.Connection, image_id: str | None = None, task: str | None = None) -> list[Record]:
    """Return the tasks, the newest first: of one image, the one with this id, or all."""
    query = sa.select(image_task).order_by(image_task.c.created_at.desc(), image_task.c.id).limit(MOST)
    if image_id is not None:
        query = query.where(image_task.c.image_id == image_id)
    if task is not None:
        query = query.where(image_task.c.id == task)
    return [dict(row) for row in connection.execute(query).mappings()]
