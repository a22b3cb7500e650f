# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Volumes that are on their way to another project. Reads only."""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from ...._errors import NotFoundError
from ...db.tables_volumes import volume_transfer
from ..counts import equal


@dataclasses.dataclass(frozen=True)
class Transfer:
    """An offer of a volume. `created_at` is in seconds since the epoch."""

    id: str
    volume_id: str
    project_id: str  # that offers it
    name: str | None
    no_snapshots: bool  # whether the snapshots stay with the project that offers
    created_at: int


_COLUMNS = [volume_transfer.c[field.name] for field in dataclasses.fields(Transfer)]


def transfers_of(connection: sa.Connection, project_id: str | None) -> list[Transfer]:
    """Return the offers of a project (None: of all), the newest first."""
    return _select(connection, project_id=project_id)


def one_transfer(connection: sa.Connection, transfer_id: str, project_id: str | None = None) -> Transfer:
    """Return the offer of this id, if the project (None: any) made it. Raises NotFoundError."""
    rows = _select(connection, project_id=project_id, id=transfer_id)
    if not rows:
        raise NotFoundError(f"Transfer {transfer_id[:60]} could not be found.")
    return rows[0]


def _select(connection: sa.Connection, **values: str | None) -> list[Transfer]:
    conditions = equal({volume_transfer.c[name]: value for name, value in values.items()})
    newest = (volume_transfer.c.created_at.desc(), volume_transfer.c.id.desc())
    rows = connection.execute(sa.select(*_COLUMNS).where(*conditions).order_by(*newest)).mappings()
    return [Transfer(**row) for row in rows]
