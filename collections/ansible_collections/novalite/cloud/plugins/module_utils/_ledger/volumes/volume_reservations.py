# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reservations: volumes that are kept for a client, as Cinder's attachments without an instance keep them.

Such a client (Ironic, Glance, a script) connects the volume itself, says so, and completes that. Hosts of this cloud
give volumes to their own guests only, so there is nothing to be done on a host, and no connection to tell of: the
ledger notes what the client says, and gives the volume to nobody else meanwhile.
"""

from __future__ import annotations

import uuid

import sqlalchemy as sa

from ..._errors import InvalidVolumeError
from ..._json import JsonObject
from ..._rules.listed_nouns import RESERVED
from ..db import clock
from ..db.tables_volumes import volume_reservation
from ..queries.volumes.volume_views import Reservation, Volume, one_volume, reservations_by
from .volumes import begin, swap

_KEPT = (RESERVED, "attaching", "in-use")  # statuses of a volume in which its client may go on
_FREED = (*_KEPT, "detaching")  # in which nothing else goes on with it


def reserve(
    connection: sa.Connection, volume_id: str, *, mode: str | None = None, project_id: str | None = None
) -> Reservation:
    """Keep an available volume for a client; a volume that is only read is attached so, whatever `mode` says.

    Raises NotFoundError for a volume that the project (None: anybody) does not have, ConflictError for one that is not
    available.
    """
    row = one_volume(connection, volume_id, project_id)
    begin(connection, row, "reserve", ("available",), RESERVED)
    made = {
        **{"id": str(uuid.uuid4()), "volume_id": row.id, "status": RESERVED},
        **{"mode": "ro" if row.readonly else mode, "created_at": clock.seconds(connection)},
    }
    connection.execute(sa.insert(volume_reservation).values(**made))
    return reservations_by(connection, ids=[str(made["id"])])[0]


def connect(
    connection: sa.Connection, row: Volume, reservation: Reservation, host: str, device: str | None, mode: str | None
) -> None:
    """Note where the client says that it connects the volume. Raises ConflictError for a volume in another state."""
    values = {"host": host, "device": device, "mode": reservation.mode or mode or "rw"}
    _go_on(connection, row, reservation, "attaching", values, volume_status="attaching")


def complete(connection: sa.Connection, row: Volume, reservation: Reservation) -> None:
    """Note that the client has the volume. Raises ConflictError for a volume in another state."""
    _go_on(connection, row, reservation, "attached", {}, volume_status="in-use")


def _go_on(
    connection: sa.Connection,
    row: Volume,
    reservation: Reservation,
    status: str,
    values: JsonObject,
    *,
    volume_status: str,
) -> None:
    if not swap(connection, row.id, _KEPT, volume_status):
        raise InvalidVolumeError(
            f"Invalid volume: Volume {row.id} status must be {' or '.join(_KEPT)} to go on with its attachment, but "
            f"current status is: {row.status}."
        )
    attached_at = reservation.attached_at or clock.seconds(connection)
    mine = volume_reservation.c.id == reservation.id
    connection.execute(
        sa.update(volume_reservation).where(mine).values(status=status, attached_at=attached_at, **values)
    )


def release(connection: sa.Connection, reservation: Reservation) -> None:
    """Keep the volume no longer. What else is being done with it ends as it does without a reservation."""
    connection.execute(sa.delete(volume_reservation).where(volume_reservation.c.id == reservation.id))
    swap(connection, reservation.volume_id, _FREED, "available")
