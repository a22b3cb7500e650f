# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Operations on transfers of volumes from project to project, for every door."""

from __future__ import annotations

from ...queries.volumes.transfer_records import Transfer
from ...volumes import volume_transfers
from ..call import Call


def offer(
    call: Call, volume_id: str, *, name: str | None, no_snapshots: bool, project_id: str | None
) -> tuple[Transfer, str]:
    """Offer a volume of the project (None: of any); return the offer and its key. Raises as that of
    volume_transfers."""
    return volume_transfers.offer(
        call.connection, volume_id, name=name, no_snapshots=no_snapshots, project_id=project_id
    )


def accept(call: Call, transfer_id: str, key: str) -> Transfer:
    """Take an offered volume into the caller's project. Raises as volume_transfers.accept()."""
    return volume_transfers.accept(call.connection, transfer_id, key, call.project, call.user_id)


def withdraw(call: Call, transfer_id: str, *, project_id: str | None) -> None:
    """Take back an offer of the project (None: of any). Raises NotFoundError."""
    volume_transfers.withdraw(call.connection, transfer_id, project_id)
