# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Credentials that clients keep here (/v3/credentials): of type `ec2` the pairs of requests to EC2, else any text."""

from __future__ import annotations

import dataclasses
import json
import uuid

import sqlalchemy as sa

from ..._errors import NotFoundError, NovaliteError, QuotaError
from ..._json import JsonMapping, JsonObject
from ..._model.plain_text import is_plain
from ..db import clock
from ..db.sealing import Seal
from ..db.tables_identity import credential as table
from ..db.tables_identity import ec2_credential as ec2
from ..queries.counts import count, equal, is_any
from ..queries.identity.credential_records import UnreadableError, ec2_credential_rows
from .credentials import MOST, create_ec2_credential

Credential = JsonObject  # id, type, user_id, project_id, blob

EC2 = "ec2"
LONGEST_ACCESS, SHORTEST_SECRET = 32, 8


@dataclasses.dataclass(frozen=True)
class Sealed:
    """A credential with its secrets encrypted. An EC2 pair that was not made of a blob has an `access` and a `secret`
    instead."""

    id: str
    type: str
    user_id: str
    project_id: str | None
    blob: str | None
    access: str = ""
    secret: str = ""


def list_credentials(
    connection: sa.Connection, seal: Seal, user_id: str | None = None, kind: str | None = None
) -> list[Credential]:
    """Return the credentials of a user (None: of all) and of this type, the oldest first.

    The blob of one that cannot be read with this ledger's key is None: it does not hide the others.
    """
    pairs = ec2_credential_rows(connection, user_id) if kind in (None, EC2) else []
    query = sa.select(table).where(*equal({table.c.user_id: user_id, table.c.type: kind}))
    rows = connection.execute(query.order_by(table.c.created_at, table.c.id)).mappings()
    every = [*(_of_pair(pair) for pair in pairs), *(_of_row(dict(row)) for row in rows)]
    return [_as_credential(sealed, _text(seal, sealed)) for sealed in every]


def find_sealed(connection: sa.Connection, credential_id: str, user_id: str | None = None) -> Sealed:
    """Return the credential of this id, of the user (None: of anybody), as it is kept. Raises NotFoundError."""
    mine = equal({table.c.id: credential_id, table.c.user_id: user_id})
    row = connection.execute(sa.select(table).where(*mine)).mappings().first()
    if row is not None:
        return _of_row(dict(row))
    mine = equal({ec2.c.credential_id: credential_id, ec2.c.user_id: user_id})
    pair = connection.execute(sa.select(ec2).where(*mine)).mappings().first()
    if pair is not None:
        return _of_pair(dict(pair))
    raise NotFoundError(f"Could not find credential: {credential_id[:64]}.")


def opened(seal: Seal, sealed: Sealed) -> Credential:
    """Return a credential in the clear. Raises UnreadableError."""
    text = _text(seal, sealed)
    if text is None:
        raise UnreadableError(
            f"credential {sealed.id} cannot be read with this ledger's key (credentials.secret): was that replaced? "
            "Give it a new blob, or delete it and make a new one"
        )
    return _as_credential(sealed, text)


def create_credential(connection: sa.Connection, seal: Seal, values: JsonMapping) -> Credential:
    """Keep a credential: type, user_id, project_id, blob; the user and the project must be there.

    Raises NovaliteError for a blob that its type does not allow, QuotaError beyond 100 of a user, ConflictError for an
    access key that is taken.
    """
    if values["type"] == EC2:
        pair = _pair(values)
        made = _of_pair(create_ec2_credential(connection, seal, values["user_id"], values["project_id"], pair))
        return _as_credential(made, values["blob"])
    if count(connection, table.c.user_id == values["user_id"]) >= MOST:
        raise QuotaError(f"a user has at most {MOST} credentials: delete one first")
    row = {name: values[name] for name in ("type", "user_id", "project_id")}
    row |= {"id": uuid.uuid4().hex, "blob": seal.encrypt(values["blob"])}
    connection.execute(sa.insert(table).values(**row, created_at=clock.seconds(connection)))
    return _as_credential(_of_row(row), values["blob"])


def update_credential(connection: sa.Connection, seal: Seal, before: Sealed, changes: JsonMapping) -> Credential:
    """Change the blob, the project or, if it is no EC2 pair, the type. Raises errors as `create_credential` does, and
    UnreadableError where the blob stays and cannot be read."""
    after = {**(_as_credential(before, None) if "blob" in changes else opened(seal, before)), **changes}
    if (after["type"] == EC2) != (before.type == EC2):
        raise NovaliteError("a credential does not become one of type ec2, or one of another type: make a new one")
    if after["type"] != EC2:
        values = {"type": after["type"], "project_id": after["project_id"], "blob": seal.encrypt(after["blob"])}
        connection.execute(sa.update(table).where(table.c.id == before.id).values(**values))
        return after
    pair = _pair(after)
    if is_any(connection, ec2.c.access == pair["access"], ec2.c.credential_id != before.id):
        raise NovaliteError(f"the access key {pair['access']!r} is taken: choose another one")
    values = {"access": pair["access"], "secret": seal.encrypt(pair["secret"]), "blob": seal.encrypt(pair["blob"])}
    mine = sa.update(ec2).where(ec2.c.credential_id == before.id)
    connection.execute(mine.values(**values, project_id=after["project_id"], credential_id=before.id))
    return after


def delete_credential(connection: sa.Connection, credential: Sealed) -> None:
    """Remove the credential, which need not be readable."""
    mine = ec2.c.credential_id if credential.type == EC2 else table.c.id
    connection.execute(sa.delete(mine.table).where(mine == credential.id))


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


def _of_row(row: JsonMapping) -> Sealed:
    return Sealed(row["id"], row["type"], row["user_id"], row["project_id"], row["blob"])


def _of_pair(row: JsonMapping) -> Sealed:
    owner = (row["user_id"], row["project_id"])
    return Sealed(row["credential_id"], EC2, *owner, row.get("blob"), row["access"], row["secret"])


def _text(seal: Seal, sealed: Sealed) -> str | None:
    """Return the blob in the clear; None for one that cannot be read."""
    if sealed.blob is not None:
        return seal.read(sealed.blob)
    secret = seal.read(sealed.secret)
    return None if secret is None else json.dumps({"access": sealed.access, "secret": secret})


def _as_credential(sealed: Sealed, blob: str | None) -> Credential:
    values = {"id": sealed.id, "type": sealed.type, "user_id": sealed.user_id, "project_id": sealed.project_id}
    return {**values, "blob": blob}
