# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials that clients keep here (/v3/credentials): of type `ec2` the pairs of requests to EC2, else any text."""

from __future__ import annotations

import json
import typing as t
import uuid

import sqlalchemy as sa
from cryptography.fernet import InvalidToken

from ..._errors import NotFoundError, NovaliteError, QuotaError
from ..._json import JsonMapping, JsonObject
from ..._model.plain_text import is_plain
from ..db import clock
from ..db.sealing import Seal
from ..db.tables_identity import credential as table
from ..db.tables_identity import ec2_credential as ec2
from ..queries.counts import count, equal, is_any
from ..queries.identity.credential_records import UnreadableError
from .credentials import MOST, create_ec2_credential, list_ec2_credentials

Credential = JsonObject  # id, type, user_id, project_id, blob

EC2 = "ec2"
LONGEST_ACCESS, SHORTEST_SECRET = 32, 8


def list_credentials(
    connection: sa.Connection, seal: Seal, user_id: str | None = None, kind: str | None = None
) -> list[Credential]:
    """Return the credentials of a user (None: of all) and of this type, the oldest first."""
    ec2_credentials = []
    if kind in (None, EC2):
        ec2_credentials = [_as_credential(seal, row) for row in list_ec2_credentials(connection, seal, user_id)]
    query = sa.select(table).where(*equal({table.c.user_id: user_id, table.c.type: kind}))
    rows = connection.execute(query.order_by(table.c.created_at, table.c.id)).mappings()
    return [*ec2_credentials, *({**row, "blob": _read(seal, row["blob"])} for row in rows)]


def find_credential(
    connection: sa.Connection, seal: Seal, credential_id: str, user_id: str | None = None
) -> Credential:
    """Return the credential of this id, of the user (None: of anybody). Raises NotFoundError."""
    for row in list_credentials(connection, seal, user_id):
        if row["id"] == credential_id:
            return row
    raise NotFoundError(f"Could not find credential: {credential_id[:64]}.")


def create_credential(connection: sa.Connection, seal: Seal, values: JsonMapping) -> Credential:
    """Keep a credential: type, user_id, project_id, blob; the user and the project must be there.

    Raises NovaliteError for a blob that its type does not allow, QuotaError beyond 100 of a user, ConflictError for an
    access key that is taken.
    """
    if values["type"] == EC2:
        pair = _pair(values)
        row = create_ec2_credential(connection, seal, values["user_id"], values["project_id"], pair)
        return _as_credential(seal, row)
    if count(connection, table.c.user_id == values["user_id"]) >= MOST:
        raise QuotaError(f"a user has at most {MOST} credentials: delete one first")
    row = {name: values[name] for name in ("type", "user_id", "project_id")}
    row |= {"id": uuid.uuid4().hex, "created_at": clock.seconds(connection)}
    connection.execute(sa.insert(table).values(**row, blob=seal.encrypt(values["blob"])))
    return {**row, "blob": values["blob"]}


def update_credential(connection: sa.Connection, seal: Seal, before: Credential, changes: JsonMapping) -> Credential:
    """Change the blob, the project or, if it is no EC2 pair, the type. Raises errors as `create_credential` does."""
    after = {**before, **changes}
    if (after["type"] == EC2) != (before["type"] == EC2):
        raise NovaliteError("a credential does not become one of type ec2, or one of another type: make a new one")
    if after["type"] != EC2:
        values = {"type": after["type"], "project_id": after["project_id"], "blob": seal.encrypt(after["blob"])}
        connection.execute(sa.update(table).where(table.c.id == before["id"]).values(**values))
        return after
    pair = _pair(after)
    if is_any(connection, ec2.c.access == pair["access"], ec2.c.credential_id != before["id"]):
        raise NovaliteError(f"the access key {pair['access']!r} is taken: choose another one")
    values = {"access": pair["access"], "secret": seal.encrypt(pair["secret"]), "blob": seal.encrypt(pair["blob"])}
    mine = sa.update(ec2).where(ec2.c.credential_id == before["id"])
    connection.execute(mine.values(**values, project_id=after["project_id"], credential_id=before["id"]))
    return after


def delete_credential(connection: sa.Connection, record: Credential) -> None:
    """Remove the credential."""
    if record["type"] == EC2:
        connection.execute(sa.delete(ec2).where(ec2.c.credential_id == record["id"]))
    else:
        connection.execute(sa.delete(table).where(table.c.id == record["id"]))


def _pair(values: JsonMapping) -> dict[str, str]:
    """Return the access and the secret of a blob, and the blob. Raises NovaliteError."""
    if values.get("project_id") is None:
        raise NovaliteError("a credential of type ec2 needs a project_id")
    try:
        blob = json.loads(values["blob"])
    except (ValueError, RecursionError):
        raise NovaliteError("Invalid blob in credential") from None
    access, secret = (blob.get(name) if isinstance(blob, dict) else None for name in ("access", "secret"))
    if not isinstance(access, str) or not 1 <= len(access) <= LONGEST_ACCESS or not is_plain(access):
        raise NovaliteError(f"the blob of a credential of type ec2 needs an access of 1 to {LONGEST_ACCESS} characters")
    if not isinstance(secret, str) or len(secret) < SHORTEST_SECRET:
        raise NovaliteError(
            f"the blob of a credential of type ec2 needs a secret of at least {SHORTEST_SECRET} characters"
        )
    return {"access": access, "secret": secret, "blob": values["blob"]}


def _as_credential(seal: Seal, row: JsonMapping) -> Credential:
    blob = row.get("blob")
    text = json.dumps({"access": row["access"], "secret": row["secret"]}) if blob is None else _read(seal, blob)
    return {
        "id": row["credential_id"],
        "type": EC2,
        "user_id": row["user_id"],
        "project_id": row["project_id"],
        "blob": text,
    }


def _read(seal: Seal, sealed: str) -> t.Any:
    try:
        return seal.decrypt(sealed)
    except InvalidToken:
        raise UnreadableError(
            "a credential cannot be read with this ledger's key (credentials.secret): was that replaced? Delete the "
            "credential and make a new one"
        ) from None
