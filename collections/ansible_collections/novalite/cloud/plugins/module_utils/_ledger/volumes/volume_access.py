# Copyright (c) 2026 novalite contributors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who may use a volume type that is not for everybody; what is said of the image that a volume was made of."""

from __future__ import annotations

import sqlalchemy as sa

from ..._errors import ConflictError, NotFoundError
from ..._json import JsonMapping
from ..catalog import volume_types
from ..catalog.volume_types import VolumeType
from ..db.tables_images import volume_type_access
from ..db.tables_volumes import volume


def types_seen(connection: sa.Connection, project_id: str, everything: bool) -> list[VolumeType]:
    """The types that the project may use (with `everything`: all), by name. Reads only."""
    mine = sa.select(volume_type_access.c.type_id).where(volume_type_access.c.project_id == project_id)
    granted = set(connection.execute(mine).scalars())
    rows = volume_types.types_by(connection)
    return [row for row in rows if everything or row.is_public or row.id in granted]


def type_seen(connection: sa.Connection, name_or_id: str, project_id: str, everything: bool) -> VolumeType:
    """One of them; `default` names the default one. Raises NotFoundError."""
    wanted = volume_types.DEFAULT_ID if name_or_id == "default" else name_or_id
    for row in types_seen(connection, project_id, everything):
        if wanted in (row.id, row.name):
            return row
    raise _unknown(name_or_id)


def usable(connection: sa.Connection, name_or_id: str, project_id: str, everything: bool) -> VolumeType:
    """The type for a new volume of the project (with `everything`: any type). Raises NotFoundError."""
    of_type = volume_types.type_of(connection, name_or_id)
    if not (everything or of_type.is_public or project_id in projects_of(connection, of_type.id)):
        raise _unknown(name_or_id)
    return of_type


def projects_of(connection: sa.Connection, type_id: str) -> list[str]:
    query = sa.select(volume_type_access.c.project_id).where(volume_type_access.c.type_id == type_id)
    return list(connection.execute(query.order_by(volume_type_access.c.project_id)).scalars())


def add(connection: sa.Connection, of_type: VolumeType, project_id: str) -> None:
    """Raises ConflictError for a type that is for everybody, and for a project that has it."""
    _refuse_public(of_type)
    if project_id in projects_of(connection, of_type.id):
        raise ConflictError(f"Volume type access for {of_type.id} / {project_id} combination already exists.")
    connection.execute(sa.insert(volume_type_access).values(type_id=of_type.id, project_id=project_id))


def remove(connection: sa.Connection, of_type: VolumeType, project_id: str) -> None:
    """Raises ConflictError for a type that is for everybody, NotFoundError for a project that has it not."""
    _refuse_public(of_type)
    if project_id not in projects_of(connection, of_type.id):
        raise NotFoundError(f"Volume type access not found for {of_type.id} / {project_id} combination.")
    table = volume_type_access
    connection.execute(sa.delete(table).where(table.c.type_id == of_type.id, table.c.project_id == project_id))


def _unknown(name_or_id: str) -> NotFoundError:
    return NotFoundError(f"Volume type {volume_types.check_shown(name_or_id)} could not be found.")


def _refuse_public(of_type: VolumeType) -> None:
    if of_type.is_public:
        raise ConflictError("Type access modification is not applicable to public volume type.")


def describe_image(connection: sa.Connection, volume_id: str, image: JsonMapping) -> None:
    """Write what the volume knows of its image; nothing is done to either."""
    connection.execute(sa.update(volume).where(volume.c.id == volume_id).values(image=dict(image)))
