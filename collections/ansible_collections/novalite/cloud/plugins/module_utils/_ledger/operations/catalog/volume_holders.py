# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on who has a volume: a server, or a client that reserved it, for every door."""

from __future__ import annotations

import dataclasses

from ...._errors import InvalidVolumeError, NovaliteError
from ...queries.volumes import volume_views
from ...queries.volumes.volume_views import Attachment, Reservation, Volume
from ...volumes import volume_reservations
from .. import attachments
from ..call import Call


@dataclasses.dataclass(frozen=True)
class Connector:
    """Place where a client connects a volume."""

    host: str
    device: str | None = None
    mode: str | None = None  # rw or ro


def reserve(
    call: Call, volume_id: str, *, mode: str | None, connector: Connector | None, project_id: str | None
) -> Reservation:
    """Keep a volume for a client, which has connected it if there is a `connector`. Raises as
    volume_reservations.reserve()."""
    reservation = volume_reservations.reserve(call.connection, volume_id, mode=mode, project_id=project_id)
    if connector is not None:
        connect(call, volume_views.one_volume(call.connection, volume_id), reservation, connector)
    return reservation


def connect(call: Call, row: Volume, holder: Attachment | Reservation, connector: Connector) -> None:
    """Note where a client connects the volume that it reserved. Raises NovaliteError for a server's, whose host does,
    ConflictError for a volume in another state."""
    if isinstance(holder, Attachment):
        raise NovaliteError(
            f"Invalid input received: attachment {holder.id} is of the server {holder.instance_uuid}, whose host "
            "connects the volume itself: leave its connector out"
        )
    volume_reservations.connect(call.connection, row, holder, connector.host, connector.device, connector.mode)


def complete(call: Call, row: Volume, holder: Attachment | Reservation) -> None:
    """Note that a client has the volume that it reserved; of a server's, the job that attaches it does. Raises
    ConflictError for a volume in another state."""
    if isinstance(holder, Reservation):
        volume_reservations.complete(call.connection, row, holder)


def release(call: Call, row: Volume, holder: Attachment | Reservation, *, force: bool = False) -> None:
    """Take the volume from who has it. Raises as attachments.detach_volume()."""
    if isinstance(holder, Reservation):
        volume_reservations.release(call.connection, holder)
    else:
        attachments.detach_volume(call, row.id, holder.instance_uuid, project_id=row.project_id, force=force)


def release_any(call: Call, row: Volume, holder_id: str | None, *, force: bool = False) -> None:
    """Take the volume from who has it, by an attachment or a reservation of this id (None: any); nobody has to. Raises
    InvalidVolumeError for another id, and as release(), with `force` ForbiddenError."""
    if force:
        call.check("volume:admin")
    holders: list[Attachment | Reservation] = [
        *row.attachments,
        *([] if row.reservation is None else [row.reservation]),
    ]
    for holder in holders:
        if holder_id in (None, holder.id):
            return release(call, row, holder, force=force)
    if holder_id is not None or row.status != "available":  # else it is so already, as in Cinder
        raise InvalidVolumeError(f"Invalid volume: Volume {row.id} is not attached.")
