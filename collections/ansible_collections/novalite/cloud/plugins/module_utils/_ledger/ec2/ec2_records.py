# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Instances as EC2's clients see them: with what they alone say about one, and for a while after it is gone.

Requests that carry a client token, sent again, do nothing again.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

import sqlalchemy as sa

from ..._errors import OtherRequestError
from ..._json import JsonMapping
from ..db import clock
from ..db.tables_ec2 import ec2_instance, ec2_keypair, ec2_request
from ..queries.ec2.ec2_attributes import DEFAULTS

KEPT = 24 * 3600  # seconds that a token is remembered, as long as Amazon's at least
MAX_TOKEN = 64  # characters


def write_attributes(connection: sa.Connection, uuid: str, values: JsonMapping) -> None:
    """Keep these of an instance."""
    done = connection.execute(sa.update(ec2_instance).where(ec2_instance.c.instance_uuid == uuid).values(**values))
    if not done.rowcount:
        connection.execute(sa.insert(ec2_instance).values(**{"instance_uuid": uuid, **DEFAULTS, **values}))


def keep_fingerprint(connection: sa.Connection, user_id: str, name: str, fingerprint: str) -> None:
    values = {"user_id": user_id, "project_id": "", "name": name, "fingerprint": fingerprint}
    connection.execute(sa.insert(ec2_keypair).values(**values))


def repeated(
    connection: sa.Connection, project_id: str, action: str, token: str, parameters: JsonMapping
) -> list[str] | None:
    """Return what an earlier request with this token made; None if there was none: remember() then takes the result,
    and others with the token wait until this transaction ends. Raises OtherRequestError if `parameters` are not what
    that request had."""
    now = clock.seconds(connection)
    connection.execute(sa.delete(ec2_request).where(ec2_request.c.created_at < now - KEPT))
    hashed = hashlib.sha256(json.dumps(parameters, sort_keys=True).encode()).hexdigest()
    made = connection.execute(
        sa.text(
            "INSERT INTO ec2_request (project_id, action, token, request_hash, result, created_at)"
            " VALUES (:project_id, :action, :token, :hashed, '[]', :now) ON CONFLICT DO NOTHING"
        ),
        {"project_id": project_id, "action": action, "token": token, "hashed": hashed, "now": now},
    )
    if made.rowcount:
        return None
    row = connection.execute(sa.select(ec2_request).where(*_of_token(project_id, action, token))).one()
    if row.request_hash != hashed:
        raise OtherRequestError(
            "The client token you have provided is associated with a request that is not the same as this one."
        )
    return t.cast("list[str]", row.result)


def remember(connection: sa.Connection, project_id: str, action: str, token: str, result: list[str]) -> None:
    """Record the result of the first request with this token, for those that repeat it."""
    connection.execute(sa.update(ec2_request).where(*_of_token(project_id, action, token)).values(result=result))


def _of_token(project_id: str, action: str, token: str) -> tuple[sa.ColumnElement[bool], ...]:
    return ec2_request.c.project_id == project_id, ec2_request.c.action == action, ec2_request.c.token == token
