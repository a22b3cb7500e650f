# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Transfers: a project offers a volume, and another one that knows the offer's key takes it, as in Cinder.

The volume is awaiting-transfer meanwhile. Of the key, only a hash is stored: it is shown once, to whoever offers.
"""

from __future__ import annotations

import dataclasses
import hmac
import secrets
import uuid

import sqlalchemy as sa

from ..._errors import ConflictError, InvalidVolumeError, NovaliteError
from ..._rules.records import NAME_LENGTH, check_text
from ..db import clock
from ..db.tables_volumes import volume_transfer
from ..queries import lookups
from ..queries.identity.token_holders import token_hash
from ..queries.volumes import volume_views
from ..queries.volumes.transfer_records import Transfer, one_transfer
from ..queries.volumes.volume_views import Snapshot, snapshots_by
from . import volumes

WAITING = "awaiting-transfer"
KEY_BYTES = 8  # random ones; Cinder's keys have as many digits


def offer(
    connection: sa.Connection,
    volume_id: str,
    *,
    name: str | None = None,
    no_snapshots: bool = False,
    project_id: str | None = None,
) -> tuple[Transfer, str]:
    """Record an offer of a volume of the project (None: of any); return it, and its key.

    Raises NotFoundError; ConflictError unless the volume, and each snapshot that goes with it, is available.
    """
    row = volume_views.one_volume(connection, volume_id, project_id)
    if name is not None:
        check_text("transfer name", name, NAME_LENGTH)
    volumes.begin(connection, row, "transfer", ("available",), WAITING)
    if not no_snapshots:
        _snapshots_at_rest(connection, volume_id, row.project_id)
    connection.execute(sa.delete(volume_transfer).where(volume_transfer.c.volume_id == volume_id))  # a reset left it
    transfer = Transfer(str(uuid.uuid4()), volume_id, row.project_id, name, no_snapshots, clock.seconds(connection))
    key = secrets.token_hex(KEY_BYTES)
    record = {**dataclasses.asdict(transfer), "key_hash": token_hash(key)}
    connection.execute(sa.insert(volume_transfer).values(**record))
    return transfer, key


def withdraw(connection: sa.Connection, transfer_id: str, project_id: str | None = None) -> None:
    """Take an offer back. Raises NotFoundError."""
    transfer = one_transfer(connection, transfer_id, project_id)
    connection.execute(sa.delete(volume_transfer).where(volume_transfer.c.id == transfer_id))
    volumes.swap(connection, transfer.volume_id, (WAITING,), "available")


def accept(connection: sa.Connection, transfer_id: str, key: str, project_id: str, user_id: str | None) -> Transfer:
    """Give the offered volume, and the snapshots that go with it, to a project that knows the key; return the offer.

    Raises NotFoundError, NovaliteError for another key, QuotaError for more than the project may have, and
    ConflictError for what is no longer at rest.
    """
    transfer = one_transfer(connection, transfer_id)
    known = sa.select(volume_transfer.c.key_hash).where(volume_transfer.c.id == transfer_id)
    if not hmac.compare_digest(connection.execute(known).scalar_one(), token_hash(key)):
        raise NovaliteError(f"Invalid auth key: Attempt to transfer {transfer_id} with invalid auth key.")
    for project in sorted({project_id, transfer.project_id}):
        lookups.lock_project(connection, project)
    row = volume_views.one_volume(connection, transfer.volume_id)
    if not volumes.swap(connection, row.id, (WAITING,), "available"):
        raise InvalidVolumeError(
            f"Invalid volume: Transfer {transfer_id}: Volume id {row.id} expected in awaiting-transfer state."
        )
    _give(connection, "volume", row.id, row.name, project_id, user_id)
    if not transfer.no_snapshots:
        for snapshot in _snapshots_at_rest(connection, row.id, transfer.project_id):
            _give(connection, "snapshot", snapshot.id, snapshot.name, project_id, user_id)
            volumes.check_quota(connection, project_id, snapshot.size_gb, snapshot=True)
    volumes.check_quota(connection, project_id, row.size_gb)
    connection.execute(sa.delete(volume_transfer).where(volume_transfer.c.id == transfer_id))
    return transfer


def _snapshots_at_rest(connection: sa.Connection, volume_id: str, project_id: str) -> list[Snapshot]:
    """Return the project's snapshots of the volume: those of a project that had it before are not the giver's to give.
    Raises ConflictError for one that is not at rest."""
    snapshots = snapshots_by(connection, volumes=[volume_id], project_id=project_id)
    for snapshot in snapshots:
        if snapshot.status != "available":
            raise ConflictError(f"Invalid snapshot: snapshot: {snapshot.id} status must be available")
    return snapshots


def _give(connection: sa.Connection, kind: str, own_id: str, handle: str, project_id: str, user_id: str | None) -> None:
    free = volumes.free_handle(connection, kind, project_id, handle, own_id)
    volumes.write(connection, kind, own_id, {"project_id": project_id, "user_id": user_id, "name": free})
