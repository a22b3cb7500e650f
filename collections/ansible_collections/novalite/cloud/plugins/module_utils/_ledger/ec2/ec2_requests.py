# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requests that carry a client token: sent again, they do nothing again."""

from __future__ import annotations

import hashlib
import json
import time
import typing as t

import sqlalchemy as sa

from ..._errors import ConflictError
from ..._json import JsonMapping
from ..db.tables_ec2 import ec2_request as table

KEPT = 24 * 3600  # seconds that a token is remembered, as long as Amazon's at least
MAX_TOKEN = 64  # characters

Result = list[str]


def repeated(connection: sa.Connection, project_id: str, action: str, token: str, asked: JsonMapping) -> Result | None:
    """What the request `asked` with this token made before; None if it is the first, which remember() is told of.

    Another one with the same token waits until this transaction ends. Raises ConflictError if that token stood for
    another request.
    """
    now = int(time.time())
    connection.execute(sa.delete(table).where(table.c.created_at < now - KEPT))
    hashed = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
    made = connection.execute(
        sa.text(
            "INSERT INTO ec2_request (project_id, action, token, request_hash, result, created_at)"
            " VALUES (:project_id, :action, :token, :hashed, '[]', :now) ON CONFLICT DO NOTHING"
        ),
        {"project_id": project_id, "action": action, "token": token, "hashed": hashed, "now": now},
    )
    if made.rowcount:
        return None
    row = connection.execute(sa.select(table).where(*_one(project_id, action, token))).one()
    if row.request_hash != hashed:
        raise ConflictError(
            "The client token you have provided is associated with a request that is not the same as this one."
        )
    return t.cast(Result, row.result)


def remember(connection: sa.Connection, project_id: str, action: str, token: str, result: Result) -> None:
    """What the first request with this token made, for those that repeat it."""
    connection.execute(sa.update(table).where(*_one(project_id, action, token)).values(result=result))


def _one(project_id: str, action: str, token: str) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.project_id == project_id, table.c.action == action, table.c.token == token
